//! The machine's tick counter, for the times of probes and records.

use std::time::Duration;

use sys::clock::{Moment, monotonic_nanos};

pub(crate) use sys::clock::ticks;

/// Time for which the counter's rate is measured.
const MEASURE: Duration = Duration::from_millis(20);

/// Measures the ticks per second. A reading is repeated if the thread lost its CPU between the two
/// clocks, so the rate is right even on a busy machine.
pub(crate) fn tick_rate() -> u64 {
    let first = Moment::now(monotonic_nanos);
    std::thread::sleep(MEASURE);
    let last = Moment::now(monotonic_nanos);
    let (ticks, nanos) = (
        last.ticks.saturating_sub(first.ticks),
        last.nanos.saturating_sub(first.nanos),
    );
    let rate = u128::from(ticks) * 1_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// Time stamps of one thread: they always increase, even if the counters of two CPUs differ.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    last: u64,
}

impl Stamps {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.last = ticks().max(self.last + 1);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise() {
        let mut stamps = Stamps::default();
        let taken: Vec<u64> = (0..1000).map(|_| stamps.next()).collect();
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        stamps.last = u64::MAX - 1;
        assert_eq!(stamps.next(), u64::MAX);
    }
}
