//! Sorts events by time: they come from several CPUs, and each waits a moment for earlier ones.
//!
//! The moment is counted in the time of the events, not of the reader. A reader that gets no CPU
//! for a while still finds events of that time in the ring; an event of its own must not overtake
//! them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time for which an event waits for an earlier one, in nanoseconds.
const REORDER_WINDOW_NS: u64 = 50_000_000;

/// Waiting events.
#[derive(Debug)]
pub struct Reorder<T> {
    waiting: BinaryHeap<Reverse<PendingEvent<T>>>,
    arrived: u64,
    /// Time up to which the ring has been read.
    reached: u64,
    /// Key of the last event popped.
    last: u64,
    /// Number of events that came after one with a greater key had been popped.
    late: u64,
}

/// Waiting event, ordered by its key, then by its arrival.
#[derive(Debug)]
struct PendingEvent<T> {
    key: u64,
    arrival: u64,
    time: u64,
    event: T,
}

impl<T> Reorder<T> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self {
            waiting: BinaryHeap::new(),
            arrived: 0,
            reached: 0,
            last: 0,
            late: 0,
        }
    }

    /// Returns the number of events that came after one with a greater key had been popped.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Adds an event of the ring. `key` is its position in time, in ticks; `time` is its time in
    /// nanoseconds. Later events in the ring are at most a moment older.
    pub fn push(&mut self, key: u64, time: u64, event: T) {
        self.reach(time);
        self.insert(key, time, event);
    }

    /// Notes that all events up to this time have been pushed.
    pub fn reach(&mut self, time: u64) {
        self.reached = self.reached.max(time);
    }

    /// Returns the time before which all events have been popped, once [`Self::pop`] has returned
    /// none.
    pub fn complete(&self) -> u64 {
        self.reached.saturating_sub(REORDER_WINDOW_NS)
    }

    /// Adds an event that does not come from the ring: earlier ones may still be in there.
    pub fn insert(&mut self, key: u64, time: u64, event: T) {
        self.arrived += 1;
        self.waiting.push(Reverse(PendingEvent {
            key,
            arrival: self.arrived,
            time,
            event,
        }));
    }

    /// Returns the next event, unless an earlier one can still be in the ring.
    pub fn pop(&mut self) -> Option<T> {
        let Reverse(first) = self.waiting.peek()?;
        if first.time.saturating_add(REORDER_WINDOW_NS) > self.reached {
            return None;
        }
        self.pop_any()
    }

    /// Returns the next event, no matter how long it has waited.
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

impl<T> PartialEq for PendingEvent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for PendingEvent<T> {}

impl<T> PartialOrd for PendingEvent<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for PendingEvent<T> {
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
        order.reach(REORDER_WINDOW_NS + 1_999);
        assert_eq!(order.pop(), None);
        order.reach(REORDER_WINDOW_NS + 2_000);
        assert_eq!(order.pop(), Some('a'));
        assert_eq!(order.pop(), Some('b'));
        order.push(15, 3_000, 'c');
        order.push(30, 9_000, 'd');
        order.push(30, 8_000, 'e');
        assert_eq!(
            [order.pop_any(), order.pop_any(), order.pop_any()],
            [Some('c'), Some('d'), Some('e')]
        );
        assert_eq!(order.late, 1);
        assert_eq!(order.pop_any(), None);
    }

    #[test]
    fn an_event_of_the_reader_waits_for_what_is_still_in_the_ring() {
        let mut order = Reorder::new();
        order.push(10, 10, "old");
        // The reader had no CPU for ten windows; it looks at something now, and then goes on with
        // the ring.
        let now = 10 * REORDER_WINDOW_NS;
        order.insert(now, now, "its own");
        assert_eq!(order.pop(), None);
        order.push(
            3 * REORDER_WINDOW_NS,
            3 * REORDER_WINDOW_NS,
            "in the ring meanwhile",
        );
        assert_eq!([order.pop(), order.pop()], [Some("old"), None]);
        order.reach(now + REORDER_WINDOW_NS);
        assert_eq!(
            [order.pop(), order.pop()],
            [Some("in the ring meanwhile"), Some("its own")]
        );
        assert_eq!(order.late(), 0);
    }
}
