//! The comparison as text: sentences, then tables of stages and of takers.

use std::fmt::Write as _;

use page::{ComparedKind, ComparedTimes, Comparison, MARKS};
use screen::{HEAD, Screen, pad, pad_left, shorten, wrap};
use timeline::text::{TIME_WIDTH, USUAL_WIDTH, common_start};

/// Width of a count, with a blank before it, in columns.
const COUNT_WIDTH: usize = 8;
/// Least width of a name, in columns.
const MIN_NAME_WIDTH: usize = 20;

/// Formats the comparison for a terminal or a file.
pub fn text(comparison: &Comparison, screen: Screen) -> String {
    let mut page = Page {
        screen,
        text: String::new(),
    };
    for (name, side) in ["A", "B"].into_iter().zip(&comparison.sides) {
        page.line(&format!("{name}  {}", side.describe()));
    }
    page.text.push('\n');
    if comparison.kinds.is_empty() {
        page.wrapped("the captures have no kind of request in common");
    }
    for sentence in comparison.sentences.iter().chain(&comparison.notes) {
        page.wrapped(sentence);
    }
    for kind in &comparison.kinds {
        let counts = kind.counts(&comparison.sides);
        page.head(&format!("\n{}: {counts}", kind.name));
        page.stages(kind);
        page.causes(kind);
    }
    if !comparison.kinds.is_empty() {
        page.text.push('\n');
        page.wrapped(MARKS);
    }
    page.text
}

struct Page {
    screen: Screen,
    text: String,
}

impl Page {
    fn width(&self) -> usize {
        self.screen.width().unwrap_or(USUAL_WIDTH)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&self.screen.cut(line));
        self.text.push('\n');
    }

    fn head(&mut self, line: &str) {
        self.line(&self.screen.paint(HEAD, line).to_string());
    }

    fn wrapped(&mut self, sentence: &str) {
        for line in wrap(sentence, self.width()) {
            self.line(&line);
        }
    }

    /// Adds a row for the whole and for each stage.
    fn stages(&mut self, kind: &ComparedKind) {
        let names = kind.stages.iter().flat_map(|it| [&*it.from, &*it.to]);
        let start = common_start(names);
        let stages = kind.stages.iter().map(|it| {
            let (from, to) = (&it.from[start.len()..], &it.to[start.len()..]);
            (format!("{from} -> {to}"), &it.times)
        });
        let rows: Vec<(String, &ComparedTimes)> =
            std::iter::once(("whole".to_owned(), &kind.whole))
                .chain(stages)
                .collect();
        let used = 2 * COUNT_WIDTH + 6 * TIME_WIDTH;
        let width = self.name_width(rows.iter().map(|(name, _)| name.as_str()), used);
        let head = if start.is_empty() {
            "stage".to_owned()
        } else {
            format!("stage ({start}...)")
        };
        let mut line = format!("  {}", pad(&shorten(&head, width), width));
        let _ = write!(line, "{:>COUNT_WIDTH$}{:>COUNT_WIDTH$}", "count A", "B");
        for name in ["p50 A", "p99 A"] {
            let _ = write!(
                line,
                "{name:>TIME_WIDTH$}{:>TIME_WIDTH$}{:TIME_WIDTH$}",
                "B", ""
            );
        }
        self.head(line.trim_end());
        for (name, times) in rows {
            let mut line = format!("  {}", pad(&shorten(&name, width), width));
            for count in times.counts {
                let _ = write!(line, "{count:>COUNT_WIDTH$}");
            }
            let cells = [times.median, times.p99].into_iter();
            for cell in cells.flat_map(|time| time.cells()) {
                line.push_str(&pad_left(&cell, TIME_WIDTH));
            }
            self.line(&line);
        }
    }

    /// Adds a row for each taker.
    fn causes(&mut self, kind: &ComparedKind) {
        if kind.causes.is_empty() {
            return;
        }
        let head = "taken of each request, in the mean, at most";
        let names = kind.causes.iter().map(|it| it.name.as_str()).chain([head]);
        let width = self.name_width(names, 3 * TIME_WIDTH);
        let head = pad(&shorten(head, width), width);
        self.head(&format!("  {head}{:>TIME_WIDTH$}{:>TIME_WIDTH$}", "A", "B"));
        for cause in &kind.causes {
            let mut line = format!("  {}", pad(&shorten(&cause.name, width), width));
            for cell in cause.took.cells() {
                line.push_str(&pad_left(&cell, TIME_WIDTH));
            }
            self.line(&line);
        }
    }

    /// Returns the width of the names beside columns of that width.
    fn name_width<'a>(&self, names: impl Iterator<Item = &'a str>, columns: usize) -> usize {
        let longest = names.map(screen::columns).max().unwrap_or(0);
        let room = self.width().saturating_sub(columns + 2);
        longest.min(room).max(MIN_NAME_WIDTH)
    }
}
