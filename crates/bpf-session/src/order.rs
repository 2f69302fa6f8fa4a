//! Sorts events by time: they come from several CPUs, and each waits a moment for earlier ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long an event waits for an earlier one, in nanoseconds.
const WINDOW: u64 = 50_000_000;

/// The waiting events.
#[derive(Debug)]
pub struct Reorder<T> {
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    arrived: u64,
    /// The key of the last event that was popped.
    last: u64,
    /// How many came after an event with a greater key had been popped.
    late: u64,
}

/// Ordered by its key, then by its arrival.
#[derive(Debug)]
struct Waiting<T> {
    key: u64,
    arrival: u64,
    time: u64,
    event: T,
}

impl<T> Reorder<T> {
    /// Without events.
    pub fn new() -> Self {
        Self { waiting: BinaryHeap::new(), arrived: 0, last: 0, late: 0 }
    }

    /// How many came after an event with a greater key had been popped.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Takes an event. `key` is its position in time, in ticks; `time` is when it happened, in nanoseconds.
    pub fn push(&mut self, key: u64, time: u64, event: T) {
        self.arrived += 1;
        self.waiting.push(Reverse(Waiting { key, arrival: self.arrived, time, event }));
    }

    /// The next event, if it has waited long enough at `now`.
    pub fn pop(&mut self, now: u64) -> Option<T> {
        let Reverse(first) = self.waiting.peek()?;
        if first.time.saturating_add(WINDOW) > now {
            return None;
        }
        self.pop_any()
    }

    /// The next event, no matter how long it has waited.
    pub fn pop_any(&mut self) -> Option<T> {
        let Reverse(first) = self.waiting.pop()?;
        self.late += u64::from(first.key < self.last);
        self.last = self.last.max(first.key);
        Some(first.event)
    }
}

impl<T> Default for Reorder<T> {
    fn default() -> Self {
        Self::new()
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
        (self.key, self.arrival).cmp(&(other.key, other.arrival))
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
}
