//! Parts on requests: figures, waterfalls, stages and connections.

use crate::escape::html;
use crate::model::{Report, Waterfall};
use crate::page::parts::{INITIALLY_OPEN, MAX_REQUEST_BYTES, joined, section, table};
use crate::page::{Part, fall};
use crate::words::lost;
use screen::{grouped, time};
use std::fmt::Write as _;

pub(super) fn figures(report: &Report) -> Part {
    let row = |group: &crate::model::Group| {
        let it = &group.whole;
        let took = |nanos: u64| {
            if it.count > 0 {
                time(nanos)
            } else {
                "–".to_owned()
            }
        };
        let mut row = vec![html(&group.name), grouped(it.count), took(it.mean)];
        row.extend(it.quantiles.iter().map(|nanos| took(*nanos)));
        row.push(took(it.max));
        row
    };
    let head = [
        "kind",
        "whole ones",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ];
    let inside = table(
        &head,
        report.groups.iter().map(row),
        "Figures of each kind of object",
    );
    let text = if report.has_kernel {
        "Requests that began after the kernel's events did: the requests in all charts here."
    } else {
        "From the first record to the last."
    };
    (
        "figures",
        "Figures",
        section("figures", "", "How long they took", text, &inside),
    )
}

pub(super) fn slowest(report: &Report) -> Part {
    let mut inside = String::new();
    let mut shown = 0;
    for (rank, it) in report.waterfalls.iter().enumerate() {
        let one = request_html(rank, it);
        if inside.len() + one.len() > MAX_REQUEST_BYTES {
            break;
        }
        inside.push_str(&one);
        shown += 1;
    }
    if shown < report.waterfalls.len() {
        let _ = write!(
            inside,
            "<p class=\"quiet\">{} more did not fit into this file.</p>",
            report.waterfalls.len() - shown
        );
    }
    let text = if report.has_kernel {
        "Each bar is a stage. The strip below shows what the thread did meanwhile: grey is its own code, colours are what kept it away."
    } else {
        "Each bar is a stage. What the kernel did meanwhile was not recorded."
    };
    (
        "slowest",
        "Slowest",
        section("slowest", "", "The slowest requests", text, &inside),
    )
}

fn request_html(rank: usize, it: &Waterfall) -> String {
    let open = if rank < INITIALLY_OPEN { " open" } else { "" };
    let took = it
        .lost
        .and_then(lost)
        .map(|lost| format!("{lost} of it taken by others"));
    let on = Some(html(&it.ran_on)).filter(|on| !on.is_empty());
    let at = Some(format!("{} after the start", time(it.at)));
    let whose = it.whose.as_deref().map(html);
    let rest: Vec<String> = [took, on, at, whose].into_iter().flatten().collect();
    let head = format!(
        "<b>{}</b> {} ({}) <span>{}</span>",
        time(it.length),
        html(&it.name),
        html(&it.kind),
        rest.join(" · ")
    );
    let culprits = joined(&it.culprits, |line| format!("<li>{}</li>", html(line)));
    let culprits = if culprits.is_empty() {
        String::new()
    } else {
        format!("<ul>{culprits}</ul>")
    };
    let left_out = match it.spans_left_out {
        0 => String::new(),
        count => format!(
            "<p class=\"quiet\">{} shorter intervals are not drawn.</p>",
            grouped(count)
        ),
    };
    let has_kernel = it.lost.is_some();
    let row = |stage: &crate::model::WaterStage| {
        let mut row = vec![
            format!("{} → {}", html(&stage.from), html(&stage.to)),
            time(stage.at),
            time(stage.length),
            stage.ends.to_owned(),
        ];
        row.extend(has_kernel.then(|| lost(stage.lost).unwrap_or_else(|| "–".to_owned())));
        row
    };
    let head_row: &[&str] =
        &["stage", "at", "took", "ends by", "others took"][..if has_kernel { 5 } else { 4 }];
    format!(
        "<details class=\"request\" id=\"request-{}\"{open}><summary>{head}</summary>\n<div class=\"within\">\
         {}{culprits}{left_out}\n\
         <details class=\"plain\"><summary>As a table</summary>{}</details></div></details>\n",
        rank + 1,
        fall::waterfall(it),
        table(
            head_row,
            it.stages.iter().map(row),
            &format!("Stages of {}", html(&it.name))
        ),
    )
}

pub(super) fn stages() -> Part {
    let head = [
        "stage", "count", "share", "mean", "p50", "p90", "p99", "p99.9", "max",
    ];
    let heads = joined(head, |cell| format!("<th scope=\"col\">{cell}</th>"));
    let inside = format!(
        "<div class=\"bar\"><label for=\"curves-of\">Of</label> <select class=\"tool\" id=\"curves-of\"></select></div>\n\
         <figure><svg id=\"curves\" tabindex=\"0\" role=\"application\" width=\"100%\" aria-describedby=\"curves-said\" \
         aria-label=\"Percentiles on a scale of nines; the keys left and right read them\"></svg></figure>\n\
         <p class=\"said\" id=\"curves-said\" role=\"status\">Point at the chart to read it.</p>\n\
         <div class=\"wide\" role=\"region\" aria-label=\"Figures of the stages\" tabindex=\"0\"><table aria-label=\"Figures of the stages\"><thead><tr>{heads}</tr></thead>\
         <tbody id=\"stages-rows\"></tbody></table></div><p class=\"quiet\" id=\"stages-note\"></p>\n\
         <noscript><p>This part is drawn by a script, which did not run.</p></noscript>"
    );
    let text = "A stage is the time between two records of a request. A curve that rises at the right has a slow tail.";
    (
        "stages",
        "Stages",
        section("stages", "", "Which stage", text, &inside),
    )
}

pub(super) fn connections(report: &Report) -> Part {
    let kernel = report
        .has_kernel
        .then_some(("kernel", "lost to others", ""));
    let columns = [
        ("name", "connection", ""),
        ("kind", "kind", "left"),
        ("count", "requests", ""),
        ("p50", "p50", ""),
        ("p99", "p99", ""),
        ("p99.9", "p99.9", ""),
        ("max", "max", ""),
    ];
    let last = ("most", "most of the slowest 1 %", "left");
    let head = |(key, label, class): (&str, &str, &str)| {
        format!(
            "<th scope=\"col\" data-sort=\"{key}\" class=\"{class}\"><button type=\"button\">{label}</button></th>"
        )
    };
    let heads = joined(columns.into_iter().chain(kernel).chain([last]), head);
    let inside = format!(
        "<div class=\"bar\"><label for=\"connections-filter\">Only</label> <input class=\"tool\" id=\"connections-filter\" type=\"search\" \
         autocomplete=\"off\" spellcheck=\"false\" placeholder=\"words of a row\"> \
         <span class=\"quiet\" id=\"connections-count\" role=\"status\"></span></div>\n\
         <div class=\"wide\" role=\"region\" aria-label=\"Connections\" tabindex=\"0\"><table aria-label=\"Connections\"><thead><tr>{heads}</tr></thead>\
         <tbody id=\"connections-rows\"></tbody></table></div>\n\
         <p class=\"more\"><button type=\"button\" class=\"tool\" id=\"connections-more\" hidden></button></p>\n\
         <noscript><p>This table is filled by a script, which did not run.</p></noscript>"
    );
    let remark = if report.has_kernel {
        " Lost to others: the part of the time of its requests that other threads, interrupts and stops took, at most."
    } else {
        ""
    };
    let text = format!(
        "Names come from the trace. A name that is a link shows the stages of that connection \
         above.{remark}"
    );
    (
        "connections",
        "Connections",
        section("connections", "", "Which connection", &text, &inside),
    )
}
