//! `--summary`: a row for each group, the slowest first; those that wait by design come last.

use std::cmp::Reverse;
use std::fmt::Write as _;

use requests::Excluded;
use screen::{HEAD, LARGEST, NAME, columns, pad, pad_left, shorten, wrap};
use text::json::{begin, quoted};

use super::names::{LEFT_OUT_MOST, Names, shortened, squeezed, without_parts};
use super::plot::Strips;
use super::stages::{Latencies, Subject, Times};
use super::tables::{SHORT_TIME, TIME_WIDTH};
use super::tail::Largest;

/// Kind of objects, created by one tracepoint.
type Kind = (char, u16);

/// Row of a group.
struct Row<'a> {
    subject: &'a Subject,
    times: &'a Times,
    p50: u64,
    p99: u64,
    /// Stage with the largest part of the slowest hundredth.
    most: Option<Largest>,
    /// True if there are too few requests for a percentile, while other groups have enough.
    is_few: bool,
}

/// Number of requests below which a 99th percentile is one request. A group is then not compared by
/// it, unless it has at least a tenth of the requests of the largest group of its kind.
const FEW: u64 = 20;
/// Headline above the rows of such groups.
const FEW_HEADLINE: &str = "fewer than 20 requests, too few for a p99";

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
            .or(self.is_few.then_some(FEW_HEADLINE))
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
        row.is_few = count < FEW && count.saturating_mul(10) < most;
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
        rows.sort_by_key(|row| {
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
    kinds.sort_by_key(|(kind, rows)| {
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
const MOST_ROWS: usize = 20;

/// Formats the answer in one line, and a table for each kind of object, with a histogram below each
/// row if `plots` is set.
pub fn text(latencies: &Latencies, names: &Names<'_>, plots: bool) -> String {
    let kinds = kinds(latencies);
    let mut text = answer(&kinds, names);
    for (index, (kind, rows)) in kinds.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let shown = if names.all {
            rows.len()
        } else {
            rows.len().min(MOST_ROWS)
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

/// Names the slowest group of all; empty if there is only one.
fn answer(kinds: &[(Kind, Vec<Row<'_>>)], names: &Names<'_>) -> String {
    let rows = || {
        kinds
            .iter()
            .flat_map(|((_, first), rows)| rows.iter().map(move |row| (*first, row)))
    };
    let is_measured = |row: &Row<'_>| row.headline().is_none() && row.times.whole.count() > 0;
    let measured = rows().filter(|(_, row)| is_measured(row));
    let slowest = measured.reduce(|slowest, other| {
        if other.1.p99 > slowest.1.p99 {
            other
        } else {
            slowest
        }
    });
    let (Some((first, row)), true) = (slowest, rows().count() > 1) else {
        return String::new();
    };
    let transport = names.tpoint(first).split('_').next().unwrap_or_default();
    // A connection needs no word for its kind.
    let who = match names.by {
        [one] if one == requests::CONNECTION => group(&row.subject.group),
        _ => names
            .group(&row.subject.group)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let most = row
        .most
        .map_or_else(String::new, |Largest { stage, share }| {
            let start = names.common_start(std::iter::once(stage)).len();
            let [from, to] = [stage.0, stage.1].map(|tpoint| &names.tpoint(tpoint)[start..]);
            format!(" ({} of it {from} -> {to})", screen::percent(share, 0))
        });
    // A number and its unit stay on one line.
    let p99 = screen::time(row.p99).replace(' ', "\u{a0}");
    let line = |who: &str| format!("slowest: {transport} {who}, p99 {p99}{most}");
    let lines = names.screen.width().map_or_else(
        || vec![line(&who)],
        |width| {
            let words: Vec<_> = who
                .split(' ')
                .map(|word| shorten(word, width.saturating_sub(1)))
                .collect();
            wrap(&line(&words.join(" ")), width)
        },
    );
    let painted = lines.iter().map(|line| {
        names
            .screen
            .paint(HEAD, line.replace('\u{a0}', " "))
            .to_string()
            + "\n"
    });
    painted.collect::<String>() + "\n"
}

/// Headline of the last column.
const MOST: &str = "most of p99";

/// Columns of numbers, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Requests,
    P50,
    P99,
    Max,
}

impl Column {
    const ALL: [Self; 4] = [Self::Requests, Self::P50, Self::P99, Self::Max];
    /// Columns to leave out if there is no room, in this order. The rows are sorted by the one that
    /// stays.
    const LEAVE_OUT: [Self; 3] = [Self::Max, Self::P50, Self::Requests];

    fn head(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    fn value(self, row: &Row<'_>, names: &Names<'_>) -> String {
        let time = |nanos| {
            if row.times.whole.count() > 0 {
                names.time(nanos)
            } else {
                "-".into()
            }
        };
        match self {
            Self::Requests => row.objects().to_string(),
            Self::P50 => time(row.p50),
            Self::P99 => time(row.p99),
            Self::Max => time(row.times.whole.max()),
        }
    }
}

/// Layout of a table.
struct Table<'a> {
    names: &'a Names<'a>,
    title: String,
    /// Lines on what was left out of the groups' names and the columns.
    shared: Vec<String>,
    groups: Vec<String>,
    stages: Vec<String>,
    columns: Vec<Column>,
    group_width: usize,
    count_width: usize,
    time_width: usize,
}

/// Least width of a group's name, in columns, if the terminal has them: enough for a peer, both
/// ends of an NQN, and a queue.
const LEAST_GROUP: usize = 32;
/// Width kept for the starts of stages on the narrowest terminal, in columns.
const LEAST_STAGE: usize = 8;

impl<'a> Table<'a> {
    fn new((prefix, first): Kind, rows: &[Row<'_>], names: &'a Names<'a>) -> Self {
        let count = |row: &Row<'_>| row.objects().to_string().len();
        let mut this = Self {
            names,
            title: format!("{prefix} from {}", names.tpoint(first)),
            shared: Vec::new(),
            groups: rows.iter().map(|row| group(&row.subject.group)).collect(),
            stages: rows
                .iter()
                .map(|row| most(row, |stage| names.stage(stage)))
                .collect(),
            columns: Column::ALL.to_vec(),
            group_width: 0,
            count_width: rows
                .iter()
                .map(count)
                .max()
                .unwrap_or(0)
                .max(Column::Requests.head().len())
                + 1,
            time_width: if names.screen.is_terminal() {
                SHORT_TIME
            } else {
                TIME_WIDTH + 1
            },
        };
        if let Some(width) = names.screen.width() {
            this.fit(width, rows);
        }
        this.group_width = this.longest_group().max(columns(&this.head()));
        if let Some(width) = names.screen.width() {
            let room = |stage: usize| width.saturating_sub(this.numbers() + stage);
            let least = this.longest_group().min(LEAST_GROUP);
            this.group_width = this
                .group_width
                .min(room(this.longest_stage()).max(least))
                .min(room(LEAST_STAGE));
        }
        this
    }

    /// Shortens names, and then leaves out columns, until all fit. Parts that distinguish a row are
    /// left out last.
    fn fit(&mut self, width: usize, rows: &[Row<'_>]) {
        let names = self.names;
        let fits =
            |this: &Self| this.longest_group() + this.numbers() + this.longest_stage() <= width;
        if fits(self) {
            return;
        }
        let start = names
            .common_start(rows.iter().filter_map(|row| Some(row.most?.stage)))
            .len();
        let short = |(from, to): (u16, u16)| {
            format!(
                "{} -> {}",
                &names.tpoint(from)[start..],
                &names.tpoint(to)[start..]
            )
        };
        self.stages = rows.iter().map(|row| most(row, short)).collect();
        if fits(self) {
            return;
        }
        let whole = std::mem::take(&mut self.groups);
        // With several fields, a part may be one of them.
        let most = if names.by.len() == 1 {
            LEFT_OUT_MOST
        } else {
            0
        };
        for number in 0..=most {
            let (left, parts) = without_parts(&whole, number);
            let short = shortened(&left);
            let head = self.head();
            (self.groups, self.shared) = (
                short.names,
                short
                    .shared
                    .iter()
                    .map(|shared| format!("{head}: {shared}"))
                    .collect(),
            );
            if !parts.is_empty() {
                self.shared
                    .push(format!("left out for want of room: {}", parts.join(", ")));
            }
            if fits(self) {
                return;
            }
        }
        let mut left_out = Vec::new();
        for column in Column::LEAVE_OUT {
            if fits(self) {
                break;
            }
            for group in &mut self.groups {
                *group = squeezed(group, LEAST_GROUP).into_owned();
            }
            self.columns.retain(|it| *it != column);
            left_out.push(column.head());
        }
        if !left_out.is_empty() {
            self.shared.push(format!(
                "columns left out for want of room: {}",
                left_out.join(", ")
            ));
        }
    }

    fn longest_group(&self) -> usize {
        self.groups
            .iter()
            .map(|group| columns(group))
            .max()
            .unwrap_or(0)
    }

    fn longest_stage(&self) -> usize {
        self.stages
            .iter()
            .map(|stage| columns(stage))
            .max()
            .unwrap_or(0)
            .max(MOST.len())
    }

    fn width_of(&self, column: Column) -> usize {
        if column == Column::Requests {
            self.count_width
        } else {
            self.time_width
        }
    }

    /// Returns the width of the numbers and the blanks after them.
    fn numbers(&self) -> usize {
        self.columns
            .iter()
            .map(|column| self.width_of(*column))
            .sum::<usize>()
            + 2
    }

    /// Returns the headline of the groups.
    fn head(&self) -> String {
        if self.names.by.is_empty() {
            "all".to_owned()
        } else {
            self.names.by.join(", ")
        }
    }

    fn write(&self, text: &mut String, rows: &[Row<'_>], strips: Option<&Strips<'_>>) {
        let screen = self.names.screen;
        let unit = if screen.is_terminal() { "" } else { " (us)" };
        let title = format!("{}, slowest p99 first{unit}", self.title);
        self.line(text, &screen.paint(HEAD, title).to_string());
        if let Some(width) = screen.width() {
            self.shared
                .iter()
                .flat_map(|line| wrap(line, width))
                .for_each(|line| self.line(text, &line));
        }
        let mut head = pad(&shorten(&self.head(), self.group_width), self.group_width);
        for column in &self.columns {
            head.push_str(&pad_left(column.head(), self.width_of(*column)));
        }
        self.line(
            text,
            &screen.paint(HEAD, format!("{head}  {MOST}")).to_string(),
        );
        if let Some(strips) = strips {
            strips.ruler(text);
        }
        let mut above: Option<&str> = None;
        for (index, row) in rows.iter().enumerate() {
            if let Some(headline) = row.headline().filter(|headline| above != Some(*headline)) {
                self.line(
                    text,
                    &screen.paint(HEAD, format!("{headline}:")).to_string(),
                );
                above = Some(headline);
            }
            self.row(text, index, row, rows.len() > 1);
            if let Some(strips) = strips {
                strips.strip(text, &row.times.whole);
            }
        }
    }

    fn row(&self, text: &mut String, index: usize, row: &Row<'_>, has_others: bool) {
        let screen = self.names.screen;
        // With several rows, the first is the slowest.
        let is_worst = index == 0 && has_others && row.headline().is_none();
        let worst = if is_worst {
            LARGEST
        } else {
            screen::Style::new()
        };
        let group = pad(
            &squeezed(&self.groups[index], self.group_width),
            self.group_width,
        );
        let mut line = screen.paint(NAME, group).to_string();
        for column in &self.columns {
            let value = pad_left(&column.value(row, self.names), self.width_of(*column));
            let style = if *column == Column::P99 {
                worst
            } else {
                screen::Style::new()
            };
            line.push_str(&screen.paint(style, value).to_string());
        }
        self.line(
            text,
            &format!("{line}  {}", screen.paint(worst, &self.stages[index])),
        );
    }

    fn line(&self, text: &mut String, line: &str) {
        text.push_str(&self.names.screen.cut(line));
        text.push('\n');
    }
}

fn group(values: &[Option<Box<str>>]) -> String {
    if values.is_empty() {
        return "all".to_owned();
    }
    values
        .iter()
        .map(|value| value.as_deref().unwrap_or("-"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats a stage's name and its share.
fn most(row: &Row<'_>, name: impl Fn((u16, u16)) -> String) -> String {
    row.most.map_or_else(
        || "-".to_owned(),
        |most| format!("{} {}", name(most.stage), screen::percent(most.share, 0)),
    )
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
                Some(Largest {
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
