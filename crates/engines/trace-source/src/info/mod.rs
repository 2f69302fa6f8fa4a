//! `--info` and `--list-tpoints`: descriptions of a trace file.

mod captured;
pub mod json;
mod tpoints;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use screen::{Screen, counted, shorten, wrap};
use spdk_trace::{Lcore, Problems, RawTrace, RingSummary, Ticks, Trace};

use crate::{LoadedTrace, MeasuredRate};

pub use captured::without_trace;
pub use tpoints::tpoints;

/// Output of `--info`.
pub struct Info {
    /// Description.
    pub text: String,
    /// Number of records.
    pub records: u64,
    /// Problems of the trace.
    pub problems: Problems,
}

/// Limit on the owners listed without `--all`: a target may have thousands of connections.
const MAX_LISTED_OWNERS: usize = 20;

/// Describes a trace for `--info`; `all` lists all its owners.
pub fn info(loaded: &LoadedTrace, screen: Screen, all: bool) -> Info {
    let mut text = String::new();
    let LoadedTrace {
        trace,
        name,
        measured,
        capture,
    } = loaded;
    line(
        &mut text,
        "trace",
        &screen
            .width()
            .map_or_else(|| name.into(), |width| shorten(name, width - VALUE)),
        screen,
    );
    let rate = trace.tick_rate().get();
    let (records, problems) = match trace {
        Trace::Raw(raw) => {
            raw_info(&mut text, raw, *measured, screen);
            (raw.record_count(), raw.problems().clone())
        }
        Trace::Json(_) => json_info(&mut text, trace, rate, screen),
        Trace::Captured(captured) => {
            captured::info(&mut text, (captured, capture.as_deref()), *measured, screen)
        }
    };
    let owners = trace.owners();
    if !owners.is_empty() {
        line(&mut text, "owners", &owners.len().to_string(), screen);
        let shown = if all {
            owners.len()
        } else {
            owners.len().min(MAX_LISTED_OWNERS)
        };
        for (id, description) in owners.iter().take(shown) {
            let _ = writeln!(text, "{}", screen.cut(&format!("  {id:>5}  {description}")));
        }
        if shown < owners.len() {
            let _ = writeln!(text, "... and {} more: --all", owners.len() - shown);
        }
    }
    Info {
        text,
        records,
        problems,
    }
}

/// Column at which values start.
const VALUE: usize = 13;

/// Appends a line about one thing. On a terminal, a long value is wrapped.
pub fn line(text: &mut String, what: &str, value: &str, screen: Screen) {
    let what = format!("{what}:");
    let value = screen.width().map_or_else(
        || value.to_owned(),
        |width| wrap(value, width - VALUE).join(&format!("\n{:VALUE$}", "")),
    );
    let _ = writeln!(text, "{what:<12} {value}");
}

/// Columns of the table of rings: the head, and the width in files and pipes.
const RING: [(&str, usize); 9] = [
    ("lcore", 5),
    ("thread", 17),
    ("slots", 10),
    ("written", 12),
    ("records", 10),
    ("wrapped", 10),
    ("late", 7),
    ("first (us)", 16),
    ("last (us)", 16),
];
/// Index of the column of names, which are aligned to the left.
const THREAD: usize = 1;
/// Index of the column of records that are not in time order: few rings have any.
const LATE_COLUMN: usize = 6;
/// Minimum width of the column of names.
const MIN_NAME_WIDTH: usize = 8;

/// Appends the head, and one row for each ring. On a terminal, columns are as wide as their
/// content.
fn ring_table(text: &mut String, rows: &[[String; RING.len()]], screen: Screen) {
    let head = RING.map(|(head, _)| head.to_owned());
    let is_shown = |column: usize| {
        !screen.is_terminal()
            || column != LATE_COLUMN
            || rows.iter().any(|row| row[LATE_COLUMN] != "0")
    };
    let columns: Vec<usize> = (0..RING.len()).filter(|&column| is_shown(column)).collect();
    let mut widths = RING.map(|(_, width)| width);
    if let Some(width) = screen.width() {
        for &column in &columns {
            let cells = rows
                .iter()
                .chain([&head])
                .map(|row| screen::columns(&row[column]));
            widths[column] = cells.max().unwrap_or_default();
        }
        let taken = columns
            .iter()
            .map(|&column| widths[column] + 1)
            .sum::<usize>()
            - 1;
        let name = widths[THREAD];
        widths[THREAD] = name
            .saturating_sub(taken.saturating_sub(width))
            .max(MIN_NAME_WIDTH.min(name));
    }
    for row in [&head].into_iter().chain(rows) {
        let cell = |&column: &usize| match column {
            THREAD if screen.is_terminal() => {
                screen::pad(&shorten(&row[THREAD], widths[THREAD]), widths[THREAD])
            }
            // In files there is one more blank in front of names.
            THREAD => format!(" {:<1$}", row[THREAD], widths[THREAD] - 1),
            _ => screen::pad_left(&row[column], widths[column]),
        };
        let line = columns.iter().map(cell).collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "{}", screen.cut(&line));
    }
}

fn raw_info(text: &mut String, raw: &RawTrace, measured: Option<MeasuredRate>, screen: Screen) {
    line(
        text,
        "era",
        &format!("{:?} (SPDK {})", raw.era(), raw.era().versions()),
        screen,
    );
    let measured = measured.map_or_else(String::new, |measured| format!(" ({measured})"));
    line(
        text,
        "tick rate",
        &format!("{} ticks/s{measured}", raw.tick_rate().get()),
        screen,
    );
    line(
        text,
        "tracepoints",
        &raw.tpoints().all().len().to_string(),
        screen,
    );
    line(text, "records", &raw.record_count().to_string(), screen);
    text.push('\n');
    let rings: Vec<_> = raw.rings().collect();
    let first = rings
        .iter()
        .filter_map(|ring| ring.span)
        .map(|(first, _)| first)
        .min()
        .unwrap_or_default();
    let used = rings
        .iter()
        .filter(|ring| ring.records > 0 || ring.written > 0);
    let row = |ring: &RingSummary| {
        let at = |tsc: Ticks| raw.tick_rate().nanos(Ticks(tsc.0 - first.0)).to_string();
        let (begin, end) = ring
            .span
            .map_or((String::new(), String::new()), |(a, b)| (at(a), at(b)));
        [
            ring.lcore.to_string(),
            ring.thread_name.clone(),
            ring.slots.to_string(),
            ring.written.to_string(),
            ring.records.to_string(),
            if ring.wrapped { "yes" } else { "no" }.to_owned(),
            ring.late.to_string(),
            begin,
            end,
        ]
    };
    ring_table(text, &used.map(row).collect::<Vec<_>>(), screen);
    rest_of_rings(text, raw, &rings, screen);
}

/// Appends the facts missing from the table of rings: idle lcores, cleared records, and problems.
fn rest_of_rings(text: &mut String, raw: &RawTrace, rings: &[RingSummary], screen: Screen) {
    let idle = rings
        .iter()
        .filter(|ring| ring.records == 0 && ring.written == 0)
        .count();
    if idle > 0 {
        let (s, have) = if idle == 1 {
            ("", "has")
        } else {
            ("s", "have")
        };
        let line = format!("{idle} more lcore{s} {have} a ring and no records");
        let _ = writeln!(text, "{}", screen.cut(&line));
    }
    let cleared: u64 = rings.iter().map(|ring| ring.cleared).sum();
    if cleared > 0 {
        let _ = writeln!(
            text,
            "{} cleared by the user: not shown",
            counted(cleared, "record")
        );
    }
    text.push('\n');
    if raw.problems().is_empty() {
        let wrapped = rings.iter().any(|ring| ring.wrapped);
        line(
            text,
            "lost",
            if wrapped {
                "only what the wrapped rings overwrote"
            } else {
                "nothing"
            },
            screen,
        );
    }
    for finding in raw.problems().iter() {
        line(text, "problem", &finding.to_string(), screen);
    }
}

/// Number of records, and the times of the first and the last, by lcore.
pub type Lcores = BTreeMap<Lcore, (u64, Ticks, Ticks)>;

/// Collects the lcores of a document, and the problems found.
pub fn lcores_of(trace: &Trace) -> (Lcores, Problems) {
    let mut lcores = Lcores::new();
    let problems = trace.for_each(|record| {
        let lcore = lcores
            .entry(record.lcore)
            .or_insert((0, record.tsc, record.tsc));
        *lcore = (
            lcore.0 + 1,
            lcore.1.min(record.tsc),
            lcore.2.max(record.tsc),
        );
        ControlFlow::Continue(())
    });
    (lcores, problems)
}

fn json_info(text: &mut String, trace: &Trace, rate: u64, screen: Screen) -> (u64, Problems) {
    let (lcores, problems) = lcores_of(trace);
    let records: u64 = lcores.values().map(|(records, ..)| records).sum();
    line(
        text,
        "form",
        "JSON of spdk_trace, which does not show whether rings wrapped",
        screen,
    );
    line(text, "tick rate", &format!("{rate} ticks/s"), screen);
    line(
        text,
        "tracepoints",
        &trace.tpoints().all().len().to_string(),
        screen,
    );
    line(text, "records", &records.to_string(), screen);
    let head = format!(
        "{:>5}  {:>10} {:>16} {:>16}",
        "lcore", "records", "first (us)", "last (us)"
    );
    let _ = writeln!(text, "\n{}", screen.cut(&head));
    let start = lcores
        .values()
        .map(|(_, first, _)| *first)
        .min()
        .unwrap_or_default();
    for (lcore, (records, first, last)) in &lcores {
        let at = |tsc: &Ticks| trace.tick_rate().nanos(Ticks(tsc.0 - start.0)).to_string();
        let row = format!(
            "{lcore:>5}  {records:>10} {:>16} {:>16}",
            at(first),
            at(last)
        );
        let _ = writeln!(text, "{}", screen.cut(&row));
    }
    text.push('\n');
    if problems.is_empty() {
        line(text, "lost", "nothing of the document", screen);
    }
    for finding in problems.iter() {
        line(text, "problem", &finding.to_string(), screen);
    }
    (records, problems)
}
