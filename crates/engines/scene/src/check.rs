//! Measurement of how well a clock of anchors puts ticks and nanoseconds on one line, taken while
//! the anchors are read.
//!
//! There are two measurements, because each sees what the other does not:
//!
//! - **Readings between the anchors.** They are read like anchors, and are no part of the clock.
//!   The clock's distance from them is its own error: that of the readings, and how far the
//!   kernel's clock left the straight line. It contains nothing of the target.
//! - **Hits of probes that pass their ticks.** The kernel's time of a hit is always later than its
//!   ticks: by the cost of the trap, and by interruptions of the thread there. Most of these
//!   differences show little of the clock, but delays only add. So the fastest hit of each time
//!   between two anchors is the trap's cost with the error of the clock, as the target's CPUs count
//!   ticks. The distance of those from the least of them is that error, if the trap always costs
//!   the same, and more than it otherwise.

use std::collections::VecDeque;

use spdk_trace::Ticks;
use stats::Histogram;

use crate::clock::{Anchor, BootNanos, Clock};

/// Minimum number of hits between two anchors for a fastest one that means something.
const MIN_HITS: u64 = 8;
/// Limit on the times between two anchors that still take hits, which may come late: on a busy
/// machine by a second.
const MAX_OPEN_INTERVALS: usize = 32;
/// Limit on the readings, the hits that wait for the next anchor, and the fastest hits that are
/// kept: 24 bytes each at most.
const MAX_READINGS: usize = 1 << 16;

/// Measurement of a clock while it is made. It keeps the newest anchors only, and sums.
#[derive(Clone, Debug, Default)]
pub struct ClockCheck {
    last: Option<Anchor>,
    /// Newest times between two anchors.
    open: VecDeque<Time>,
    /// Readings since the last anchor.
    readings: Vec<Anchor>,
    /// Hits after the last anchor.
    hits: Vec<(Ticks, BootNanos)>,
    between: Histogram,
    at_hits: Histogram,
    fastest: Vec<i64>,
    /// Number of fastest hits left out since the last one that is kept.
    passed: usize,
    /// Number of fastest hits left out after each one that is kept.
    step: usize,
}

/// Time between two anchors, with the fastest hit in it and the number of hits.
#[derive(Clone, Debug)]
struct Time {
    end: Ticks,
    clock: Clock,
    fastest: i64,
    hits: u64,
}

/// Results of the measurement, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ClockErrors {
    /// Distance of the clock from readings between its anchors, without the sign.
    pub between: Histogram,
    /// Distance of the clock from the kernel's time at hits, without the sign: with the cost of the
    /// trap, and with interruptions.
    pub at_hits: Histogram,
    /// Distance of the fastest hit of each time between two anchors from the least of all these.
    pub fastest: Histogram,
    /// The least difference, with its sign: about the cost of the trap.
    pub least: i64,
}

impl ClockCheck {
    /// Takes the next anchor of the clock.
    pub fn anchor(&mut self, anchor: Anchor) {
        let before = self.last.replace(anchor);
        // A counter that falls makes no clock.
        if let Some(clock) = before.and_then(|before| Clock::new(vec![before, anchor]).ok()) {
            for reading in self.readings.drain(..) {
                if before.is_some_and(|before| before.ticks <= reading.ticks)
                    && reading.ticks <= anchor.ticks
                {
                    self.between
                        .add(above(&clock, reading.ticks, reading.nanos).unsigned_abs());
                }
            }
            self.open.push_back(Time {
                end: anchor.ticks,
                clock,
                fastest: i64::MAX,
                hits: 0,
            });
        }
        self.readings.clear();
        if self.open.len() > MAX_OPEN_INTERVALS
            && let Some(time) = self.open.pop_front()
        {
            self.close(&time);
        }
        let waiting = std::mem::take(&mut self.hits);
        self.hits(waiting);
    }

    /// Takes a reading of both clocks that is no anchor.
    pub fn reading(&mut self, reading: Anchor) {
        if self.readings.len() < MAX_READINGS {
            self.readings.push(reading);
        }
    }

    /// Takes hits: the ticks that a probe passed, and the kernel's time at the same hit. Leaves out
    /// hits that come long after the next anchor, and those beyond the limit.
    pub fn hits(&mut self, hits: impl IntoIterator<Item = (Ticks, BootNanos)>) {
        for (ticks, nanos) in hits {
            let at = self.open.partition_point(|time| time.end <= ticks);
            let is_later = self.last.is_none_or(|last| last.ticks <= ticks);
            match self.open.get_mut(at) {
                Some(time) if at > 0 || time.clock.begin() <= ticks => {
                    let above = above(&time.clock, ticks, nanos);
                    (time.fastest, time.hits) = (time.fastest.min(above), time.hits + 1);
                    self.at_hits.add(above.unsigned_abs());
                }
                None if is_later && self.hits.len() < MAX_READINGS => {
                    self.hits.push((ticks, nanos));
                }
                _ => {}
            }
        }
    }

    /// Returns the results, after the last anchor.
    pub fn finish(mut self) -> ClockErrors {
        for time in std::mem::take(&mut self.open) {
            self.close(&time);
        }
        let least = self.fastest.iter().min().copied().unwrap_or_default();
        let mut fastest = Histogram::default();
        self.fastest
            .iter()
            .for_each(|above| fastest.add(above.abs_diff(least)));
        ClockErrors {
            between: self.between,
            at_hits: self.at_hits,
            fastest,
            least,
        }
    }

    /// Keeps the fastest hit of a time that takes no more; of many times some, spread over all.
    fn close(&mut self, time: &Time) {
        if time.hits < MIN_HITS {
            return;
        }
        if self.passed < self.step {
            self.passed += 1;
            return;
        }
        self.passed = 0;
        if self.fastest.len() == MAX_READINGS {
            let mut index = 0;
            self.fastest.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step = 2 * self.step + 1;
        }
        self.fastest.push(time.fastest);
    }
}

/// Returns how much later the kernel's time is than the clock's time at those ticks, in
/// nanoseconds.
fn above(clock: &Clock, ticks: Ticks, nanos: BootNanos) -> i64 {
    // SANITY: a difference that does not fit is centuries long, and so no time at all.
    i64::try_from(i128::from(nanos.0) - i128::from(clock.nanos(ticks).0)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(ticks: u64, nanos: u64) -> Anchor {
        Anchor {
            ticks: Ticks(ticks),
            nanos: BootNanos(nanos),
            bracket: Ticks(40),
        }
    }

    /// Returns the results for anchors each second, each with this error; readings in the middle,
    /// and hits with a trap of 700 ns.
    fn checked(errors: &[i64], hits: u64) -> ClockErrors {
        let mut check = ClockCheck::default();
        for (n, error) in (1..).zip(errors) {
            let begin = n * SECOND;
            check.anchor(at(begin, begin.strict_add_signed(*error)));
            check.reading(at(begin + SECOND / 2, begin + SECOND / 2));
            // The first one of each is the fastest; some are interrupted for long.
            let delay = |n: u64| 700 + if n == 0 { 0 } else { 5_000 * n };
            let hit = |n: u64| {
                (
                    Ticks(begin + 1_000 * n),
                    BootNanos(begin + 1_000 * n + delay(n)),
                )
            };
            check.hits((0..hits).map(hit));
        }
        check.finish()
    }

    #[test]
    fn a_clock_without_an_error_is_off_by_nothing_but_the_trap() {
        let ClockErrors {
            between,
            at_hits,
            fastest,
            least,
        } = checked(&[0; 5], 10);
        assert_eq!((between.count(), between.max()), (4, 0));
        assert_eq!((at_hits.count(), at_hits.max()), (40, 45_700));
        assert_eq!((fastest.count(), fastest.max(), least), (4, 0, 700));
    }

    #[test]
    fn an_anchor_that_is_off_is_seen_by_both() {
        // The third one is 200 ns too late: so is half of that the clock on both sides of it.
        let ClockErrors {
            between,
            fastest,
            least,
            ..
        } = checked(&[0, 0, 200, 0, 0], 10);
        assert_eq!((between.count(), between.max()), (4, 100));
        // At the begin of its time hits seem earlier by all of it.
        assert_eq!((fastest.max(), least), (200, 500));
    }

    #[test]
    fn few_hits_have_no_fastest_one() {
        let ClockErrors {
            at_hits, fastest, ..
        } = checked(&[0; 5], MIN_HITS - 1);
        assert_eq!((at_hits.count(), fastest.count()), (28, 0));
        let none = ClockCheck::default().finish();
        assert_eq!(
            (
                none.between.count(),
                none.at_hits.count(),
                none.fastest.count(),
                none.least
            ),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn hits_that_come_late_count() {
        let mut check = ClockCheck::default();
        (1..=6).for_each(|n| check.anchor(at(n * SECOND, n * SECOND)));
        let hit = |ticks: u64, later: u64| (Ticks(ticks), BootNanos(ticks + later));
        check.hits(
            (0..10)
                .map(|n| hit(2 * SECOND + n, 500))
                .chain((0..10).map(|n| hit(4 * SECOND + n, 520))),
        );
        // Before the first anchor, and after the last one.
        check.hits([hit(5, 900), hit(7 * SECOND, 900)]);
        let ClockErrors {
            at_hits,
            fastest,
            least,
            ..
        } = check.finish();
        assert_eq!(
            (at_hits.count(), fastest.count(), fastest.max(), least),
            (20, 2, 20, 500)
        );
    }

    #[test]
    fn kept_anchors_are_bounded() {
        let mut check = ClockCheck::default();
        check.hits((0..3 * MAX_READINGS as u64).map(|n| (Ticks(n), BootNanos(n))));
        assert_eq!(check.hits.len(), MAX_READINGS);
        let clock = Clock::new(vec![at(0, 0), at(1, 1)]).unwrap();
        let most = i64::try_from(MAX_READINGS).unwrap();
        for fastest in 0..3 * most {
            check.close(&Time {
                end: Ticks(1),
                clock: clock.clone(),
                fastest,
                hits: MIN_HITS,
            });
        }
        assert!((MAX_READINGS / 2..=MAX_READINGS).contains(&check.fastest.len()));
        assert!(
            check.fastest.is_sorted() && check.fastest.last().is_some_and(|last| *last > 2 * most)
        );
        // A counter that falls back is no clock, and no error.
        let mut check = ClockCheck::default();
        for ticks in [5, 9, 3, 2].into_iter().chain(10..100) {
            check.anchor(at(ticks, ticks));
            check.reading(at(ticks, ticks));
        }
        assert!(check.open.len() <= MAX_OPEN_INTERVALS);
        check.finish();
    }
}
