//! Value of a thread, as read from the map.

use crate::layout::{
    CALL_HISTOGRAM, CallEntry, CallHistogram, Comm, SLOTS, Thread, ThreadValue, histogram_index,
    state,
};
use text::printable;
use zerocopy::FromZeros as _;

/// Value of a thread; by default all zeros, as for a thread that did not exist.
///
/// A value has room for every system call, but a thread makes few of them. The zeros of the others
/// are not kept, or a process of 4,000 threads would take 160 MB for its two snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Everything except the calls.
    pub(crate) thread: Thread,
    /// Entries of calls that are not all zeros, by slot.
    calls: Vec<(u32, CallEntry)>,
    /// Histograms of the durations of these calls, if they have one, by slot.
    histograms: Vec<(u32, CallHistogram)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            thread: Thread::new_zeroed(),
            calls: Vec::new(),
            histograms: Vec::new(),
        }
    }
}

impl Snapshot {
    /// Takes the map's value.
    pub fn from_value(value: &ThreadValue) -> Self {
        let none = CallEntry::default();
        let calls = (0..SLOTS)
            .zip(&value.calls)
            .filter(|(_, call)| **call != none);
        let calls: Vec<(u32, CallEntry)> = calls.map(|(slot, call)| (slot, *call)).collect();
        let histogram = |call: &CallEntry| {
            value
                .histograms
                .get(histogram_index(call.histogram)?)
                .copied()
        };
        let histograms = calls
            .iter()
            .filter_map(|(slot, call)| Some((*slot, histogram(call)?)))
            .collect();
        Self {
            thread: value.thread.clone(),
            calls,
            histograms,
        }
    }

    /// Returns the time until which the thread is accounted for.
    pub fn mark(&self) -> u64 {
        self.thread
            .mark
            .max(self.thread.soft_mark)
            .max(self.thread.hard_mark)
    }

    /// Returns whether a program was setting the mark and its bucket during the read.
    pub fn is_changing(&self) -> bool {
        self.thread.changes != 0
    }

    /// Returns the process of the thread.
    pub fn process(&self) -> u32 {
        self.thread.tgid
    }

    /// Returns the start of the thread; 0 if that was before it was first seen.
    pub fn start_time(&self) -> u64 {
        self.thread.start_time
    }

    /// Returns whether there was no event of the thread yet.
    pub fn is_unsure(&self) -> bool {
        self.thread.state == state::UNSURE
    }

    /// Returns whether the thread has ended.
    pub fn is_dead(&self) -> bool {
        self.thread.state == state::DEAD
    }

    /// Returns the entry of a system call.
    pub(crate) fn call(&self, slot: u32) -> CallEntry {
        let found = self.calls.binary_search_by_key(&slot, |(slot, _)| *slot);
        found.map_or_else(|_| CallEntry::default(), |index| self.calls[index].1)
    }

    /// Returns the histogram of the durations of a slot's calls; all zeros if it has none.
    pub(crate) fn histogram(&self, slot: u32) -> CallHistogram {
        let found = self
            .histograms
            .binary_search_by_key(&slot, |(slot, _)| *slot);
        found.map_or([0; CALL_HISTOGRAM], |index| self.histograms[index].1)
    }

    /// Returns the thread's name, with control characters and invalid UTF-8 as `\xNN`.
    pub fn comm(&self) -> String {
        name(&self.thread.comm)
    }
}

/// Returns a task's name, with untrusted bytes escaped.
pub(crate) fn name(comm: &Comm) -> String {
    let end = comm
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(comm.len());
    printable::text(&comm[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same form as for `/proc/PID/task/TID/comm`, which has the name while the thread lives.
    #[test]
    fn a_name_is_shown_with_its_odd_bytes() {
        assert_eq!(name(b"ren\x01\xff1\0ing\0\0\0\0\0\0"), "ren\\x01\\xff1");
        assert_eq!(name(b"sixteen bytes ab"), "sixteen bytes ab");
    }

    #[test]
    fn a_thread_that_changes_is_seen_as_such() {
        let snapshot = |changes| {
            let mut value = ThreadValue::new_zeroed();
            value.thread.changes = changes;
            Snapshot::from_value(&value)
        };
        assert_eq!(
            [0, 1, u32::MAX].map(|changes| snapshot(changes).is_changing()),
            [false, true, true]
        );
    }
}
