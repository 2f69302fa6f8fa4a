//! How much of each second is read, so that `top` takes little of a CPU whatever the trace has.

use std::time::{Duration, Instant};

/// The time between two polls of rings that fill slowly, and of those that fill fast.
const LONGEST: Duration = Duration::from_millis(50);
const SHORTEST: Duration = Duration::from_millis(2);
/// The CPU time that the thread may take of each second: with the screen, and what the kernel's windows take, that is below 2 %.
const BUDGET: Duration = Duration::from_millis(11);
/// Slots that are read in a second at least, whatever that takes, and at most: about 900 requests, and 15,000.
const LEAST: u64 = 12_000;
const MOST: u64 = 200_000;
/// How many slots a poll copies of each ring at most: memory has a bound.
const MOST_OF_RING: u64 = 1 << 14;

/// How much of each second is read.
pub(crate) struct Pace {
    /// How many rings there are.
    rings: u64,
    /// Whether all records are read, whatever that costs.
    all_records: bool,
    /// The slots that a second may have to be read whole.
    allowed: u64,
    /// Whether only a window of each second is read.
    is_sampled: bool,
    /// The time between two polls.
    pause: Duration,
    /// Slots that were read in this second.
    used: u64,
    /// The thread's CPU time at the begin of the second.
    ran: Duration,
    /// Distributes the windows.
    seed: u64,
}

impl Pace {
    pub(crate) fn new(rings: usize, all_records: bool) -> Self {
        // Any number but 0 will do.
        let (seed, rings) = (sys::clock::ticks() | 1, rings.max(1) as u64);
        Self {
            rings,
            all_records,
            // What a slot costs is not known yet.
            allowed: (2 * LEAST).max(rings),
            is_sampled: false,
            pause: LONGEST,
            used: 0,
            ran: sys::clock::thread_ran(),
            seed,
        }
    }

    pub(crate) fn rings(&self) -> usize {
        self.rings as usize
    }

    /// Whether only a window of each second is read.
    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// The time between two polls.
    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }

    /// Whether nothing was read in this second.
    pub(crate) fn has_nothing(&self) -> bool {
        self.used == 0
    }

    /// How long to wait before the window of a second begins, which ends then.
    pub(crate) fn wait(&mut self, end: Instant) -> Duration {
        if !self.is_sampled {
            return Duration::ZERO;
        }
        // xorshift: a window at the same place of each second would miss, or meet, what comes once a second.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let left = end.saturating_duration_since(Instant::now());
        left.mul_f64((self.seed % 1000) as f64 / 1000.0 * 0.6)
    }

    /// How many slots of each ring the next poll may copy. A window has the same part of each.
    pub(crate) fn most_of_ring(&self) -> u64 {
        if self.all_records {
            return u64::MAX;
        }
        if self.is_sampled { (self.left() / self.rings).max(1) } else { self.left().min(MOST_OF_RING) }
    }

    /// Where all was read so far, a second may have half as much again.
    fn left(&self) -> u64 {
        if self.all_records {
            return u64::MAX;
        }
        let allowed = if self.is_sampled { self.allowed } else { self.allowed + self.allowed / 2 };
        allowed.saturating_sub(self.used)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.left() == 0
    }

    pub(crate) fn polled(&mut self, slots: u64, fill: f64) {
        self.used += slots;
        if fill > 1.0 / 4.0 {
            self.pause = (self.pause / 2).max(SHORTEST);
        } else if fill < 1.0 / 16.0 {
            self.pause = (self.pause * 2).min(LONGEST);
        }
    }

    /// A second is over in which that many slots were written.
    pub(crate) fn next_second(&mut self, written: u64) {
        let ran = sys::clock::thread_ran();
        let whole = ran.saturating_sub(std::mem::replace(&mut self.ran, ran));
        self.learn(whole, written);
    }

    /// What the next second may have, if this one took that much CPU time in all.
    fn learn(&mut self, whole: Duration, written: u64) {
        if self.used > 1000 {
            // As if all of it were for slots, also the sums of connections: as many as are read then take what they may.
            let slot = whole.as_secs_f64() / self.used as f64;
            let affordable = (BUDGET.as_secs_f64() / slot.max(1e-9)) as u64;
            // What one second took may be somebody else's doing.
            self.allowed = ((3 * self.allowed + affordable.min(MOST)) / 4).clamp(LEAST, MOST);
        }
        self.is_sampled =
            !self.all_records && if self.is_sampled { written > self.allowed / 5 * 4 } else { written > self.allowed };
        if self.is_sampled {
            self.pause = SHORTEST;
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_sampled() {
        let mut pace = Pace::new(2, false);
        assert_eq!((pace.is_sampled, pace.left()), (false, 3 * LEAST));
        pace.polled(10_000, 0.01);
        pace.learn(Duration::from_millis(2), 10_000);
        assert!(!pace.is_sampled && pace.allowed > LEAST && !pace.is_used_up());
        // Records that cost much more, and are many.
        for _ in 0..20 {
            pace.polled(pace.left(), 0.5);
            assert!(pace.is_used_up());
            pace.learn(Duration::from_millis(51), 1_000_000);
        }
        assert_eq!((pace.is_sampled, pace.allowed), (true, LEAST));
        for _ in 0..100 {
            assert!(pace.wait(Instant::now() + Duration::from_secs(1)) <= Duration::from_millis(600));
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
