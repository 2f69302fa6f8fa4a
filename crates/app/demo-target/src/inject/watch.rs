//! Measures a delay: with three clocks at once, and a loop that sees when it did not run.

use rustix::time::{ClockId, clock_gettime};

use super::schedule::{self, REACTOR_PRIORITY};
use super::truth::Moment;
use crate::clock::ticks;

/// Minimum length of a gap, in nanoseconds: an undisturbed turn of the loop takes less than 0.1 us.
pub(crate) const MIN_GAP_NANOS: u64 = 2_000;
/// Limit on the gaps of one delay in the truth; the rest is only in their sum.
const MAX_GAPS: usize = 1_000;

impl Moment {
    /// Reads all clocks. Of several tries, the one with the least interference is returned.
    pub(crate) fn now() -> Self {
        let tries = [(); 3].map(|()| {
            let before = ticks();
            let (monotonic, boottime) = (nanos(ClockId::Monotonic), nanos(ClockId::Boottime));
            let bracket = ticks().saturating_sub(before);
            (
                bracket,
                Self {
                    ticks: before + bracket / 2,
                    monotonic,
                    boottime,
                },
            )
        });
        tries
            .into_iter()
            .min_by_key(|(bracket, _)| *bracket)
            .map_or(tries[0].1, |(_, moment)| moment)
    }
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Detector of the times when the loop that calls [`Watch::look`] did not run.
///
/// It also ends the loop's time in the real-time class ([`Watch::shield`]), by the same ticks: no
/// timer has to get the CPU for that.
#[derive(Debug)]
pub(crate) struct Watch {
    shortest: u64,
    last: u64,
    /// Ticks at which the thread leaves the real-time class. `u64::MAX` if it is not in it.
    shielded_until: u64,
    /// Ticks before and after each gap.
    pub(crate) gaps: Vec<[u64; 2]>,
    /// Sum of the gaps.
    pub(crate) taken: u64,
}

impl Watch {
    /// Starts now. `shortest` is in ticks.
    pub(crate) fn new(shortest: u64) -> Self {
        // The room is reserved, so that noting a gap does not make one.
        let gaps = Vec::with_capacity(MAX_GAPS);
        Self {
            shortest,
            last: ticks(),
            shielded_until: u64::MAX,
            gaps,
            taken: 0,
        }
    }

    /// Keeps all other threads away from the calling one for `longest` ticks at most, if that is
    /// permitted: others that wait for this CPU must not take a share of the delay.
    pub(crate) fn shield(&mut self, longest: u64) {
        let until = ticks() + longest;
        if schedule::set_fifo(REACTOR_PRIORITY) {
            self.shielded_until = until;
        }
    }

    /// Ends the shield. Returns true if it was up, and held until now.
    pub(crate) fn unshield(&mut self) -> bool {
        let held = self.shielded_until != u64::MAX;
        if held {
            schedule::set_usual();
            self.shielded_until = u64::MAX;
        }
        held
    }

    /// Resumes: the time since the last look is no gap.
    pub(crate) fn resume(&mut self) {
        self.last = ticks();
    }

    /// Drops the gaps that ended before these ticks: something else made them.
    pub(crate) fn forget_before(&mut self, begin: u64) {
        self.keep(|[_, end]| end >= begin);
    }

    /// Drops all gaps but the one that contains these ticks: something else made the others.
    pub(crate) fn keep_only(&mut self, at: u64) {
        self.keep(|[begin, end]| (begin..end).contains(&at));
    }

    fn keep(&mut self, is_kept: impl Fn([u64; 2]) -> bool) {
        self.gaps.retain(|gap| is_kept(*gap));
        self.taken = self.gaps.iter().map(|[begin, end]| end - begin).sum();
    }

    /// Reads the ticks, and notes a gap since the last look.
    #[inline]
    pub(crate) fn look(&mut self) -> u64 {
        let (last, now) = (self.last, ticks());
        if now.saturating_sub(last) >= self.shortest {
            self.taken += now - last;
            if self.gaps.len() < MAX_GAPS {
                self.gaps.push([last, now]);
            }
        }
        self.last = now;
        if now >= self.shielded_until {
            self.unshield();
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_gap() {
        let mut watch = Watch::new(1_000_000);
        let before = watch.look();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let after = watch.look();
        assert!(
            watch
                .gaps
                .iter()
                .any(|[begin, end]| *begin >= before && *end == after),
            "{watch:?}"
        );
        assert_eq!(
            watch.taken,
            watch
                .gaps
                .iter()
                .map(|[begin, end]| end - begin)
                .sum::<u64>()
        );
    }

    #[test]
    fn moments_rise_on_all_clocks() {
        let (first, second) = (Moment::now(), Moment::now());
        assert!(first.ticks < second.ticks && first.monotonic <= second.monotonic);
        assert!(first.boottime <= second.boottime && first.boottime >= first.monotonic);
    }
}
