//! Marks for the percentiles of a histogram: their columns on its axis, and their times.

use screen::{LARGEST, QUIET, Screen, Style};
use stats::Histogram;

use super::axis::Axis;

/// Marked percentiles, besides the maximum.
const MARKED: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];
/// Blanks between two labels.
const LABEL_GAP: usize = 2;

/// Sign of a mark.
pub(crate) const MARK: char = '▲';
/// Sign of a mark in ASCII.
pub(crate) const MARK_ASCII: char = '^';

/// Marks of one histogram, from left to right.
pub(crate) struct Marks(Vec<Mark>);

struct Mark {
    /// Names of the mark: several, if they are the same time.
    names: String,
    nanos: u64,
    cell: usize,
    is_p99: bool,
}

impl Marks {
    pub(crate) fn new(spread: &Histogram, axis: Axis) -> Self {
        let nines = MARKED
            .iter()
            .map(|&(name, quantile)| (name, spread.quantile(quantile)));
        let mut marks: Vec<Mark> = Vec::new();
        for (name, nanos) in nines.chain([("max", spread.max())]) {
            let is_p99 = name == "p99";
            match marks.last_mut() {
                Some(same) if same.nanos == nanos => {
                    same.names.extend([",", name]);
                    same.is_p99 |= is_p99;
                }
                _ => marks.push(Mark {
                    names: name.to_owned(),
                    nanos,
                    cell: axis.cell(nanos as f64),
                    is_p99,
                }),
            }
        }
        Self(marks)
    }

    /// Returns the column of p99.
    pub(crate) fn p99(&self) -> usize {
        self.0
            .iter()
            .find(|mark| mark.is_p99)
            .map_or(0, |mark| mark.cell)
    }

    /// Draws the axis, with a mark in each one's column.
    pub(crate) fn axis(&self, axis: Axis, screen: Screen) -> String {
        let [line, tick, mark] = if screen.has_unicode() {
            ['─', '┼', MARK]
        } else {
            ['-', '+', MARK_ASCII]
        };
        let mut cells = vec![line; axis.cells()];
        axis.ticks()
            .iter()
            .for_each(|(cell, _)| cells[*cell] = tick);
        self.0.iter().for_each(|it| cells[it.cell] = mark);
        let styled = |run: &[char]| {
            let style: Style = if run[0] == mark { LARGEST } else { QUIET };
            screen
                .paint(style, run.iter().collect::<String>())
                .to_string()
        };
        cells
            .chunk_by(|a, b| (*a == mark) == (*b == mark))
            .map(styled)
            .collect()
    }

    /// Returns a line with a label below each mark, or as near as possible; without the times if
    /// they do not fit. `None` if the names do not fit either.
    pub(crate) fn labels(&self, width: usize) -> Option<String> {
        let with_times = || {
            self.0
                .iter()
                .map(|mark| format!("{} {}", mark.names, screen::time(mark.nanos)))
                .collect()
        };
        let names = || self.0.iter().map(|mark| mark.names.clone()).collect();
        let cells: Vec<usize> = self.0.iter().map(|mark| mark.cell).collect();
        placed(&cells, with_times(), width).or_else(|| placed(&cells, names(), width))
    }
}

/// Places texts at these columns, or as near as possible. `None` if there is not enough room.
fn placed(at: &[usize], texts: Vec<String>, width: usize) -> Option<String> {
    let all =
        texts.iter().map(String::len).sum::<usize>() + LABEL_GAP * texts.len().saturating_sub(1);
    if all > width {
        return None;
    }
    let mut end = 0;
    let mut begins: Vec<usize> = Vec::new();
    for (&at, text) in at.iter().zip(&texts) {
        begins.push(at.max(end));
        end = at.max(end) + text.len() + LABEL_GAP;
    }
    let mut end = width;
    for (begin, text) in begins.iter_mut().zip(&texts).rev() {
        *begin = (*begin).min(end.saturating_sub(text.len()));
        end = begin.saturating_sub(LABEL_GAP);
    }
    let mut line = String::new();
    for (begin, text) in begins.into_iter().zip(texts) {
        line.push_str(&" ".repeat(begin.saturating_sub(line.len())));
        line.push_str(&text);
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_below_their_marks_if_there_is_room() {
        let texts = || ["p50", "p99", "max"].map(str::to_owned).to_vec();
        assert_eq!(
            placed(&[1, 6, 12], texts(), 20).as_deref(),
            Some(" p50  p99   max")
        );
        assert_eq!(
            placed(&[1, 2, 3], texts(), 20).as_deref(),
            Some(" p50  p99  max")
        );
        assert_eq!(
            placed(&[11, 12, 13], texts(), 14).as_deref(),
            Some(" p50  p99  max")
        );
        assert_eq!(
            placed(&[0, 0, 0], texts(), 13).as_deref(),
            Some("p50  p99  max")
        );
        assert_eq!(placed(&[0, 0, 0], texts(), 12), None);
    }
}
