//! A thread's value, as it was read from the map.

use crate::layout::{
    CALL_HISTOGRAM, CallEntry, CallHistogram, Comm, SLOTS, Thread, ThreadValue, histogram_index, state,
};
use text::printable;
use zerocopy::FromZeros as _;

/// A thread's value; by default that of a thread that was not there, all zeros.
///
/// A value has room for every system call, and a thread makes few of them: the others' zeros are not kept, or a process of
/// 4,000 threads would take 160 MB for its two snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// All but the calls.
    pub(crate) thread: Thread,
    /// The calls that have something, by slot.
    calls: Vec<(u32, CallEntry)>,
    /// How long they took, of those that have a histogram: by slot.
    histograms: Vec<(u32, CallHistogram)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self { thread: Thread::new_zeroed(), calls: Vec::new(), histograms: Vec::new() }
    }
}

impl Snapshot {
    /// Of the map's value.
    pub fn of(value: &ThreadValue) -> Self {
        let none = CallEntry::default();
        let calls = (0..SLOTS).zip(&value.calls).filter(|(_, call)| **call != none);
        let calls: Vec<(u32, CallEntry)> = calls.map(|(slot, call)| (slot, *call)).collect();
        let histogram = |call: &CallEntry| value.histograms.get(histogram_index(call.histogram)?).copied();
        let histograms = calls.iter().filter_map(|(slot, call)| Some((*slot, histogram(call)?))).collect();
        Self { thread: value.thread.clone(), calls, histograms }
    }

    /// Until when its time is accounted for.
    pub fn mark(&self) -> u64 {
        self.thread.mark.max(self.thread.soft_mark).max(self.thread.hard_mark)
    }

    /// Whether it was read between the mark and the bucket that belongs to it.
    pub fn is_changing(&self) -> bool {
        self.thread.changes != 0
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.thread.tgid
    }

    /// When the thread was started; 0 where that was before it was seen.
    pub fn start_time(&self) -> u64 {
        self.thread.start_time
    }

    /// Whether there was no event of the thread yet.
    pub fn is_unsure(&self) -> bool {
        self.thread.state == state::UNSURE
    }

    /// Whether the thread is gone.
    pub fn is_dead(&self) -> bool {
        self.thread.state == state::DEAD
    }

    /// A system call's entry.
    pub(crate) fn call(&self, slot: u32) -> CallEntry {
        let found = self.calls.binary_search_by_key(&slot, |(slot, _)| *slot);
        found.map_or_else(|_| CallEntry::default(), |index| self.calls[index].1)
    }

    /// How long the calls of a slot took; all zeros where it has no histogram.
    pub(crate) fn histogram(&self, slot: u32) -> CallHistogram {
        let found = self.histograms.binary_search_by_key(&slot, |(slot, _)| *slot);
        found.map_or([0; CALL_HISTOGRAM], |index| self.histograms[index].1)
    }

    /// Its name; what is not UTF-8, and control characters, are shown as `\xNN`.
    pub fn comm(&self) -> String {
        name(&self.thread.comm)
    }
}

/// A task's name, as foreign text is shown.
pub(crate) fn name(comm: &Comm) -> String {
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    printable::text(&comm[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `/proc/PID/task/TID/comm` is shown, which has the name while the thread lives.
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
            Snapshot::of(&value)
        };
        assert_eq!([0, 1, u32::MAX].map(|changes| snapshot(changes).is_changing()), [false, true, true]);
    }
}
