//! Histograms of each stage's times. Columns are times, on a logarithmic axis that all stages
//! share, which shows a second mode and the stage that causes it. Heights are logarithmic too, so
//! that one of a million is visible.

mod axis;
mod marks;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use screen::{HEAD, QUIET, WARN, columns};

use super::names::Names;
use super::stages::{Latencies, Subject, Times};
use super::tables::{TableSelection, in_order, share, titled};
use axis::Axis;
use marks::Marks;
use stats::Histogram;

/// Height of a histogram, in rows.
const HISTOGRAM_ROWS: usize = 3;
/// Width of a count at the left of a row, with the blank after it, in columns.
const GUTTER: usize = 6;
/// Width of output to a file or a pipe, in columns.
const WIDTH: usize = 80;
/// Limit on the columns for times: more would show no more.
const MAX_CELLS: usize = 180;
/// Least count that makes a column non-empty; columns that share a time each count part of it.
const MIN_VISIBLE_COUNT: f64 = 0.01;

/// Signs for the filled part of a row, from none to all.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII: [char; 4] = [' ', '.', ':', '#'];

/// Formats histograms, one group and object after another.
pub fn plots(latencies: &Latencies, names: &Names<'_>) -> String {
    let (width, cells) = room(names);
    // Groups can be compared only on one axis.
    let mut kinds: BTreeMap<(char, u16), Vec<&Histogram>> = BTreeMap::new();
    let shown = TableSelection::new(latencies, names);
    for (subject, times) in &shown.subjects {
        kinds
            .entry(kind(subject))
            .or_default()
            .extend(spreads(times));
    }
    let axes: BTreeMap<_, _> = kinds
        .into_iter()
        .map(|(kind, spreads)| (kind, Axis::new(spreads.into_iter(), cells)))
        .collect();
    let mut text = String::new();
    for (subject, times) in &shown.subjects {
        if let Some(axis) = axes.get(&kind(subject)) {
            text.push('\n');
            Plot::new(names, *axis, times, width).write(&mut text, subject, times);
        }
    }
    shown.rest(&mut text, "histograms");
    if text.is_empty() {
        text
    } else {
        legend(names, width, axes.values().any(|axis| axis.is_cut)) + &text
    }
}

/// Returns the width, and the number of columns for times.
fn room(names: &Names<'_>) -> (usize, usize) {
    let width = names.screen.width().unwrap_or(WIDTH);
    (width, width.saturating_sub(GUTTER).clamp(1, MAX_CELLS))
}

/// One-line histograms for the rows of a table, which has their numbers. All are on one axis, which
/// shows who has a band of slow requests, and who shares it.
pub struct Strips<'a>(Plot<'a>);

impl<'a> Strips<'a> {
    /// Creates strips for these times on one axis.
    pub fn new(names: &'a Names<'a>, spreads: &[&Histogram]) -> Self {
        let (width, cells) = room(names);
        let axis = Axis::new(spreads.iter().copied(), cells);
        let counts = spreads.iter().flat_map(|spread| axis.counts(spread));
        Self(Plot {
            names,
            axis,
            width,
            top: counts.fold(1.0, f64::max),
            rows: 1,
        })
    }

    /// Returns the meaning of the signs.
    pub fn legend(&self) -> String {
        legend(self.0.names, self.0.width, self.0.axis.is_cut)
    }

    /// Adds the labels of the axis.
    pub fn ruler(&self, text: &mut String) {
        self.0.ruler(text);
    }

    /// Adds the strip of a row's times.
    pub fn strip(&self, text: &mut String, spread: &Histogram) {
        if spread.count() > 0 {
            self.0.bars(text, spread);
        }
    }
}

/// Returns the kind of objects that are compared with each other.
fn kind(subject: &Subject) -> (char, u16) {
    (subject.prefix, subject.first)
}

fn spreads(times: &Times) -> impl Iterator<Item = &Histogram> {
    times
        .stages
        .values()
        .map(|stage| &stage.spread)
        .chain([&times.whole])
}

/// Returns the meaning of the signs.
fn legend(names: &Names<'_>, width: usize, is_cut: bool) -> String {
    let screen = names.screen;
    let (one, mark) = if screen.has_unicode() {
        (BLOCKS[1], marks::MARK)
    } else {
        (ASCII[1], marks::MARK_ASCII)
    };
    let mut words = format!(
        "A column is a range of times, and its height is their number, both on logarithmic scales: \
         {one} is 1, and at the left is the number at a row's top. {mark} marks p50, p99, p99.9 \
         and max."
    );
    if is_cut {
        words.push_str(" Times below 10 ns are in the first column.");
    }
    let lines = screen::wrap(&words, width);
    lines.iter().fold(String::new(), |text, line| {
        text + &screen.paint(QUIET, line).to_string() + "\n"
    })
}

/// Layout of the histograms of a group.
struct Plot<'a> {
    names: &'a Names<'a>,
    axis: Axis,
    width: usize,
    /// Number in the highest column of all.
    top: f64,
    /// Height of a histogram, in rows.
    rows: usize,
}

impl<'a> Plot<'a> {
    fn new(names: &'a Names<'a>, axis: Axis, times: &Times, width: usize) -> Self {
        let counts = spreads(times).flat_map(|spread| axis.counts(spread));
        Self {
            names,
            axis,
            width,
            top: counts.fold(1.0, f64::max),
            rows: HISTOGRAM_ROWS,
        }
    }

    fn write(&self, text: &mut String, subject: &Subject, times: &Times) {
        titled(text, subject, times, self.names);
        self.ruler(text);
        let total: u128 = times.stages.values().map(|stage| stage.spread.sum()).sum();
        for (tpoints, stage) in in_order(times) {
            let share = share(&stage.spread, total);
            self.histogram(
                text,
                &self.head(times, *tpoints, &stage.spread, &share),
                &stage.spread,
            );
        }
        if times.whole.count() > 0 {
            self.histogram(
                text,
                &format!("whole  {}", times.whole.count()),
                &times.whole,
            );
        }
    }

    /// Formats a stage's name, its count and its share; without the common prefix of all stages if
    /// there is no room.
    fn head(
        &self,
        times: &Times,
        (from, to): (u16, u16),
        spread: &Histogram,
        share: &str,
    ) -> String {
        let start = self.names.common_start(times.stages.keys().copied()).len();
        let head = |start: usize| {
            let (from, to) = (
                &self.names.tpoint(from)[start..],
                &self.names.tpoint(to)[start..],
            );
            format!("{from} -> {to}  {}, {share} of all time", spread.count())
        };
        let whole = head(0);
        if columns(&whole) <= self.width {
            whole
        } else {
            head(start)
        }
    }

    /// Adds the labels of the axis.
    fn ruler(&self, text: &mut String) {
        let mut line = String::new();
        for (cell, label) in self.axis.ticks() {
            let begin = GUTTER + cell;
            if begin + columns(&label) <= self.width {
                let _ = write!(
                    line,
                    "{:missing$}{label}",
                    "",
                    missing = begin.saturating_sub(columns(&line))
                );
            }
        }
        self.line(text, &self.names.screen.paint(QUIET, line).to_string());
    }

    fn histogram(&self, text: &mut String, head: &str, spread: &Histogram) {
        self.line(text, &self.names.screen.paint(HEAD, head).to_string());
        let marks = self.bars(text, spread);
        if let Some(labels) = marks.labels(self.width - GUTTER) {
            self.line(text, &format!("{}{labels}", " ".repeat(GUTTER)));
        }
    }

    /// Adds the columns, and the axis with its marks.
    fn bars(&self, text: &mut String, spread: &Histogram) -> Marks {
        let screen = self.names.screen;
        let glyphs: &[char] = if screen.has_unicode() {
            &BLOCKS
        } else {
            &ASCII
        };
        let steps = glyphs.len() - 1;
        let levels: Vec<_> = self
            .axis
            .counts(spread)
            .into_iter()
            .map(|count| level(count, self.top, self.rows * steps))
            .collect();
        let marks = Marks::new(spread, self.axis);
        let rows = levels
            .iter()
            .max()
            .map_or(1, |highest| highest.div_ceil(steps).max(1));
        for row in (0..rows).rev() {
            let filled = |level: &usize| glyphs[level.saturating_sub(row * steps).min(steps)];
            let cells: Vec<char> = levels.iter().map(filled).collect();
            let (usual, slow) = cells.split_at(marks.p99() + 1);
            let (usual, slow) = (
                usual.iter().collect::<String>(),
                slow.iter().collect::<String>(),
            );
            let at_top = short(count_at((row + 1) * steps, self.top, self.rows * steps));
            let count = screen.paint(QUIET, format!("{at_top:>5}"));
            if slow.trim_end().is_empty() {
                self.line(text, &format!("{count} {}", usual.trim_end()));
            } else {
                self.line(
                    text,
                    &format!("{count} {usual}{}", screen.paint(WARN, slow.trim_end())),
                );
            }
        }
        self.line(
            text,
            &format!("{}{}", " ".repeat(GUTTER), marks.axis(self.axis, screen)),
        );
        marks
    }

    fn line(&self, text: &mut String, line: &str) {
        text.push_str(&self.names.screen.cut(line));
        text.push('\n');
    }
}

/// Least number at the top of the scale: two of a few requests should not look as high as a
/// million.
const MIN_SCALE_TOP: f64 = 10.0;

/// Returns the height of a column: 1 for one time, `levels` for the highest.
fn level(count: f64, top: f64, levels: usize) -> usize {
    if count < MIN_VISIBLE_COUNT {
        return 0;
    }
    let part = count.max(1.0).ln() / top.max(MIN_SCALE_TOP).ln();
    1 + ((part * (levels - 1) as f64).round() as usize).min(levels - 1)
}

/// Returns the number of times that a column of this height stands for.
fn count_at(level: usize, top: f64, levels: usize) -> f64 {
    top.max(MIN_SCALE_TOP)
        .powf((level - 1) as f64 / (levels - 1) as f64)
}

/// Formats a number in at most five columns: `999`, `2.1k`, `123k`.
fn short(count: f64) -> String {
    const UNITS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut value, mut unit) = (count, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1e3, unit + 1);
    }
    let decimals = usize::from(unit > 0 && value < 9.95);
    format!("{value:.decimals$}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_million_is_seen() {
        assert_eq!(
            (
                level(0.0, 1e6, 24),
                level(1.0, 1e6, 24),
                level(0.3, 1e6, 24),
                level(1e6, 1e6, 24)
            ),
            (0, 1, 1, 24)
        );
        // One of a few is not as high as all.
        assert_eq!((level(1.0, 1.0, 24), level(3.0, 3.0, 24)), (1, 12));
        for of in 1..=24 {
            assert_eq!(level(count_at(of, 1e6, 24), 1e6, 24), of);
        }
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [1.0, 46.4, 999.4, 999.6, 2_150.0, 123_456.0, 999_600.0, 1e19];
        assert_eq!(
            numbers.map(short),
            ["1", "46", "999", "1.0k", "2.1k", "123k", "1.0M", "10000P"]
        );
    }
}
