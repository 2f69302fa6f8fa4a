//! The milliseconds of one thread, joined from several texts, and the slow ones among them.

use std::collections::BTreeMap;

use crate::text::Millisecond;

/// Limit on the milliseconds kept: about ten minutes, 40 MiB.
const MAX_MILLISECONDS: usize = 600_000;

/// Milliseconds, each once.
///
/// Open vSwitch keeps the last 1,000 of them. To get more, query again before these are over, and
/// join the results.
#[derive(Clone, Debug, Default)]
pub struct History {
    rows: BTreeMap<u64, Millisecond>,
    /// Milliseconds that follow a gap.
    holes: Vec<u64>,
    /// Newest millisecond, and the time of its query in milliseconds: it still goes on then.
    newest: Option<(u64, u64)>,
    dropped: u64,
}

/// Line of the history; slow if it took longer than it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Start, in milliseconds of `CLOCK_MONOTONIC`.
    pub from: u64,
    /// Start of the next line; the end of the observed time if there is none.
    pub to: u64,
    /// True if it had not ended when last seen.
    pub goes_on: bool,
    /// Activity of the thread in it.
    pub row: Millisecond,
}

impl Stretch {
    /// Returns the duration in milliseconds; whole milliseconds make it uncertain by one.
    pub fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl History {
    /// Adds the lines of a query at the time `asked`, in milliseconds of `CLOCK_MONOTONIC`; they
    /// may be in any order.
    pub fn add(&mut self, rows: &[Millisecond], asked: u64) {
        // Lines from after the answer were made up, or torn between two writes.
        let is_sound = |row: &&Millisecond| row.ms <= asked.saturating_add(10_000);
        let rows: Vec<&Millisecond> = rows.iter().filter(is_sound).collect();
        let Some(newest) = rows.iter().map(|row| row.ms).max() else {
            return;
        };
        let oldest = rows.iter().map(|row| row.ms).min().unwrap_or(newest);
        if self.newest.is_some_and(|(known, _)| oldest > known) {
            self.holes.push(oldest);
        }
        for row in rows {
            let known = self.rows.entry(row.ms).or_insert(*row);
            // A line that was not over has grown.
            if row.iterations >= known.iterations {
                *known = *row;
            }
        }
        self.newest = self.newest.max(Some((newest, asked)));
        while self.rows.len() > MAX_MILLISECONDS {
            self.rows.pop_first();
            self.dropped += 1;
        }
    }

    /// Returns the number of milliseconds in `from..to`.
    pub fn count(&self, from: u64, to: u64) -> usize {
        self.rows.range(from..to.max(from)).count()
    }

    /// Returns the number of gaps between consecutive texts: nothing is known of these times.
    pub fn holes(&self) -> usize {
        self.holes.len()
    }

    /// Returns the number of milliseconds dropped because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the lines longer than `over` milliseconds that overlap `from..to`, in the order of
    /// time.
    pub fn slow(&self, from: u64, to: u64, over: u64) -> Vec<Stretch> {
        let rows: Vec<&Millisecond> = self.rows.values().collect();
        let stretch = |row: &Millisecond, to, goes_on| Stretch {
            from: row.ms,
            to,
            goes_on,
            row: *row,
        };
        let pairs = rows
            .windows(2)
            .filter(|pair| !self.holes.contains(&pair[1].ms));
        let mut slow: Vec<Stretch> = pairs
            .map(|pair| stretch(pair[0], pair[1].ms, false))
            .collect();
        if let (Some(last), Some((newest, asked))) = (rows.last(), self.newest)
            && last.ms == newest
        {
            slow.push(stretch(last, asked.max(newest), true));
        }
        slow.retain(|stretch| stretch.length() > over && stretch.to > from && stretch.from < to);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[u64]) -> Vec<Millisecond> {
        all.iter()
            .map(|&ms| Millisecond {
                ms,
                iterations: 200,
                ..Millisecond::default()
            })
            .collect()
    }

    fn lengths(history: &History) -> Vec<(u64, u64)> {
        history
            .slow(0, u64::MAX, 1)
            .iter()
            .map(|stretch| (stretch.from, stretch.length()))
            .collect()
    }

    #[test]
    fn texts_are_joined() {
        let mut history = History::default();
        // The newest one comes first, and the ring's newest slot may be read twice.
        history.add(&rows(&[13, 12, 11, 10, 13]), 13);
        assert_eq!(lengths(&history), []);
        history.add(&rows(&[145, 144, 13, 12]), 145);
        assert_eq!((lengths(&history), history.holes()), (vec![(13, 131)], 0));
        // A gap explains nothing.
        history.add(&rows(&[905, 904]), 905);
        assert_eq!((lengths(&history), history.holes()), (vec![(13, 131)], 1));
        // A thread that stands still has no end yet.
        history.add(&rows(&[905, 904]), 1205);
        assert_eq!(lengths(&history), [(13, 131), (905, 300)]);
        assert!(history.slow(0, u64::MAX, 1)[1].goes_on);
        assert_eq!(history.slow(500, u64::MAX, 1).len(), 1);
    }

    #[test]
    fn a_line_that_was_not_over_becomes_more() {
        let mut history = History::default();
        history.add(
            &[Millisecond {
                ms: 10,
                iterations: 3,
                ..Millisecond::default()
            }],
            10,
        );
        history.add(
            &[Millisecond {
                ms: 10,
                iterations: 90,
                upcalls: 4,
                ..Millisecond::default()
            }],
            11,
        );
        history.add(&rows(&[13]), 13);
        // It is unknown whether the line of 10 precedes it: another one may be missing.
        assert_eq!((history.count(0, 20), history.holes()), (2, 1));
        assert_eq!(history.rows[&10].upcalls, 4);
    }

    #[test]
    fn implausible_rows_are_left_out() {
        let mut history = History::default();
        history.add(&rows(&[u64::MAX, 10]), 10);
        history.add(&rows(&[10, 11]), 11);
        assert_eq!((lengths(&history), history.count(0, 20)), (vec![], 2));
    }

    #[test]
    fn excess_rows_are_dropped_oldest_first_and_counted() {
        let mut history = History::default();
        let all: Vec<u64> = (0..MAX_MILLISECONDS as u64 + 2).collect();
        history.add(&rows(&all), 1 << 20);
        assert_eq!(
            (
                history.count(0, u64::MAX),
                history.count(0, 2),
                history.dropped()
            ),
            (MAX_MILLISECONDS, 0, 2)
        );
    }
}
