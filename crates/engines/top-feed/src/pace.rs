//! Amount of each second that is read, so that `top` takes little of a CPU for any trace.

use std::time::{Duration, Instant};

/// Time between two polls of rings that fill slowly.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two polls of rings that fill fast.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// CPU time that the thread may take of each second: with the screen and the kernel's windows, that
/// is below 2 %.
const BUDGET: Duration = Duration::from_millis(11);
/// Minimum number of slots that are read in a second, at any cost: about 900 requests.
const MIN_SLOTS: u64 = 12_000;
/// Maximum number of slots that are read in a second: about 15,000 requests.
const MAX_SLOTS: u64 = 200_000;
/// Limit on the slots that a poll copies of each ring, so that memory is bounded.
const MAX_SLOTS_PER_POLL: u64 = 1 << 14;

/// Control of how much of each second is read.
pub(crate) struct Pace {
    /// Number of rings.
    rings: u64,
    /// True if all records are read, at any cost.
    all_records: bool,
    /// Limit on the slots of a second that is read completely.
    allowed: u64,
    /// True if only a window of each second is read.
    is_sampled: bool,
    /// Time between two polls.
    pause: Duration,
    /// Number of slots that were read in this second.
    used: u64,
    /// CPU time of the thread at the begin of the second.
    ran: Duration,
    /// State of the random numbers that place the windows.
    seed: u64,
}

impl Pace {
    pub(crate) fn new(rings: usize, all_records: bool) -> Self {
        // Any number but 0 will do.
        let (seed, rings) = (sys::clock::ticks() | 1, rings.max(1) as u64);
        Self {
            rings,
            all_records,
            // The cost of a slot is not known yet.
            allowed: (2 * MIN_SLOTS).max(rings),
            is_sampled: false,
            pause: MAX_POLL_INTERVAL,
            used: 0,
            ran: sys::clock::thread_ran(),
            seed,
        }
    }

    pub(crate) fn rings(&self) -> usize {
        self.rings as usize
    }

    /// Returns true if only a window of each second is read.
    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns the time between two polls.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Returns true if nothing was read in this second.
    pub(crate) fn has_nothing(&self) -> bool {
        self.used == 0
    }

    /// Returns the time to wait before the window of the second that ends at `end`.
    pub(crate) fn wait(&mut self, end: Instant) -> Duration {
        if !self.is_sampled {
            return Duration::ZERO;
        }
        // xorshift: a window at the same place of each second would always miss, or always meet, an
        // event that comes once a second.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let left = end.saturating_duration_since(Instant::now());
        left.mul_f64((self.seed % 1000) as f64 / 1000.0 * 0.6)
    }

    /// Returns the limit on the slots of each ring in the next poll. A window has the same part of
    /// each.
    pub(crate) fn most_of_ring(&self) -> u64 {
        if self.all_records {
            return u64::MAX;
        }
        if self.is_sampled {
            (self.left() / self.rings).max(1)
        } else {
            self.left().min(MAX_SLOTS_PER_POLL)
        }
    }

    /// Returns the number of slots that may still be read in this second. If all was read so far,
    /// the limit is half as much again.
    fn left(&self) -> u64 {
        if self.all_records {
            return u64::MAX;
        }
        let allowed = if self.is_sampled {
            self.allowed
        } else {
            self.allowed + self.allowed / 2
        };
        allowed.saturating_sub(self.used)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.left() == 0
    }

    pub(crate) fn polled(&mut self, slots: u64, fill: f64) {
        self.used += slots;
        if fill > 1.0 / 4.0 {
            self.pause = (self.pause / 2).max(MIN_POLL_INTERVAL);
        } else if fill < 1.0 / 16.0 {
            self.pause = (self.pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Begins the next second, after one in which that number of slots was written.
    pub(crate) fn next_second(&mut self, written: u64) {
        let ran = sys::clock::thread_ran();
        let whole = ran.saturating_sub(std::mem::replace(&mut self.ran, ran));
        self.learn(whole, written);
    }

    /// Sets the limits of the next second, if this one took that CPU time in all.
    fn learn(&mut self, whole: Duration, written: u64) {
        if self.used > 1000 {
            // This counts all time for slots, also the sums of connections: reading that number of
            // slots then takes what is allowed.
            let slot = whole.as_secs_f64() / self.used as f64;
            let affordable = (BUDGET.as_secs_f64() / slot.max(1e-9)) as u64;
            // The time of one second may be somebody else's doing.
            self.allowed =
                ((3 * self.allowed + affordable.min(MAX_SLOTS)) / 4).clamp(MIN_SLOTS, MAX_SLOTS);
        }
        self.is_sampled = !self.all_records
            && if self.is_sampled {
                written > self.allowed / 5 * 4
            } else {
                written > self.allowed
            };
        if self.is_sampled {
            self.pause = MIN_POLL_INTERVAL;
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_slots_are_sampled() {
        let mut pace = Pace::new(2, false);
        assert_eq!((pace.is_sampled, pace.left()), (false, 3 * MIN_SLOTS));
        pace.polled(10_000, 0.01);
        pace.learn(Duration::from_millis(2), 10_000);
        assert!(!pace.is_sampled && pace.allowed > MIN_SLOTS && !pace.is_used_up());
        // Records that cost much more, and many of them.
        for _ in 0..20 {
            pace.polled(pace.left(), 0.5);
            assert!(pace.is_used_up());
            pace.learn(Duration::from_millis(51), 1_000_000);
        }
        assert_eq!((pace.is_sampled, pace.allowed), (true, MIN_SLOTS));
        for _ in 0..100 {
            assert!(
                pace.wait(Instant::now() + Duration::from_secs(1)) <= Duration::from_millis(600)
            );
        }
        pace.learn(Duration::ZERO, 1000);
        assert!(!pace.is_sampled);
        let mut all = Pace::new(2, true);
        for _ in 0..20 {
            all.polled(1_000_000, 0.5);
            all.learn(Duration::from_secs(1), 10_000_000);
        }
        assert!(!all.is_sampled && !all.is_used_up() && all.most_of_ring() == u64::MAX);
    }
}
