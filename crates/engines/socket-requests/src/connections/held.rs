//! Records in the order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::trace::RequestRecord;

/// Queue of records that wait for earlier ones.
#[derive(Default)]
pub(super) struct HeldRecords {
    waiting: BinaryHeap<Reverse<HeldRecord>>,
    /// Number of records that have come.
    arrived: u64,
}

impl HeldRecords {
    /// Adds a record.
    pub(super) fn push(&mut self, record: RequestRecord) {
        self.arrived += 1;
        self.waiting.push(Reverse(HeldRecord {
            at: record.at,
            arrival: self.arrived,
            record,
        }));
    }

    /// Removes and returns the next record if it is from before that time.
    pub(super) fn pop_before(&mut self, until: u64) -> Option<RequestRecord> {
        self.waiting.peek().filter(|Reverse(it)| it.at < until)?;
        self.waiting.pop().map(|Reverse(it)| it.record)
    }
}

/// Record that waits for earlier ones, ordered by its time, then by its arrival.
struct HeldRecord {
    at: u64,
    arrival: u64,
    record: RequestRecord,
}

impl PartialEq for HeldRecord {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.arrival) == (other.at, other.arrival)
    }
}

impl Eq for HeldRecord {}

impl PartialOrd for HeldRecord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeldRecord {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.arrival).cmp(&(other.at, other.arrival))
    }
}
