//! Columns of the report: short times with units within 80 columns, or exact nanoseconds.

use std::fmt::Write as _;

use screen::{Screen, columns, grouped, pad, shorten, time};

/// Indent of a section in the wide form.
const INDENT: usize = 28;
/// Minimum number of columns assumed.
const MIN_WIDTH: usize = 80;
/// Width of a short time.
const SHORT_TIME_WIDTH: usize = 8;
/// Width of a time in nanoseconds.
const NANOS: usize = 16;
/// Maximum length of a bar.
const MAX_BAR_WIDTH: usize = 40;

/// Form of a report's columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    /// True if times are in nanoseconds.
    pub(crate) exact: bool,
    /// Columns of the terminal; `None` without one.
    width: Option<usize>,
    /// True if it shows blocks.
    has_blocks: bool,
}

/// Cell of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    /// Left-aligned text of this width, shortened to it on a terminal; 0 for the last text, which
    /// stays whole.
    Left(&'a str, usize),
    /// Right-aligned text of this width.
    Right(&'a str, usize),
    /// Right-aligned text that belongs to the column before it.
    Near(&'a str, usize),
    /// Number of this width.
    Count(u64, usize),
    /// Head of a column of times.
    TimeHead(&'a str),
    /// Time in nanoseconds.
    Time(u64),
}

impl Columns {
    /// Chooses the form for a terminal, or for output without one.
    pub(crate) fn for_screen(screen: Screen, exact: bool) -> Self {
        Self {
            exact,
            width: screen.width(),
            has_blocks: screen.has_unicode(),
        }
    }

    /// Returns the length of the rule below the head of the sections.
    pub(crate) fn rule(self) -> usize {
        if self.exact {
            76
        } else {
            MIN_WIDTH - 1 - INDENT
        }
    }

    fn indent(self) -> usize {
        if self.exact { INDENT } else { 2 }
    }

    /// Returns the terminal's columns beyond 80, in the short form.
    fn more(self) -> usize {
        self.width
            .filter(|_| !self.exact)
            .map_or(0, |width| width.saturating_sub(MIN_WIDTH))
    }

    /// Returns the width of the longest of these texts, at least `least`. On a terminal with short
    /// times it is at most `most`, and up to `further` more if the terminal is wider than 80
    /// columns.
    pub(crate) fn width_for<'a>(
        self,
        texts: impl Iterator<Item = &'a str>,
        (least, most, further): (usize, usize, usize),
    ) -> usize {
        let longest = texts.map(columns).max().unwrap_or_default().max(least);
        if self.is_cut() {
            longest.min(most + self.more().min(further))
        } else {
            longest
        }
    }

    /// Returns true if texts are shortened: on a terminal with short times. Elsewhere lines may
    /// have any length.
    pub(crate) fn is_cut(self) -> bool {
        self.width.is_some() && !self.exact
    }

    /// Formats a row without a line end.
    pub(crate) fn row(self, cells: &[Cell<'_>]) -> String {
        let mut text = " ".repeat(self.indent());
        for (index, cell) in cells.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = self.cell(&mut text, index == 0, *cell);
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn cell(self, text: &mut String, first: bool, cell: Cell<'_>) -> std::fmt::Result {
        let gap = match (first, self.exact, cell) {
            (true, ..) | (_, _, Cell::Left("", _)) => "",
            (_, false, _) | (_, _, Cell::Near(..)) => " ",
            _ => "  ",
        };
        text.push_str(gap);
        let width = if self.exact { NANOS } else { SHORT_TIME_WIDTH };
        match cell {
            Cell::Left(cell, 0) => text.write_str(cell),
            Cell::Left(cell, width) if self.is_cut() => {
                text.write_str(&pad(&shorten(cell, width), width))
            }
            Cell::Left(cell, width) => text.write_str(&pad(cell, width)),
            Cell::Right(cell, width) | Cell::Near(cell, width) => {
                write!(text, "{cell:>width$}")
            }
            Cell::Count(count, width) => write!(text, "{count:>width$}"),
            Cell::TimeHead(head) if self.exact && !head.is_empty() => {
                write!(text, "{:>width$}", format!("{head} ns"))
            }
            Cell::TimeHead(head) => write!(text, "{head:>width$}"),
            Cell::Time(nanos) => write!(
                text,
                "{:>width$}",
                if self.exact {
                    grouped(nanos)
                } else {
                    time(nanos)
                }
            ),
        }
    }

    /// Returns a bar for a share in percent, in eighths of a block, after places of this width;
    /// empty without a terminal that shows blocks.
    pub(crate) fn bar(self, percent: f64, places: usize) -> String {
        const EIGHTHS: [char; 8] = [
            '\u{258f}', '\u{258e}', '\u{258d}', '\u{258c}', '\u{258b}', '\u{258a}', '\u{2589}',
            '\u{2588}',
        ];
        let Some(width) = self.width.filter(|_| self.has_blocks) else {
            return String::new();
        };
        let before = self.indent()
            + places
            + 1
            + if self.exact {
                NANOS + 1
            } else {
                SHORT_TIME_WIDTH
            }
            + 1
            + 7
            + 1;
        let room = width.saturating_sub(before + 1).min(MAX_BAR_WIDTH);
        let eighths = (percent / 100.0 * room as f64 * 8.0).round() as usize;
        let eighths = eighths.min(room * 8);
        let mut bar = EIGHTHS[7].to_string().repeat(eighths / 8);
        bar.extend((eighths % 8).checked_sub(1).map(|index| EIGHTHS[index]));
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_80_columns_or_are_exact() {
        let cells = [
            Cell::Left("a_system_call_with_a_long_name", 16),
            Cell::Count(12_345_678, 8),
            Cell::Count(123_456, 6),
            Cell::Time(1_234_567_890),
            Cell::Time(999),
            Cell::Time(999_000),
            Cell::Time(99_900_000),
            Cell::Time(86_400_000_000_000),
        ];
        let short = Columns::for_screen(Screen::terminal(80, false), false).row(&cells);
        assert_eq!(
            short,
            "  a_syste…ong_name 12345678 123456   1.23 s   999 ns   999 us  99.9 ms  86400 s"
        );
        assert!(columns(&short) < 80, "{short}");
        // A pipe has room for each name.
        let piped = Columns::for_screen(Screen::default(), false).row(&cells[..2]);
        assert_eq!(piped, "  a_system_call_with_a_long_name 12345678");
        let exact = Columns::for_screen(Screen::default(), true).row(&cells[2..4]);
        assert_eq!(exact, format!("{:28}123456     1,234,567,890", ""));
    }

    #[test]
    fn bars_are_as_long_as_their_part() {
        let columns = Columns::for_screen(Screen::terminal(80, false), false);
        let [whole, half, none] =
            [100.0, 50.0, 0.0].map(|part| columns.bar(part, 34).chars().count());
        assert!(
            whole > 20 && half.abs_diff(whole / 2) <= 1 && none == 0,
            "{whole} {half} {none}"
        );
        assert_eq!(columns.bar(250.0, 34).chars().count(), whole);
        assert_eq!(
            Columns::for_screen(Screen::default(), true).bar(50.0, 34),
            ""
        );
    }
}
