//! Tables, one for each group and object, with a row for each stage.

use std::cmp::Reverse;
use std::fmt::Write as _;

use ordering::Order as _;
use screen::{HEAD, LARGEST, NAME, columns, pad, shorten, squeezed};
use stats::Histogram;

use super::names::{Names, micros};
use super::quantiles::QUANTILES;
use super::stages::{Latencies, Stage, Subject, Times};

/// Width of a time in microseconds with three decimals, in columns.
pub const TIME_WIDTH: usize = 12;
/// Width of a time with its unit and the blank before it, in columns.
pub const SHORT_TIME_WIDTH: usize = 8;

/// Limit on the tables printed, unless all are wanted.
const MAX_TABLES: usize = 20;

/// Formats tables, one for each group and object. If there are too many, only those of the slowest
/// objects, the slowest first.
pub fn tables(latencies: &Latencies, names: &Names<'_>) -> String {
    let shown = TableSelection::new(latencies, names);
    let mut text = String::new();
    for (i, (subject, times)) in shown.subjects.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        match names.screen.width() {
            None => table(&mut text, subject, times, names),
            Some(width) => FittedTable::new(times, names, width).write(&mut text, subject, times),
        }
    }
    shown.rest(&mut text, "tables");
    text
}

/// Groups and objects to show: all, or the slowest.
pub struct TableSelection<'a> {
    /// Subjects to show.
    pub subjects: Vec<&'a (Subject, Times)>,
    left_out: usize,
}

impl<'a> TableSelection<'a> {
    /// Chooses the subjects to show.
    pub fn new(latencies: &'a Latencies, names: &Names<'_>) -> Self {
        let mut subjects: Vec<&(Subject, Times)> = latencies.subjects.iter().collect();
        let all = subjects.len();
        if !names.all && all > MAX_TABLES {
            // Requests that wait by design do not answer who is slow.
            subjects.order_by_key(|(subject, times)| {
                (subject.excluded, Reverse(times.whole.quantile(0.99)))
            });
            subjects.truncate(MAX_TABLES);
        }
        Self {
            left_out: all - subjects.len(),
            subjects,
        }
    }

    /// Adds a line on the subjects left out, if there are any.
    pub fn rest(&self, text: &mut String, what: &str) {
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "\n... and {} more {what}, which are faster: --all",
                self.left_out
            );
        }
    }
}

/// Returns a subject's stages in the order in which they are passed.
pub fn in_order(times: &Times) -> Vec<(&(u16, u16), &Stage)> {
    let mut stages: Vec<_> = times.stages.iter().collect();
    stages.order_by_key(|(tpoints, stage)| (stage.place(), **tpoints));
    stages
}

fn title(subject: &Subject, times: &Times, names: &Names<'_>) -> String {
    let objects = times.whole.count() + times.unfinished;
    let s = if objects == 1 { "" } else { "s" };
    let mut text = format!(
        "{objects} object{s} {} from {}",
        subject.prefix,
        names.tpoint(subject.first)
    );
    if times.unfinished > 0 {
        let _ = write!(text, " ({} unfinished)", times.unfinished);
    }
    if let Some(excluded) = subject.excluded {
        let _ = write!(text, ", {}", excluded.in_title());
    }
    text
}

/// Adds the title with its groups, which go on lines of their own if a terminal has no room for
/// them beside it.
pub fn titled(text: &mut String, subject: &Subject, times: &Times, names: &Names<'_>) {
    let screen = names.screen;
    let title = title(subject, times, names);
    let groups: Vec<_> = names.group(&subject.group).collect();
    let together = groups.iter().fold(columns(&title), |sum, group| {
        sum + ", ".len() + columns(group)
    });
    let separator = if screen.width().is_none_or(|width| together <= width) {
        ", "
    } else {
        "\n  "
    };
    let mut lines = screen.paint(HEAD, title).to_string();
    for group in &groups {
        let group = screen.width().map_or(group.into(), |width| {
            squeezed(group, width - separator.len())
        });
        lines.push_str(separator);
        lines.push_str(&screen.paint(NAME, group).to_string());
    }
    for line in lines.lines() {
        text.push_str(&screen.cut(line));
        text.push('\n');
    }
}

fn table(text: &mut String, subject: &Subject, times: &Times, names: &Names<'_>) {
    titled(text, subject, times, names);
    let stages = in_order(times);
    let width = stages
        .iter()
        .map(|(tpoints, _)| names.stage(**tpoints).chars().count())
        .max()
        .unwrap_or(0)
        .max(12);
    let _ = write!(
        text,
        "  {:<width$} {:>9} {:>6} {:>TIME_WIDTH$}",
        "stage (us)", "count", "share", "mean"
    );
    for (name, _) in QUANTILES {
        let _ = write!(text, " {name:>TIME_WIDTH$}");
    }
    let _ = writeln!(text, " {:>TIME_WIDTH$}", "max");
    let total: u128 = stages.iter().map(|(_, stage)| stage.spread.sum()).sum();
    for (tpoints, stage) in &stages {
        row(
            text,
            &names.stage(**tpoints),
            width,
            &stage.spread,
            Some(total),
        );
    }
    if times.whole.count() > 0 {
        row(text, "whole", width, &times.whole, None);
    }
}

/// Formats the share of all time; empty if the total is 0.
pub fn share(spread: &Histogram, total: u128) -> String {
    if total == 0 {
        String::new()
    } else {
        screen::percent(spread.sum() as f64 / total as f64, 1)
    }
}

fn row(text: &mut String, label: &str, width: usize, spread: &Histogram, total: Option<u128>) {
    let share = total.map_or_else(String::new, |total| share(spread, total));
    let _ = write!(
        text,
        "  {label:<width$} {:>9} {share:>6} {:>TIME_WIDTH$}",
        spread.count(),
        micros(spread.mean())
    );
    for (_, quantile) in QUANTILES {
        let _ = write!(text, " {:>TIME_WIDTH$}", micros(spread.quantile(quantile)));
    }
    let _ = writeln!(text, " {:>TIME_WIDTH$}", micros(spread.max()));
}

/// Column of times.
type Column = (&'static str, fn(&Histogram) -> u64);

/// Columns of a table on a terminal, the most important first: if there is no room for all, the
/// last are left out.
const COLUMNS: [Column; 6] = [
    ("max", Histogram::max),
    ("p99", |spread| spread.quantile(0.99)),
    ("p50", |spread| spread.quantile(0.5)),
    ("mean", Histogram::mean),
    ("p90", |spread| spread.quantile(0.9)),
    ("p99.9", |spread| spread.quantile(0.999)),
];
/// Display order of the columns.
const ORDER: [&str; 6] = ["mean", "p50", "p90", "p99", "p99.9", "max"];
/// Least number of columns.
const MIN_COLUMNS: usize = 3;
/// Width of `100.0%` and the blank before it, in columns.
const SHARE_WIDTH: usize = 7;

/// Table that fits a terminal.
struct FittedTable<'a> {
    names: &'a Names<'a>,
    /// Prefix that is left out of the names of tracepoints.
    start: &'a str,
    label: usize,
    count: usize,
    columns: Vec<Column>,
}

impl<'a> FittedTable<'a> {
    fn new(times: &Times, names: &'a Names<'a>, width: usize) -> Self {
        let stages = || times.stages.keys().copied();
        let longest = |start: usize| {
            stages()
                .map(|stage| columns(&label(names, stage, start)))
                .max()
                .unwrap_or(0)
                .max(12)
        };
        let counts = stages_counts(times)
            .map(|count| count.to_string().len())
            .max()
            .unwrap_or(0)
            .max("count".len());
        let room = width.saturating_sub("  ".len() + 1 + counts + SHARE_WIDTH);
        let whole = room >= longest(0) + COLUMNS.len() * SHORT_TIME_WIDTH;
        let start = if whole {
            ""
        } else {
            names.common_start(stages())
        };
        let wanted = longest(start.len()).max(columns(&head(start)));
        let shown =
            (room.saturating_sub(wanted) / SHORT_TIME_WIDTH).clamp(MIN_COLUMNS, COLUMNS.len());
        let mut columns = COLUMNS[..shown].to_vec();
        columns.order_by_key(|(name, _)| ORDER.iter().position(|it| it == name));
        Self {
            names,
            start,
            label: wanted.min(room.saturating_sub(shown * SHORT_TIME_WIDTH)),
            count: counts,
            columns,
        }
    }

    fn write(&self, text: &mut String, subject: &Subject, times: &Times) {
        let screen = self.names.screen;
        titled(text, subject, times, self.names);
        let head = head(self.start);
        let count = self.count + 1;
        let mut line = format!(
            "  {}{:>count$}{:>SHARE_WIDTH$}",
            pad(&shorten(&head, self.label), self.label),
            "count",
            "share"
        );
        for (name, _) in &self.columns {
            let _ = write!(line, "{name:>SHORT_TIME_WIDTH$}");
        }
        self.line(text, &screen.paint(HEAD, line).to_string());
        let stages = in_order(times);
        let total: u128 = stages.iter().map(|(_, stage)| stage.spread.sum()).sum();
        let most = stages.iter().map(|(_, stage)| stage.spread.sum()).max();
        for (tpoints, stage) in &stages {
            let row = self.row(
                &label(self.names, **tpoints, self.start.len()),
                &stage.spread,
                &share(&stage.spread, total),
            );
            let is_most = stages.len() > 1 && Some(stage.spread.sum()) == most;
            let row = if is_most {
                screen.paint(LARGEST, row).to_string()
            } else {
                row
            };
            self.line(text, &row);
        }
        if times.whole.count() > 0 {
            self.line(
                text,
                &screen
                    .paint(HEAD, self.row("whole", &times.whole, ""))
                    .to_string(),
            );
        }
    }

    fn row(&self, label: &str, spread: &Histogram, share: &str) -> String {
        let count = self.count + 1;
        let mut row = format!(
            "  {}{:>count$}{share:>SHARE_WIDTH$}",
            pad(&shorten(label, self.label), self.label),
            spread.count()
        );
        for (_, value) in &self.columns {
            let _ = write!(row, "{:>SHORT_TIME_WIDTH$}", screen::time(value(spread)));
        }
        row
    }

    fn line(&self, text: &mut String, line: &str) {
        text.push_str(&self.names.screen.cut(line));
        text.push('\n');
    }
}

/// Returns the headline of the first column.
fn head(start: &str) -> String {
    if start.is_empty() {
        "stage".to_owned()
    } else {
        format!("stage ({start}...)")
    }
}

/// Returns the counts of all rows.
fn stages_counts(times: &Times) -> impl Iterator<Item = u64> {
    times
        .stages
        .values()
        .map(|stage| stage.spread.count())
        .chain([times.whole.count()])
}

/// Formats a stage's name without the first bytes of its tracepoints' names.
fn label(names: &Names<'_>, (from, to): (u16, u16), start: usize) -> String {
    format!(
        "{} -> {}",
        &names.tpoint(from)[start..],
        &names.tpoint(to)[start..]
    )
}
