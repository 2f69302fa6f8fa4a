//! Table of a kind of objects: its columns, and how they fit the terminal.

use screen::{HEAD, LARGEST, NAME, columns, pad, pad_left, shorten, squeezed, wrap};

use super::{Kind, Row};
use crate::names::{MAX_OMITTED_PARTS, Names, shortened, without_parts};
use crate::plot::Strips;
use crate::tables::{SHORT_TIME_WIDTH, TIME_WIDTH};

/// Headline of the last column.
const P99_HEADLINE: &str = "most of p99";

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
    /// stays, and the maximum shows stalls that are too rare for a percentile.
    const LEAVE_OUT: [Self; 3] = [Self::P50, Self::Requests, Self::Max];

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
pub(super) struct Table<'a> {
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
const MIN_GROUP_WIDTH: usize = 32;
/// Width kept for the starts of stages on the narrowest terminal, in columns.
const MIN_STAGE_WIDTH: usize = 8;

impl<'a> Table<'a> {
    pub(super) fn new((prefix, first): Kind, rows: &[Row<'_>], names: &'a Names<'a>) -> Self {
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
                SHORT_TIME_WIDTH
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
            let least = this.longest_group().min(MIN_GROUP_WIDTH);
            this.group_width = this
                .group_width
                .min(room(this.longest_stage()).max(least))
                .min(room(MIN_STAGE_WIDTH));
        }
        this
    }

    /// Shortens names, and then leaves out columns, until all fit. Parts that distinguish a row are
    /// left out last.
    fn fit(&mut self, width: usize, rows: &[Row<'_>]) {
        let names = self.names;
        if self.fits(width) {
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
        if self.fits(width) {
            return;
        }
        let whole = std::mem::take(&mut self.groups);
        // With several fields, a part may be one of them.
        let most = if names.by.len() == 1 {
            MAX_OMITTED_PARTS
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
            if self.fits(width) {
                return;
            }
        }
        self.leave_out_columns(width);
    }

    fn fits(&self, width: usize) -> bool {
        self.longest_group() + self.numbers() + self.longest_stage() <= width
    }

    /// Leaves out columns until all fit; names are cut to their least length first.
    fn leave_out_columns(&mut self, width: usize) {
        let mut left_out = Vec::new();
        for column in Column::LEAVE_OUT {
            if self.fits(width) {
                break;
            }
            for group in &mut self.groups {
                *group = squeezed(group, MIN_GROUP_WIDTH).into_owned();
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
            .max(P99_HEADLINE.len())
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

    pub(super) fn write(&self, text: &mut String, rows: &[Row<'_>], strips: Option<&Strips<'_>>) {
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
            &screen
                .paint(HEAD, format!("{head}  {P99_HEADLINE}"))
                .to_string(),
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

pub(super) fn group(values: &[Option<Box<str>>]) -> String {
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
