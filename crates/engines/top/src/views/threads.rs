//! Table of threads.

use crate::sample::{Part, Sample, Thread};
use crate::table::{Cell, Row, Table, percent};
use crate::views::{THREADS, matches, time};

/// Returns the threads of a second that match the filter, in that order.
pub(crate) fn threads<'a>(sample: &'a Sample, order: (usize, bool), filter: &str) -> Table<'a> {
    let wanted = |thread: &&Thread| matches(filter, &[&thread.name, &thread.tid.to_string()]);
    Table::ordered(
        THREADS,
        order,
        sample.threads.iter().flatten().filter(wanted),
        |it| thread_number(it, order.0),
        |a, b| (&a.name, a.tid).cmp(&(&b.name, b.tid)),
        Row::Thread,
    )
}

fn thread_number(thread: &Thread, column: usize) -> f64 {
    let share = |part| thread.parts.share(part);
    match THREADS[column.min(THREADS.len() - 1)].head {
        "TID" => -f64::from(thread.tid),
        "OWN" => share(Part::Own),
        "CALLS" => share(Part::Calls),
        "WAITED" => share(Part::Waited),
        "STOPPED" => share(Part::Stopped),
        "IRQS" => share(Part::Hard) + share(Part::Soft),
        "LONGEST" => thread.longest_wait as f64,
        "TIME" => 1.0 - share(Part::Blocked),
        "RAN INSTEAD" => thread
            .instead
            .first()
            .map_or(0.0, |(_, nanos)| *nanos as f64),
        "MOST CALLS" => thread.calls.first().map_or(0.0, |(_, nanos)| *nanos as f64),
        _ => 0.0,
    }
}

pub(crate) fn thread_cells(thread: &Thread) -> Vec<Cell> {
    let share = |part| thread.parts.share(part);
    let named = |named: Option<&(String, u64)>| match named {
        Some((name, nanos)) => Cell::Named(name.clone(), screen::time(*nanos)),
        None => Cell::Text(String::new()),
    };
    vec![
        Cell::Text(thread.name.clone()),
        Cell::Text(thread.tid.to_string()),
        Cell::Parts(thread.parts),
        Cell::Text(percent(share(Part::Own))),
        Cell::Text(percent(share(Part::Calls))),
        Cell::Text(percent(share(Part::Waited))),
        Cell::Text(percent(share(Part::Stopped))),
        Cell::Text(percent(share(Part::Hard) + share(Part::Soft))),
        Cell::Text(time(thread.longest_wait, thread.longest_wait)),
        named(thread.instead.first()),
        named(thread.calls.first()),
    ]
}
