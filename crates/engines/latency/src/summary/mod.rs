//! `--summary`: a row for each group, the slowest first; those that wait by design come last.

mod outlier;
mod table;

use std::cmp::Reverse;
use std::fmt::Write as _;

use ordering::Order as _;
use requests::Excluded;
use screen::{HEAD, shorten, wrap};
use spdk_trace::Ticks;
use text::json::{begin, quoted};

use super::names::Names;
use super::next;
use super::plot::Strips;
use super::stages::{Latencies, Subject, Times};
use super::tail::LargestStage;
use crate::quantiles::MIN_P99_REQUESTS;
use table::{Table, group};

/// Kind of objects, created by one tracepoint.
type Kind = (char, u16);

/// Row of a group.
struct Row<'a> {
    subject: &'a Subject,
    times: &'a Times,
    p50: u64,
    p99: u64,
    /// Stage with the largest part of the slowest hundredth.
    most: Option<LargestStage>,
    /// True if there are too few requests for a percentile, while other groups have enough.
    is_few: bool,
}

/// Headline above the rows of such groups.
const SMALL_GROUPS_HEADLINE: &str = "fewer than 20 requests, too few for a p99";

impl<'a> Row<'a> {
    fn new((subject, times): &'a (Subject, Times)) -> Self {
        let p99 = times.whole.quantile(0.99);
        Self {
            subject,
            times,
            p50: times.whole.quantile(0.5),
            p99,
            most: times.tail.largest(p99),
            is_few: false,
        }
    }

    fn objects(&self) -> u64 {
        self.times.whole.count() + self.times.unfinished
    }

    /// Returns the headline above this row's class, if that comes after the others.
    fn headline(&self) -> Option<&'static str> {
        self.subject
            .excluded
            .map(Excluded::headline)
            .or(self.is_few.then_some(SMALL_GROUPS_HEADLINE))
    }
}

/// Marks the groups of one kind that have too few requests to be compared with the others.
fn mark_few(rows: &mut [Row<'_>]) {
    let is_compared = |row: &Row<'_>| row.subject.excluded.is_none();
    let most = rows
        .iter()
        .filter(|row| is_compared(row))
        .map(|row| row.times.whole.count())
        .max()
        .unwrap_or(0);
    for row in rows.iter_mut().filter(|row| is_compared(row)) {
        let count = row.times.whole.count();
        // The largest groups are compared all the same.
        row.is_few = count < MIN_P99_REQUESTS && count.saturating_mul(10) < most;
    }
}

/// Returns the rows of each kind of object, the slowest first; the kind with the most total time
/// comes first.
fn kinds(latencies: &Latencies) -> Vec<(Kind, Vec<Row<'_>>)> {
    let mut kinds: Vec<(Kind, Vec<Row<'_>>)> = Vec::new();
    for each in &latencies.subjects {
        let kind = (each.0.prefix, each.0.first);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, rows)) => rows.push(Row::new(each)),
            None => kinds.push((kind, vec![Row::new(each)])),
        }
    }
    for (_, rows) in &mut kinds {
        mark_few(rows);
        rows.order_by_key(|row| {
            let slowest = Reverse((row.p99, row.times.whole.max(), Reverse(&row.subject.group)));
            (row.subject.excluded, row.is_few, slowest)
        });
    }
    let spent = |rows: &[Row<'_>], is_wanted: fn(&Row<'_>) -> bool| -> u128 {
        rows.iter()
            .filter(|row| is_wanted(row))
            .map(|row| row.times.whole.sum())
            .sum()
    };
    kinds.order_by_key(|(kind, rows)| {
        (
            Reverse((
                spent(rows, |row| row.subject.excluded.is_none()),
                spent(rows, |_| true),
            )),
            *kind,
        )
    });
    kinds
}

/// Limit on the rows of a table, unless all are wanted.
const MAX_ROWS: usize = 20;

/// Formats the answer in one line, and a table for each kind of object, with a histogram below each
/// row if `plots` is set.
pub fn text(latencies: &Latencies, names: &Names<'_>, plots: bool) -> String {
    let kinds = kinds(latencies);
    let mut text = answer(&kinds, latencies.span, names);
    for (index, (kind, rows)) in kinds.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let shown = if names.all {
            rows.len()
        } else {
            rows.len().min(MAX_ROWS)
        };
        let spreads: Vec<_> = rows[..shown].iter().map(|row| &row.times.whole).collect();
        let strips = plots.then(|| Strips::new(names, &spreads));
        if let Some(strips) = strips.as_ref().filter(|_| index == 0) {
            text = strips.legend() + &text;
        }
        Table::new(*kind, &rows[..shown], names).write(&mut text, &rows[..shown], strips.as_ref());
        if shown < rows.len() {
            let _ = writeln!(text, "... and {} more: --all", rows.len() - shown);
        }
    }
    text
}

/// Least share of the slow requests' time that a stage has if it is named.
const MIN_STAGE_SHARE: f64 = 0.5;

/// Names the slowest group of all if it stands out of the others of its kind; empty if there is only
/// one group.
fn answer(kinds: &[(Kind, Vec<Row<'_>>)], span: (Ticks, Ticks), names: &Names<'_>) -> String {
    let rows = || {
        kinds
            .iter()
            .flat_map(|(kind, rows)| rows.iter().map(move |row| (*kind, row)))
    };
    let is_measured = |row: &Row<'_>| row.headline().is_none() && row.times.whole.count() > 0;
    let measured = || rows().filter(|(_, row)| is_measured(row));
    let slowest = measured().reduce(|slowest, other| {
        if other.1.p99 > slowest.1.p99 {
            other
        } else {
            slowest
        }
    });
    let (Some((kind, row)), true) = (slowest, rows().count() > 1) else {
        return String::new();
    };
    let others: Vec<_> = measured()
        .filter(|(of, other)| *of == kind && !std::ptr::eq(*other, row))
        .map(|(_, other)| other)
        .collect();
    let line = if others.is_empty() || outlier::stands_out(row, &others, span) {
        named(kind, row, names)
    } else {
        shared(row, &others, names)
    };
    let lines = names
        .screen
        .width()
        .map_or_else(|| vec![line.clone()], |width| wrap(&line, width));
    let painted = lines.iter().map(|line| {
        names
            .screen
            .paint(HEAD, line.replace('\u{a0}', " "))
            .to_string()
            + "\n"
    });
    painted.collect::<String>() + "\n"
}

/// Formats a time whose number and unit stay on one line.
fn unbroken(nanos: u64) -> String {
    screen::time(nanos).replace(' ', "\u{a0}")
}

/// Describes a group that stands out, with the stage that has most of its slow requests' time.
fn named((_, first): Kind, row: &Row<'_>, names: &Names<'_>) -> String {
    let transport = names.tpoint(first).split('_').next().unwrap_or_default();
    // A connection needs no word for its kind.
    let who = match names.by {
        [one] if one == requests::CONNECTION => group(&row.subject.group),
        _ => names
            .group(&row.subject.group)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let most = row.most.filter(|most| most.share > MIN_STAGE_SHARE);
    let most = most.map_or_else(String::new, |LargestStage { stage, share }| {
        let start = names.common_start(std::iter::once(stage)).len();
        let [from, to] = [stage.0, stage.1].map(|tpoint| &names.tpoint(tpoint)[start..]);
        format!(" ({} of it {from} -> {to})", screen::percent(share, 0))
    });
    let width = names.screen.width().unwrap_or(usize::MAX);
    let words: Vec<_> = who
        .split(' ')
        .map(|word| shorten(word, width.saturating_sub(1)))
        .collect();
    let (who, p99) = (words.join(" "), unbroken(row.p99));
    let max = match unbroken(row.times.whole.max()) {
        max if max == p99 => String::new(),
        max => format!(", max {max}"),
    };
    format!("slowest: {transport} {who}, p99 {p99}{max}{most}")
}

/// Says that no group stands out: what delays all of them alike is probably no connection's own.
fn shared(slowest: &Row<'_>, others: &[&Row<'_>], names: &Names<'_>) -> String {
    let what = match names.by {
        [one] if one == requests::CONNECTION => "connection",
        _ => "group",
    };
    let rows = || others.iter().copied().chain([slowest]);
    let fastest = others.iter().map(|row| row.p99).min().unwrap_or_default();
    let (low, high) = (unbroken(fastest), unbroken(slowest.p99));
    let range = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    let why = if slowest.p99 >= fastest.saturating_mul(2) {
        // A wide range looks like a contradiction.
        ", which may be chance (few requests are slow)"
    } else if next::is_slow(slowest.times) || rows().all(|row| next::has_rare(row.times)) {
        ", so the cause is probably shared (a thread, a CPU)"
    } else {
        ""
    };
    let all = others.len() + 1;
    let max = rows().map(|row| row.times.whole.max()).max();
    let max = unbroken(max.unwrap_or_default());
    let longest = if max == high {
        String::new()
    } else {
        format!("; the slowest took {max}")
    };
    format!("no {what} stands out: p99 of all {all} is {range}{why}{longest}")
}

/// Formats the rows as JSON, one object each.
pub fn json(latencies: &Latencies, names: &Names<'_>) -> String {
    let mut text = String::new();
    for ((prefix, first), rows) in kinds(latencies) {
        for (index, row) in rows.iter().enumerate() {
            let (rank, object, first) = (
                index + 1,
                quoted(&prefix.to_string()),
                quoted(names.tpoint(first)),
            );
            let envelope = begin("latency.summary");
            let _ = write!(
                text,
                "{envelope},\"summary\":{rank},\"object\":{object},\"first\":{first}"
            );
            if let Some(excluded) = row.subject.excluded {
                let _ = write!(text, ",\"excluded\":\"{}\"", excluded.word());
            }
            if row.is_few {
                text.push_str(",\"few\":true");
            }
            text.push_str(&names.json_group(&row.subject.group));
            let (count, unfinished) = (row.times.whole.count(), row.times.unfinished);
            let _ = write!(text, ",\"count\":{count},\"unfinished\":{unfinished}");
            let (p50, p99, max) = (row.p50, row.p99, row.times.whole.max());
            let _ = write!(
                text,
                ",\"p50_ns\":{p50},\"p99_ns\":{p99},\"max_ns\":{max},\"most_of_p99\":"
            );
            let _ = match row.most {
                Some(LargestStage {
                    stage: (from, to),
                    share,
                }) => {
                    let (from, to) = (quoted(names.tpoint(from)), quoted(names.tpoint(to)));
                    writeln!(
                        text,
                        "{{\"from\":{from},\"to\":{to},\"share\":{share:.3}}}}}"
                    )
                }
                None => writeln!(text, "null}}"),
            };
        }
    }
    text
}
