//! The parts of the page, from the verdict down to the details.

mod requests;
mod threads;

use std::fmt::Write as _;

use screen::{grouped, plural, time};

use super::Part;
use crate::beside::PerfettoFile;
use crate::escape::html;
use crate::model::{Activity, Cause, Report, TimeCauses, Verdict};
use crate::page::parts::requests::{connections, figures, slowest, stages};
use crate::page::parts::threads::{budgets, intruders};
use crate::words::{lost, percent};

/// Number of requests whose waterfall is initially open.
const INITIALLY_OPEN: usize = 3;
/// Limit on the slowest requests, in bytes.
const MAX_REQUEST_BYTES: usize = 220_000;
/// Number of unfolded rows in the table of intruders.
const UNFOLDED_ROWS: usize = 8;

/// Formats all parts of this report.
pub(super) fn all(report: &Report) -> Vec<Part> {
    let mut parts = vec![verdict(report)];
    parts.extend((!report.notes.is_empty()).then(|| notes(report)));
    if !report.groups.is_empty() {
        parts.push(figures(report));
        parts.push(heat(report));
    }
    parts.extend((!report.intruders.is_empty()).then(|| intruders(report)));
    parts.extend((!report.budgets.is_empty()).then(|| budgets(report)));
    parts.extend((!report.waterfalls.is_empty()).then(|| slowest(report)));
    if !report.groups.is_empty() {
        parts.push(stages());
    }
    parts.extend((!report.connections.is_empty()).then(|| connections(report)));
    parts.push(about(report));
    parts
}

/// Formats the line below the heading.
pub(super) fn lead(report: &Report) -> String {
    let mut parts = vec![time(report.span)];
    if !report.groups.is_empty() {
        // Objects that several tracepoints create may be of one kind.
        let mut kinds: Vec<(&str, u64)> = Vec::new();
        for group in &report.groups {
            let count = group.whole.count.saturating_add(group.unfinished);
            match kinds.iter_mut().find(|(name, _)| *name == group.name) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => kinds.push((&group.name, count)),
            }
        }
        let kinds = kinds.into_iter();
        parts.extend(kinds.map(|(name, count)| format!("{} {name}", grouped(count))));
        let connections =
            (report.connections.len() as u64).saturating_add(report.connections_left_out);
        parts.push(format!(
            "{} {}",
            grouped(connections),
            plural(connections, "connection", "connections")
        ));
    }
    parts.push(
        if report.has_kernel {
            "with the kernel's events"
        } else {
            "without the kernel's events"
        }
        .to_owned(),
    );
    html(&parts.join(" · "))
}

/// Concatenates the formatted items.
pub(crate) fn joined<T>(of: impl IntoIterator<Item = T>, one: impl FnMut(T) -> String) -> String {
    of.into_iter().map(one).collect::<Vec<_>>().concat()
}

pub(crate) fn section(id: &str, class: &str, heading: &str, text: &str, inside: &str) -> String {
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let text = if text.is_empty() {
        String::new()
    } else {
        format!("<p>{text}</p>\n")
    };
    format!(
        "<section id=\"{id}\"{class} aria-labelledby=\"{id}-head\">\n<h2 id=\"{id}-head\">{heading}</h2>\n{text}{inside}\n</section>\n"
    )
}

fn verdict(report: &Report) -> Part {
    let first = |text: &String| format!("<p class=\"first\">{}</p>\n", html(text));
    let mut inside = joined(report.still_open.as_slice(), first);
    let absences = joined(&report.absences, first);
    let left_out = joined(&report.left_out, |text| format!("<p>{}</p>\n", html(text)));
    match report.verdicts.split_first() {
        None => inside.push_str(
            &(absences
                + "<p class=\"first\">It has no complete request: there is nothing to explain.</p>"),
        ),
        Some((first, rest)) => {
            let _ = write!(
                inside,
                "<p class=\"first\">{}</p>\n<p>{}</p>\n",
                html(&first.sentence),
                html(&first.explained)
            );
            inside.push_str(&absences);
            inside.push_str(&left_out);
            inside.push_str(&spent(&report.spent, report.has_kernel));
            inside.push_str(&others(rest));
        }
    }
    if let Some(file) = &report.perfetto {
        inside.push_str(&perfetto(file));
    }
    (
        "verdict",
        "Verdict",
        section("verdict", "verdict", "Verdict", "", &inside),
    )
}

/// Formats how to open the trace for Perfetto. The page itself loads nothing, so a user opens it.
fn perfetto(file: &PerfettoFile) -> String {
    let name = html(&file.name);
    let trace = match &file.address {
        Some(address) => format!("<a href=\"{}\" download>{name}</a>", html(address)),
        None => format!("<b>{name}</b>"),
    };
    format!(
        "<p class=\"quiet\" id=\"perfetto\">Open in Perfetto: the same requests are in {trace}. Open it \
         at ui.perfetto.dev with <b>Open trace file</b>.</p>\n"
    )
}

/// Formats the verdicts on the other groups.
fn others(verdicts: &[Verdict]) -> String {
    let open = if verdicts.len() <= INITIALLY_OPEN {
        " open"
    } else {
        ""
    };
    let lines = joined(verdicts, |it| format!("<li>{}</li>", html(&it.sentence)));
    match verdicts.len() {
        0 => String::new(),
        1 => format!("<ul>{lines}</ul>"),
        many => format!(
            "<details class=\"plain\"{open}><summary>The same of {many} other groups of requests</summary><ul>{lines}</ul></details>"
        ),
    }
}

/// Formats a share in percent, with an escaped `<` for the smallest.
fn part_of(part: u64, of: u64) -> String {
    html(&percent(part, of))
}

/// Draws a bar for a share.
fn meter(part: u64, of: u64, class: &str) -> String {
    let width = part as f64 * 100.0 / of.max(1) as f64;
    format!(
        "<svg class=\"meter\" width=\"100%\" height=\"12\" aria-hidden=\"true\"><rect width=\"100%\" height=\"12\" class=\"track\"/>\
         <rect width=\"{:.2}%\" height=\"12\" class=\"{class}\"/></svg>",
        width.clamp(0.0, 100.0)
    )
}

/// Formats the causes of the slowest requests, with a bar for each.
fn spent(spent: &TimeCauses, has_kernel: bool) -> String {
    if spent.causes.is_empty() {
        return String::new();
    }
    let row = |cause: &Cause| {
        let on = on_cpus(&cause.cpus).map_or_else(String::new, |cpus| {
            format!(" <span class=\"quiet\">{cpus}</span>")
        });
        let most = cause.stage.as_ref().map_or_else(String::new, |(from, to)| {
            let start = same_start(from, to);
            format!(
                "<span class=\"quiet\">, most in {} → {}</span>",
                html(&from[start..]),
                html(&to[start..])
            )
        });
        let class = match cause.activity {
            None if has_kernel => "others",
            // Here it is a cause like the others, not the background of the bar.
            None | Some(Activity::Ran) => "stage",
            Some(activity) => activity.key(),
        };
        vec![
            format!("{}{on}{most}", html(&cause.name)),
            part_of(cause.took.1, spent.length),
            meter(cause.took.1, spent.length, class),
            lost(cause.took).unwrap_or_default(),
        ]
    };
    let of = if spent.of.is_empty() {
        String::new()
    } else {
        format!(" of {}", html(&spent.of))
    };
    let which = match spent.requests {
        1 => format!("slowest request{of}"),
        count => format!("{} slowest requests{of}", grouped(count)),
    };
    let head = [
        if has_kernel { "what took it" } else { "stage" },
        "part",
        "",
        "time",
    ];
    let table = table(
        &head,
        spent.causes.iter().map(row),
        "What took the time of the slowest requests",
    );
    let these = if spent.requests == 1 {
        "It"
    } else {
        "Requests at or beyond the percentile in the verdict. Together they"
    };
    format!(
        "<h3>Where the time of the {which} went</h3>\n<p class=\"quiet small\">{these} took {}.</p>\n<div class=\"causes\">{table}</div>\n",
        time(spent.length)
    )
}

/// Returns the length of the common start of a stage's two names, up to an underscore.
pub(super) fn same_start(from: &str, to: &str) -> usize {
    let common = from
        .bytes()
        .zip(to.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    from.as_bytes()[..common]
        .iter()
        .rposition(|byte| *byte == b'_')
        .map_or(0, |at| at + 1)
}

/// Formats `CPU 3`, or `CPUs 0, 1`; `None` if empty.
fn on_cpus(cpus: &[u32]) -> Option<String> {
    match cpus {
        [] => None,
        [one] => Some(format!("CPU {one}")),
        all => Some(format!(
            "CPUs {}",
            all.iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

fn notes(report: &Report) -> Part {
    let lines = joined(&report.notes, |note| format!("<li>{}</li>", html(note)));
    (
        "notes",
        "What is missing",
        section(
            "notes",
            "notes",
            "What is missing or not known",
            "",
            &format!("<ul>{lines}</ul>"),
        ),
    )
}

/// Formats a table that may be wider than the screen.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>, label: &str) -> String {
    let cells = |of: &[String]| joined(of, |cell| format!("<td>{cell}</td>"));
    let heads = joined(head, |cell| format!("<th scope=\"col\">{cell}</th>"));
    let rows = joined(rows, |row| format!("<tr>{}</tr>\n", cells(&row)));
    format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table aria-label=\"{label}\"><thead><tr>{heads}</tr></thead>\n\
         <tbody>{rows}</tbody></table></div>"
    )
}

/// Draws a small square in an activity's colour.
fn square(activity: Activity) -> String {
    let key = activity.key();
    format!(
        "<svg width=\"12\" height=\"12\" aria-hidden=\"true\" class=\"key\"><rect width=\"12\" height=\"12\" class=\"{key}\"/></svg>"
    )
}

/// Formats a legend of colours.
pub(super) fn legend(activities: impl Iterator<Item = Activity>) -> String {
    let line = |activity: Activity| format!("<li>{}{}</li>", square(activity), activity.label());
    format!("<ul class=\"legend\">{}</ul>", joined(activities, line))
}

fn heat(report: &Report) -> Part {
    let has = |n: usize| {
        report
            .lanes
            .lanes
            .iter()
            .any(|lane| lane.columns.iter().any(|sums| sums[n] > 0))
    };
    let used = Activity::ALL
        .into_iter()
        .enumerate()
        .filter(|(n, _)| has(*n))
        .map(|(_, activity)| activity);
    let lanes = if report.lanes.lanes.is_empty() {
        String::new()
    } else {
        legend(used)
    };
    let inside = format!(
        "<figure class=\"chart\"><canvas id=\"heat\" tabindex=\"0\" role=\"application\" aria-describedby=\"heat-help heat-said\" \
         aria-label=\"Heat map: when requests ended, and how long they had taken\"></canvas>\n\
         <div class=\"tip\" id=\"heat-tip\" hidden></div></figure>\n\
         <div class=\"under\"><p class=\"quiet small scale\">1 <canvas id=\"heat-scale\" width=\"96\" height=\"10\" aria-hidden=\"true\"></canvas> \
         <span id=\"heat-most\">1</span> requests in a cell</p>{lanes}</div>\n\
         <p class=\"said\" id=\"heat-said\" role=\"status\"></p>\n\
         <div class=\"bar\"><button type=\"button\" class=\"tool\" id=\"heat-reset\" disabled>Show all</button>\
         <span class=\"quiet small\" id=\"heat-help\">Drag, pinch, or Ctrl and wheel to zoom; Shift and drag or wheel to move; double click to \
         show all. Click a cell for its slowest request. Keys: arrows go from cell to cell, Enter to the request, \
         + and - or W and S zoom, A and D move, 0 shows all. The page's address keeps what is shown, for a \
         link.</span></div>\n\
         <details class=\"plain\" id=\"heat-table\"><summary>What is shown, as a table</summary><div class=\"wide\" role=\"region\" aria-label=\"Requests over time\" tabindex=\"0\"><table aria-label=\"Requests over time\"><thead><tr>\
         <th scope=\"col\">from</th><th scope=\"col\">requests that ended</th><th scope=\"col\">the slowest took</th></tr></thead>\
         <tbody id=\"heat-rows\"></tbody></table></div></details>\n<noscript><p>The heat map is drawn by a script, which did not run.</p></noscript>"
    );
    let text = "Each cell: how many requests ended then (from left to right) and had taken that long (from below, logarithmic).";
    (
        "when",
        "When",
        section("when", "", "When they were slow", text, &inside),
    )
}

fn about(report: &Report) -> Part {
    let facts = joined(&report.facts, |(name, value)| {
        format!("<dt>{}</dt><dd>{}</dd>", html(name), html(value))
    });
    let mut text = String::from(
        "Percentiles are those of <b>dptrace latency</b>: exact for up to a few thousand values, to three digits for more. ",
    );
    text.push_str(if report.has_kernel {
        "A delay has two bounds: a stage that ends with the thread's own work is late by exactly \
         the time that others (other threads, interrupts, stops) took from the thread; a stage \
         that waits for a device or the network is late by at most the time that they took \
         meanwhile, and by at least the part of it that lies just before the stage's end and \
         beyond the stage's usual time. Time that no event explains is hatched and blamed on \
         nobody."
    } else {
        "Parts that need the kernel's events (what threads did, who ran instead, what others took of a request) are left out: \
         <b>dptrace capture</b> records them."
    });
    (
        "about",
        "About",
        section(
            "about",
            "",
            "About this report",
            &text,
            &format!("<dl>{facts}</dl>"),
        ),
    )
}
