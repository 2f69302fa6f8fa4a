//! The processor's ticks of a moment of the kernel's clock.

/// Computes the processor's ticks for a moment of the kernel's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickClock {
    start: Moment,
}

/// Both clocks, read one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) ticks: u64,
    pub(crate) nanos: u64,
}

impl Moment {
    /// Of several tries the one that nothing came between: the first may have had to fetch a page.
    pub(crate) fn now() -> Self {
        let tries = [(); 4].map(|()| {
            let before = sys::clock::ticks();
            let nanos = sys::clock::monotonic_nanos();
            let took = sys::clock::ticks().saturating_sub(before);
            (took, Self { ticks: before + took / 2, nanos })
        });
        let best = tries.into_iter().min_by_key(|(took, _)| *took);
        best.map_or(tries[0].1, |(_, moment)| moment)
    }
}

impl TickClock {
    /// Starts to compare the clocks.
    pub(crate) fn start() -> Self {
        Self { start: Moment::now() }
    }

    /// The ticks at a moment of `CLOCK_MONOTONIC`, computed from how far both clocks have come since the start. Only right for
    /// moments near to `now`, and once some milliseconds have gone by: the error is that of a line through two points.
    pub(crate) fn ticks_at(&self, nanos: u64, now: Moment) -> u64 {
        let ticks = u128::from(now.ticks.saturating_sub(self.start.ticks));
        let elapsed = u128::from(now.nanos.saturating_sub(self.start.nanos)).max(1);
        let ago = u128::from(now.nanos.saturating_sub(nanos));
        now.ticks.saturating_sub(u64::try_from(ago * ticks / elapsed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_computed_from_the_clock() {
        let clock = TickClock { start: Moment { ticks: 1_000_000, nanos: 5_000_000 } };
        let now = Moment { ticks: 4_000_000, nanos: 6_000_000 };
        assert_eq!(clock.ticks_at(6_000_000, now), 4_000_000);
        assert_eq!(clock.ticks_at(5_900_000, now), 3_700_000);
        assert_eq!(clock.ticks_at(7_000_000, now), 4_000_000);
    }
}
