//! Converts the kernel's clock to the processor's ticks.

use sys::clock::{Moment, monotonic_nanos};

/// Converter from the kernel's clock to the processor's ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickClock {
    start: Moment,
}

impl TickClock {
    /// Starts to compare the clocks.
    pub(crate) fn start() -> Self {
        Self {
            start: Moment::now(monotonic_nanos),
        }
    }

    /// Returns the ticks at a moment of `CLOCK_MONOTONIC`, by the progress of both clocks since the
    /// start. It is accurate only for moments near `now`, and after some milliseconds: the error is
    /// that of a line through two points.
    pub(crate) fn ticks_at(&self, nanos: u64, now: Moment) -> u64 {
        let ticks = u128::from(now.ticks.saturating_sub(self.start.ticks));
        let elapsed = u128::from(now.nanos.saturating_sub(self.start.nanos)).max(1);
        let ago = u128::from(now.nanos.saturating_sub(nanos));
        now.ticks
            .saturating_sub(u64::try_from(ago * ticks / elapsed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_computed_from_the_clock() {
        let clock = TickClock {
            start: Moment {
                ticks: 1_000_000,
                nanos: 5_000_000,
                bracket: 0,
            },
        };
        let now = Moment {
            ticks: 4_000_000,
            nanos: 6_000_000,
            bracket: 0,
        };
        assert_eq!(clock.ticks_at(6_000_000, now), 4_000_000);
        assert_eq!(clock.ticks_at(5_900_000, now), 3_700_000);
        assert_eq!(clock.ticks_at(7_000_000, now), 4_000_000);
    }
}
