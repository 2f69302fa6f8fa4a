//! Tables of each tab from a second, in the selected order.

mod pollers;
mod threads;

use crate::sample::{Connection, Identity, Sample, Traffic};
use crate::table::{Cell, Column, HIDDEN, Row, Table, number, percent};
pub(crate) use pollers::{POLLERS, poller_cells, pollers, summary as pollers_summary};
pub(crate) use threads::{thread_cells, threads};

pub(crate) const fn text(head: &'static str, width: usize, most: usize, rank: u8) -> Column {
    Column {
        head,
        width,
        most,
        right: false,
        rank,
    }
}

pub(crate) const fn figure(head: &'static str, width: usize, rank: u8) -> Column {
    Column {
        head,
        width,
        most: width,
        right: true,
        rank,
    }
}

/// Columns of the connections.
pub(crate) const CONNECTIONS: &[Column] = &[
    text("SUBSYSTEM", 9, 60, 0),
    figure("QID", 3, 4),
    text("HOST", 9, 60, 5),
    text("TRANS", 5, 9, 10),
    text("THREAD", 9, 16, 12),
    figure("DEPTH", 5, 9),
    figure("IOPS", 5, 0),
    figure("BLOCKS/s", 8, 11),
    text("STAGES", 9, 30, 6),
    figure("P50", 7, 3),
    figure("P99", 7, 0),
    figure("MAX", 7, 7),
    figure("KERNEL", 6, 8),
];

/// The same columns for requests of any server, seen at its sockets.
pub(crate) const SERVER_CONNECTIONS: &[Column] = &[
    text("SERVER", 6, 60, 0),
    figure("QID", 3, HIDDEN),
    text("CLIENT", 9, 60, 5),
    text("TRANS", 5, 9, HIDDEN),
    text("THREAD", 9, 24, 8),
    figure("DEPTH", 5, HIDDEN),
    figure("REQ/s", 5, 0),
    figure("BLOCKS/s", 8, HIDDEN),
    text("STAGES", 9, 30, 6),
    figure("P50", 7, 3),
    figure("P99", 7, 0),
    figure("MAX", 7, 7),
    figure("KERNEL", 6, 4),
];

/// Returns the columns of the connections of a second.
pub(crate) fn connection_columns(sample: &Sample) -> &'static [Column] {
    match &sample.traffic {
        Some(traffic) if traffic.of_sockets => SERVER_CONNECTIONS,
        _ => CONNECTIONS,
    }
}

/// Columns of the threads.
pub(crate) const THREADS: &[Column] = &[
    text("THREAD", 10, 16, 0),
    figure("TID", 7, 5),
    text("TIME", 12, 60, 1),
    figure("OWN", 5, 2),
    figure("CALLS", 5, 3),
    figure("WAITED", 6, 0),
    figure("STOPPED", 7, 9),
    figure("IRQS", 5, 4),
    figure("LONGEST", 7, 6),
    text("RAN INSTEAD", 15, 40, 7),
    text("MOST CALLS", 15, 24, 8),
];

/// Columns of the stages.
pub(crate) const STAGES: &[Column] = &[
    text("STAGE", 20, 60, 0),
    figure("COUNT", 6, 3),
    figure("SHARE", 5, 4),
    figure("MEAN", 7, 5),
    figure("P50", 7, 2),
    figure("P99", 7, 0),
    figure("MAX", 7, 6),
];

/// Column by which each tab is ordered at first: slow connections, late threads and disturbed CPUs
/// are on top, and stages are in their own order.
pub(crate) const FIRST_ORDER: [usize; 5] = [10, 5, 0, 3, 3];

/// Returns true if each word of the filter occurs in one of the names, ignoring case.
pub(crate) fn matches(filter: &str, names: &[&str]) -> bool {
    let filter = filter.to_lowercase();
    filter
        .split_whitespace()
        .all(|word| names.iter().any(|name| name.to_lowercase().contains(word)))
}

/// Returns the connections of a second that match the filter, in that order.
pub(crate) fn connections<'a>(sample: &'a Sample, order: (usize, bool), filter: &str) -> Table<'a> {
    let all = sample
        .traffic
        .iter()
        .flat_map(|traffic| &traffic.connections);
    Table::ordered(
        connection_columns(sample),
        order,
        all.filter(|connection| is_wanted(&connection.identity, filter)),
        |it| connection_number(it, order.0),
        |a, b| a.identity.cmp(&b.identity),
        Row::Connection,
    )
}

fn is_wanted(identity: &Identity, filter: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let queue = identity
        .queue
        .map(|queue| format!("qid:{queue}"))
        .unwrap_or_default();
    matches(
        filter,
        &[
            &identity.subnqn,
            &identity.host,
            &identity.transport,
            &identity.address,
            &queue,
        ],
    )
}

/// Returns the number by which a column of a connection is ordered, the largest first; 0 for
/// columns ordered by name.
fn connection_number(connection: &Connection, column: usize) -> f64 {
    let Connection {
        identity,
        depth,
        iops,
        blocks,
        times,
        taken,
        ..
    } = connection;
    match CONNECTIONS[column.min(CONNECTIONS.len() - 1)].head {
        "QID" => -identity.queue.map_or(-1.0, f64::from),
        "DEPTH" => *depth,
        "IOPS" => *iops,
        "BLOCKS/s" => *blocks,
        "P50" => times.quantile(0.5) as f64,
        "P99" => times.quantile(0.99) as f64,
        "MAX" => times.max() as f64,
        "KERNEL" => taken.unwrap_or(-1.0),
        _ => 0.0,
    }
}

/// Formats a time, or a dash if the count is 0.
pub(crate) fn time(nanos: u64, count: u64) -> String {
    if count == 0 {
        "-".to_owned()
    } else {
        screen::time(nanos)
    }
}

/// Returns the part of an NVMe qualified name after the first colon, which distinguishes it; other
/// names whole.
pub(crate) fn short_name(name: &str) -> &str {
    let rest = name
        .strip_prefix("nqn.")
        .and_then(|name| name.split_once(':'))
        .map(|(_, rest)| rest);
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

pub(crate) fn connection_cells(connection: &Connection) -> Vec<Cell> {
    let Connection {
        identity,
        depth,
        iops,
        blocks,
        times,
        phases,
        taken,
        ..
    } = connection;
    let count = times.count();
    vec![
        Cell::Text(short_name(&identity.subnqn).to_owned()),
        Cell::Text(
            identity
                .queue
                .map_or_else(|| "-".to_owned(), |queue| queue.to_string()),
        ),
        Cell::Text(short_name(&identity.host).to_owned()),
        Cell::Text(identity.transport.clone()),
        Cell::Text(connection.thread.as_deref().unwrap_or("-").to_owned()),
        Cell::Text(format!("{depth:.1}")),
        Cell::Text(number(*iops)),
        Cell::Text(number(*blocks)),
        Cell::Phases(*phases),
        Cell::Text(time(times.quantile(0.5), count)),
        Cell::Text(time(times.quantile(0.99), count)),
        Cell::Text(time(times.max(), count)),
        Cell::Text(taken.map_or_else(|| "-".to_owned(), percent)),
    ]
}

/// Returns the stages of a second that match the filter, in that order. Equal ones are in the order
/// in which requests pass them.
pub(crate) fn stages<'a>(sample: &'a Sample, order: (usize, bool), filter: &str) -> Table<'a> {
    let all = sample.traffic.iter().flat_map(|traffic| {
        let places = 0..traffic.stages.len();
        places.map(move |place| (traffic, place))
    });
    let stands = |&(traffic, place): &(&Traffic, usize)| traffic.stages[place].order;
    Table::ordered(
        STAGES,
        order,
        all.filter(|(traffic, place)| matches(filter, &[&traffic.stages[*place].name])),
        |(traffic, place)| stage_number(traffic, *place, order.0),
        |a, b| stands(a).total_cmp(&stands(b)).then(a.1.cmp(&b.1)),
        |(traffic, place)| Row::Stage(traffic, place),
    )
}

/// Returns the share of all requests' time that a stage takes.
fn stage_share(traffic: &Traffic, place: usize) -> f64 {
    let whole = traffic.stages.first().map_or(0, |whole| whole.times.sum());
    traffic.stages[place].times.sum() as f64 / whole.max(1) as f64
}

fn stage_number(traffic: &Traffic, place: usize, column: usize) -> f64 {
    let times = &traffic.stages[place].times;
    match STAGES[column.min(STAGES.len() - 1)].head {
        "COUNT" => times.count() as f64,
        "SHARE" => stage_share(traffic, place),
        "MEAN" => times.mean() as f64,
        "P50" => times.quantile(0.5) as f64,
        "P99" => times.quantile(0.99) as f64,
        "MAX" => times.max() as f64,
        _ => 0.0,
    }
}

pub(crate) fn stage_cells(traffic: &Traffic, place: usize) -> Vec<Cell> {
    let stage = &traffic.stages[place];
    let (times, count) = (&stage.times, stage.times.count());
    vec![
        Cell::Text(stage_name(&stage.name)),
        Cell::Text(number(count as f64)),
        Cell::Text(percent(stage_share(traffic, place))),
        Cell::Text(time(times.mean(), count)),
        Cell::Text(time(times.quantile(0.5), count)),
        Cell::Text(time(times.quantile(0.99), count)),
        Cell::Text(time(times.max(), count)),
    ]
}

/// Returns a stage's name without the common prefix of its tracepoints in the second one:
/// `TCP_REQ_NEW -> NEED_BUFFER`.
pub(crate) fn stage_name(name: &str) -> String {
    let Some((from, to)) = name.split_once(" -> ") else {
        return name.to_owned();
    };
    let end = from
        .rmatch_indices("_REQ_")
        .next()
        .map_or(0, |(at, mark)| at + mark.len());
    match to.strip_prefix(&from[..end]) {
        Some(rest) => format!("{from} -> {rest}"),
        None => name.to_owned(),
    }
}

/// Returns how much of the trace was read; `None` if all was read.
pub(crate) fn sampled(sample: &Sample) -> Option<String> {
    let traffic = sample
        .traffic
        .as_ref()
        .filter(|traffic| traffic.read < traffic.written)?;
    Some(format!(
        "sampled: {} of the records",
        percent(traffic.sampled())
    ))
}

/// Returns a summary of a second in words: for the top of each tab, and for the text of a second.
pub(crate) fn summary(sample: &Sample) -> String {
    let mut parts = Vec::new();
    if let Some(traffic) = &sample.traffic {
        let iops: f64 = traffic
            .connections
            .iter()
            .map(|connection| connection.iops)
            .fold(0.0, |sum, one| sum + one);
        let blocks: f64 = traffic
            .connections
            .iter()
            .map(|connection| connection.blocks)
            .fold(0.0, |sum, one| sum + one);
        parts.push(screen::counted(
            traffic.connections.len() as u64,
            "connection",
        ));
        parts.push(if traffic.of_sockets {
            format!("{} requests/s", number(iops))
        } else {
            format!("{} IOPS, {} blocks/s", number(iops), number(blocks))
        });
        if let Some(times) = traffic
            .stages
            .first()
            .map(|whole| &whole.times)
            .filter(|times| times.count() > 0)
        {
            let [p50, p99, max] =
                [times.quantile(0.5), times.quantile(0.99), times.max()].map(screen::time);
            parts.push(format!("p50 {p50}, p99 {p99}, max {max}"));
        }
    }
    if let Some(threads) = sample.threads.as_ref().filter(|_| sample.traffic.is_none()) {
        let worst = threads
            .iter()
            .max_by(|a, b| a.taken().total_cmp(&b.taken()));
        parts.push(screen::counted(threads.len() as u64, "thread"));
        if let Some(worst) = worst {
            parts.push(format!(
                "the kernel took most from {}: {}",
                worst.name,
                percent(worst.taken())
            ));
        }
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests;
