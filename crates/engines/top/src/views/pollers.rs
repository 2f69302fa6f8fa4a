//! Table of SPDK's pollers, each beside the kernel's account of the thread that runs it.

use crate::sample::{Poller, Sample};
use crate::table::{Cell, Column, Row, Table, number, percent};
use crate::views::{figure, matches, text, time};

/// Columns of the tab.
pub(crate) const POLLERS: &[Column] = &[
    text("POLLER", 16, 40, 0),
    text("SPDK THREAD", 11, 32, 4),
    text("REACTOR", 9, 12, 3),
    figure("RUNS/s", 6, 0),
    figure("IDLE/s", 6, 6),
    figure("BUSY", 5, 1),
    figure("PERIOD", 7, 5),
    figure("LOST", 5, 2),
    figure("LONGEST", 7, 7),
];

/// Returns the pollers of a second that match the filter, in that order.
pub(crate) fn pollers<'a>(sample: &'a Sample, order: (usize, bool), filter: &str) -> Table<'a> {
    let wanted = |it: &&Poller| {
        let reactor = it.reactor.as_deref().unwrap_or_default();
        matches(filter, &[&it.name, &it.thread, reactor])
    };
    Table::ordered(
        POLLERS,
        order,
        sample.pollers.iter().flatten().filter(wanted),
        |it| poller_number(it, order.0),
        |a, b| (&a.thread, &a.name, a.address).cmp(&(&b.thread, &b.name, b.address)),
        Row::Poller,
    )
}

fn poller_number(poller: &Poller, column: usize) -> f64 {
    match POLLERS[column.min(POLLERS.len() - 1)].head {
        "RUNS/s" => poller.runs,
        "IDLE/s" => poller.idle(),
        "BUSY" => poller.busy,
        "PERIOD" => poller.period.unwrap_or(0) as f64,
        "LOST" => poller.taken.unwrap_or(0.0),
        "LONGEST" => poller.longest_wait.unwrap_or(0) as f64,
        _ => 0.0,
    }
}

pub(crate) fn poller_cells(poller: &Poller) -> Vec<Cell> {
    let or_none = |text: Option<String>| Cell::Text(text.unwrap_or_else(|| "-".to_owned()));
    let period = poller
        .period
        .map_or_else(|| "always".to_owned(), screen::time);
    vec![
        Cell::Text(poller.name.clone()),
        Cell::Text(poller.thread.clone()),
        or_none(poller.reactor.clone()),
        Cell::Text(number(poller.runs)),
        Cell::Text(number(poller.idle())),
        Cell::Text(percent(poller.busy)),
        Cell::Text(period),
        or_none(poller.taken.map(percent)),
        or_none(poller.longest_wait.map(|wait| time(wait, wait))),
    ]
}

/// Returns a summary of the second in words.
pub(crate) fn summary(pollers: &[Poller]) -> String {
    let most = pollers
        .iter()
        .filter(|it| it.runs > 0.0)
        .max_by(|a, b| (a.runs * a.busy).total_cmp(&(b.runs * b.busy)));
    let count = screen::counted(pollers.len() as u64, "poller");
    match most {
        Some(most) => format!("{count}; most work: {} on {}", most.name, most.thread),
        None => format!("{count}; none ran in this second"),
    }
}
