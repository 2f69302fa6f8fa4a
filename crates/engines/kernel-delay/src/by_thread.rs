//! Index of preemptors and interrupts by thread. A window of thousands of threads has tens of
//! thousands of entries: a scan for each thread takes seconds.

use std::collections::HashMap;

use crate::layout::{InterruptKey, PreemptorKey, Tally};
use crate::sample::WindowSnapshot;

/// Snapshot with its entries indexed by thread.
#[derive(Debug)]
pub(crate) struct ByThread<'s> {
    /// Indexed snapshot.
    pub(crate) snapshot: &'s WindowSnapshot,
    /// Parents of the processes that ran instead of a thread.
    pub(crate) parents: HashMap<u32, u32>,
    preemptors: HashMap<u64, Vec<&'s (PreemptorKey, u64)>>,
    interrupts: HashMap<u32, Vec<&'s (InterruptKey, Tally)>>,
}

impl<'s> ByThread<'s> {
    /// Indexes a snapshot.
    pub(crate) fn from_snapshot(snapshot: &'s WindowSnapshot) -> Self {
        let mut preemptors: HashMap<u64, Vec<_>> = HashMap::new();
        for entry in &snapshot.preemptors {
            preemptors.entry(entry.0.waiter).or_default().push(entry);
        }
        let mut interrupts: HashMap<u32, Vec<_>> = HashMap::new();
        for entry in &snapshot.interrupts {
            interrupts.entry(entry.0.tid).or_default().push(entry);
        }
        let parents = snapshot
            .preemptors
            .iter()
            .map(|(key, _)| (key.tgid, key.parent))
            .collect();
        Self {
            snapshot,
            parents,
            preemptors,
            interrupts,
        }
    }

    /// Returns the tasks that ran while a thread waited, each with its nanoseconds.
    pub(crate) fn preemptors(&self, tid: u32) -> &[&'s (PreemptorKey, u64)] {
        self.preemptors.get(&tid.into()).map_or(&[], Vec::as_slice)
    }

    /// Returns the interrupts of a thread.
    pub(crate) fn interrupts(&self, tid: u32) -> &[&'s (InterruptKey, Tally)] {
        self.interrupts.get(&tid).map_or(&[], Vec::as_slice)
    }
}
