//! Parts on threads: their intruders and budgets.

use super::legend;
use crate::escape::html;
use crate::model::{Activity, Budget, Intruder, Report};
use crate::page::Part;
use crate::page::parts::{UNFOLDED_ROWS, meter, on_cpus, part_of, section, square, table};
use screen::{grouped, time};
use std::fmt::Write as _;

/// Makes the row of an intruder: its share of the time of all threads together, and a meter against
/// the intruder that took most.
fn intruder_row(it: &Intruder, together: u64, most: u64) -> Vec<String> {
    let victims = it
        .victims
        .iter()
        .map(|name| html(name))
        .collect::<Vec<_>>()
        .join(", ");
    let cpu = it.cpu.map_or_else(|| "–".to_owned(), |cpu| cpu.to_string());
    vec![
        html(&it.name),
        cpu,
        part_of(it.total, together),
        meter(it.total, most, it.activity.key()),
        time(it.total),
        grouped(it.times),
        time(it.longest),
        victims,
    ]
}

pub(super) fn intruders(report: &Report) -> Part {
    let together = report
        .span
        .saturating_mul(report.lanes.lanes.len().max(1) as u64);
    let most = report
        .intruders
        .iter()
        .map(|it| it.total)
        .max()
        .unwrap_or(1);
    let row = |it| intruder_row(it, together, most);
    let head = [
        "who",
        "CPU",
        "of their time",
        "",
        "in all",
        "times",
        "longest",
        "instead of",
    ];
    let (first, rest) = report
        .intruders
        .split_at(report.intruders.len().min(UNFOLDED_ROWS));
    let used = Activity::ALL
        .into_iter()
        .filter(|it| report.intruders.iter().any(|other| other.activity == *it));
    let mut inside = legend(used) + &table(&head, first.iter().map(row), "Who had the CPU instead");
    let left_out = match report.intruders_left_out {
        0 => String::new(),
        count => format!(
            "<p class=\"quiet\">{} {} took less.</p>",
            grouped(count),
            screen::plural(count, "other", "others")
        ),
    };
    if rest.is_empty() {
        inside.push_str(&left_out);
    } else {
        let table = table(&head, rest.iter().map(row), "Who else had the CPU");
        let _ = write!(
            inside,
            "<details class=\"plain\"><summary>{} more, each of which took less</summary>{table}{left_out}</details>",
            rest.len()
        );
    }
    let text = "Everything that had the CPU of the threads that serve requests, whether or not a \
                request waited for it. If two of them waited, both count.";
    (
        "who",
        "Who",
        section(
            "who",
            "",
            "Who ran instead",
            text,
            &format!("<div class=\"intruders\">{inside}</div>"),
        ),
    )
}

/// Formats a bar for each thread, and columns of its activities. The head of the table is the
/// legend.
pub(super) fn budgets(report: &Report) -> Part {
    let used: Vec<Activity> = Activity::ALL
        .into_iter()
        .filter(|it| {
            report
                .budgets
                .iter()
                .any(|budget| budget.sums[place(*it)] > 0)
        })
        .collect();
    let keys: Vec<String> = used
        .iter()
        .map(|it| format!("{} {}", square(*it), it.word()))
        .collect();
    let head: Vec<&str> = ["thread", ""]
        .into_iter()
        .chain(keys.iter().map(String::as_str))
        .collect();
    let row = |budget: &Budget| {
        let all = sum(budget);
        let cpus = on_cpus(&budget.cpus).map_or_else(String::new, |cpus| format!(", {cpus}"));
        let name = format!(
            "{} <span class=\"quiet\">{}{cpus}</span>",
            html(&budget.name),
            budget.tid
        );
        let part = |activity: &Activity| match budget.sums[place(*activity)] {
            0 => "–".to_owned(),
            sum => part_of(sum, all),
        };
        [name, bar(budget)]
            .into_iter()
            .chain(used.iter().map(part))
            .collect()
    };
    let mut inside = table(
        &head,
        report.budgets.iter().map(row),
        "What each thread did",
    );
    if report.budgets_left_out > 0 {
        let _ = write!(
            inside,
            "<p class=\"quiet\">{} more {} hardly on a CPU.</p>",
            grouped(report.budgets_left_out),
            screen::plural(report.budgets_left_out, "thread was", "threads were")
        );
    }
    let text = "Own code: it ran. Calls: system calls. Woken: it had work, and waited for a CPU. Blocked: it slept, or waited for something.";
    (
        "threads",
        "Threads",
        section(
            "threads",
            "",
            "What each thread did",
            text,
            &format!("<div class=\"budgets\">{inside}</div>"),
        ),
    )
}

fn sum(budget: &Budget) -> u64 {
    budget
        .sums
        .iter()
        .fold(0, |all, sum| all.saturating_add(*sum))
}

/// Draws a thread's time as one bar.
fn bar(budget: &Budget) -> String {
    let all = sum(budget);
    let (mut bars, mut x) = (String::new(), 0.0);
    for (activity, sum) in Activity::ALL
        .into_iter()
        .zip(budget.sums)
        .filter(|(_, sum)| *sum > 0)
    {
        let width = sum as f64 / all.max(1) as f64 * 100.0;
        let _ = write!(
            bars,
            "<rect x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"16\" class=\"{}\"/>",
            activity.key()
        );
        x += width;
    }
    format!("<svg class=\"meter\" width=\"100%\" height=\"16\" aria-hidden=\"true\">{bars}</svg>")
}

fn place(activity: Activity) -> usize {
    Activity::ALL
        .iter()
        .position(|it| *it == activity)
        .unwrap_or_default()
}
