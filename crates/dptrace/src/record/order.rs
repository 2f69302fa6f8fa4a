//! Events in the order of time: they come from several CPUs, and wait a moment for those that are on their way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long an event waits for an earlier one, in nanoseconds.
const WINDOW: u64 = 50_000_000;

/// Events that wait.
#[derive(Debug)]
pub(crate) struct Reorder<T> {
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    arrived: u64,
    /// The place of the last one that was let go.
    last: u64,
    /// How many came too late for their place.
    pub(crate) late: u64,
}

/// Ordered by its place in time, then by its arrival.
#[derive(Debug)]
struct Waiting<T> {
    place: u64,
    arrival: u64,
    time: u64,
    event: T,
}

impl<T> Reorder<T> {
    pub(crate) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), arrived: 0, last: 0, late: 0 }
    }

    /// Takes an event. `place` is where it belongs, in ticks; `time` when it happened, in nanoseconds.
    pub(crate) fn push(&mut self, place: u64, time: u64, event: T) {
        self.arrived += 1;
        self.waiting.push(Reverse(Waiting { place, arrival: self.arrived, time, event }));
    }

    /// The next event, if it has waited long enough at `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<T> {
        let Reverse(first) = self.waiting.peek()?;
        if first.time.saturating_add(WINDOW) > now {
            return None;
        }
        self.pop_any()
    }

    /// The next event, however short it has waited.
    pub(crate) fn pop_any(&mut self) -> Option<T> {
        let Reverse(first) = self.waiting.pop()?;
        self.late += u64::from(first.place < self.last);
        self.last = self.last.max(first.place);
        Some(first.event)
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.place, self.arrival).cmp(&(other.place, other.arrival))
    }
}

/// Tells the processor's ticks of a moment of the kernel's clock.
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

    /// The ticks at a moment of `CLOCK_MONOTONIC`, told from how far both clocks have come since the start. Only right for
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
    fn events_wait_for_earlier_ones() {
        let mut order = Reorder::new();
        order.push(20, 1_000, 'b');
        order.push(10, 2_000, 'a');
        assert_eq!(order.pop(WINDOW + 1_999), None);
        assert_eq!(order.pop(WINDOW + 2_000), Some('a'));
        assert_eq!(order.pop(WINDOW + 2_000), Some('b'));
        order.push(15, 3_000, 'c');
        order.push(30, 9_000, 'd');
        order.push(30, 8_000, 'e');
        assert_eq!([order.pop_any(), order.pop_any(), order.pop_any()], [Some('c'), Some('d'), Some('e')]);
        assert_eq!(order.late, 1);
        assert_eq!(order.pop_any(), None);
    }

    #[test]
    fn ticks_are_told_from_the_clock() {
        let clock = TickClock { start: Moment { ticks: 1_000_000, nanos: 5_000_000 } };
        let now = Moment { ticks: 4_000_000, nanos: 6_000_000 };
        assert_eq!(clock.ticks_at(6_000_000, now), 4_000_000);
        assert_eq!(clock.ticks_at(5_900_000, now), 3_700_000);
        assert_eq!(clock.ticks_at(7_000_000, now), 4_000_000);
    }
}
