//! Logarithmic axis of times.

use stats::{Bucket, Histogram};

/// Shortest time on an axis, in nanoseconds. Two readings of the processor's counter differ by
/// about as much: shorter times mean nothing, and would take room from longer ones.
const MIN_AXIS_NANOS: u64 = 10;
/// Threshold in nanoseconds: if the longest time reaches it, the axis starts no lower than
/// [`MIN_AXIS_NANOS`].
const LONG_AXIS_NANOS: u64 = 1_000;
/// Steps in a decade: 1, 2, 5.
const STEPS: usize = 3;
/// Steps up to the longest time in nanoseconds.
const ALL: usize = 20 * STEPS;
/// Width of a label and the blanks after it, in columns.
const LABEL: usize = 8;

/// Columns that divide the times from `low` to `high` in equal proportions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Step at which it begins.
    first: usize,
    /// Step at which it ends.
    last: usize,
    cells: usize,
    /// True if there are times before its first column.
    pub is_cut: bool,
}

impl Axis {
    /// Returns an axis of `cells` columns and at least a decade that covers all these times.
    pub(crate) fn new<'a>(spreads: impl Iterator<Item = &'a Histogram>, cells: usize) -> Self {
        let (mut least, mut longest, mut has_none) = (u64::MAX, 1, false);
        for spread in spreads.filter(|spread| spread.count() > 0) {
            longest = longest.max(spread.max());
            for Bucket { first: from, .. } in spread.buckets() {
                if from == 0 {
                    has_none = true;
                } else {
                    least = least.min(from);
                }
            }
        }
        let least = least.min(longest);
        let begin = if longest >= LONG_AXIS_NANOS {
            least.max(MIN_AXIS_NANOS)
        } else {
            least
        };
        let mut first = (0..ALL)
            .take_while(|&step| nanos(step) <= begin as f64)
            .last()
            .unwrap_or(0);
        let mut end = (0..ALL)
            .find(|&step| nanos(step) >= longest as f64)
            .unwrap_or(ALL);
        while end < first + STEPS {
            end += 1;
            if end < first + STEPS {
                first = first.saturating_sub(1);
            }
        }
        Self {
            first,
            last: end,
            cells: cells.max(1),
            is_cut: has_none || least < begin,
        }
    }

    /// Returns the column of a time in nanoseconds.
    pub(crate) fn cell(self, at: f64) -> usize {
        // A time on an edge belongs after it, despite rounding.
        const EDGE: f64 = 1e-9;
        let place = (at / self.low()).ln() / self.span() * self.cells as f64 + EDGE;
        (place.max(0.0) as usize).min(self.cells - 1)
    }

    /// Returns the number of times in each column.
    pub(crate) fn counts(self, spread: &Histogram) -> Vec<f64> {
        let mut counts = vec![0.0; self.cells];
        for Bucket {
            first: from,
            last: to,
            count,
        } in spread.buckets()
        {
            let (begin, end) = (from as f64 - 0.5, to as f64 + 0.5);
            let (first, last) = (self.cell(begin), self.cell(end));
            if last <= first + 1 {
                counts[self.cell(f64::midpoint(begin, end))] += count as f64;
                continue;
            }
            // For columns narrower than a nanosecond, or than a time's precision: otherwise every
            // other one would be empty.
            for (cell, sum) in counts.iter_mut().enumerate().take(last + 1).skip(first) {
                let left = if cell == first {
                    begin
                } else {
                    self.edge(cell)
                };
                let right = if cell == last {
                    end
                } else {
                    self.edge(cell + 1)
                };
                *sum += count as f64 * ((right - left) / (end - begin)).max(0.0);
            }
        }
        counts
    }

    /// Returns the labels, each with its column.
    pub(crate) fn ticks(self) -> Vec<(usize, String)> {
        let of = |step: usize| self.cell(nanos(step));
        // All steps if there is room, otherwise decades, or as few of them as fit.
        let width = |steps: usize| self.cells * steps / (self.last - self.first).max(1);
        let every = std::iter::once(1)
            .chain((STEPS..ALL).step_by(STEPS))
            .find(|&steps| width(steps) > LABEL);
        let every = every.unwrap_or(ALL);
        let steps = (self.first..self.last).filter(|step| step % every == 0);
        steps.map(|step| (of(step), label(step))).collect()
    }

    /// Returns the number of columns.
    pub(crate) fn cells(self) -> usize {
        self.cells
    }

    fn low(self) -> f64 {
        nanos(self.first)
    }

    /// Returns the logarithm of the ratio of the last time to the first.
    fn span(self) -> f64 {
        (nanos(self.last) / self.low()).ln()
    }

    /// Returns the start of a column in nanoseconds.
    fn edge(self, cell: usize) -> f64 {
        self.low() * (self.span() * cell as f64 / self.cells as f64).exp()
    }
}

/// Returns the time at a step of 1, 2, 5, 10, 20, ... nanoseconds.
fn nanos(step: usize) -> f64 {
    [1.0, 2.0, 5.0][step % STEPS] * 10f64.powi(i32::try_from(step / STEPS).unwrap_or(i32::MAX))
}

/// Formats the time at a step: `20 us`.
fn label(step: usize) -> String {
    const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
    let thousands = (step / STEPS / 3).min(UNITS.len() - 1);
    format!(
        "{} {}",
        nanos(step - thousands * 3 * STEPS),
        UNITS[thousands]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(times: &[u64]) -> Histogram {
        let mut spread = Histogram::default();
        for time in times {
            spread.add(*time);
        }
        spread
    }

    #[test]
    fn an_axis_has_all_times_in_equal_proportions() {
        let all = spread(&[1_000, 3_000_000]);
        let axis = Axis::new([&all].into_iter(), 70);
        assert_eq!(
            (label(axis.first).as_str(), label(axis.last)),
            ("1 us", "5 ms".to_owned())
        );
        let cells = [1_000.0, 10_000.0, 100_000.0, 1e6, 5e6].map(|at| axis.cell(at));
        assert_eq!(cells, [0, 18, 37, 56, 69]);
        assert_eq!(
            axis.ticks()
                .iter()
                .map(|(_, label)| label.as_str())
                .collect::<Vec<_>>(),
            ["1 us", "10 us", "100 us", "1 ms"]
        );
        let counts = axis.counts(&all);
        assert_eq!((counts[0], counts.iter().sum::<f64>()), (1.0, 2.0));
        assert!(!axis.is_cut);
    }

    #[test]
    fn times_that_are_alike_have_a_decade() {
        let axis = Axis::new([&spread(&[30_000, 31_000])].into_iter(), 60);
        assert_eq!(
            (label(axis.first).as_str(), label(axis.last)),
            ("10 us", "100 us".to_owned())
        );
        assert_eq!(axis.ticks().len(), 3);
        let none = Axis::new([&Histogram::default(), &spread(&[0])].into_iter(), 60);
        assert_eq!(
            (none.cell(0.0), none.cell(1.0), label(none.first).as_str()),
            (0, 0, "1 ns")
        );
    }

    #[test]
    fn unmeasurably_short_times_are_in_the_first_column() {
        let all = spread(&[0, 1, 9, 15, 1_000_000]);
        let axis = Axis::new([&all].into_iter(), 60);
        assert_eq!(
            (
                label(axis.first).as_str(),
                axis.is_cut,
                axis.counts(&all)[0]
            ),
            ("10 ns", true, 3.0)
        );
        let longest = Axis::new([&spread(&[u64::MAX])].into_iter(), 60);
        assert!(
            longest
                .counts(&spread(&[u64::MAX]))
                .iter()
                .any(|&count| count >= 1.0)
        );
    }

    /// Otherwise there would be a mode at each whole nanosecond.
    #[test]
    fn columns_narrower_than_a_nanosecond_share_its_times() {
        let all = spread(&(20..40).collect::<Vec<_>>());
        let axis = Axis::new([&all].into_iter(), 200);
        let counts = axis.counts(&all);
        let used: Vec<_> = counts.iter().skip_while(|&&n| n == 0.0).copied().collect();
        let used = &used[..used.iter().rposition(|&n| n > 0.0).unwrap_or(0)];
        assert!(
            used.len() > 40 && used.iter().all(|&count| count > 0.0),
            "{counts:?}"
        );
        assert!(
            (counts.iter().sum::<f64>() - 20.0).abs() < 1e-6,
            "{counts:?}"
        );
    }
}
