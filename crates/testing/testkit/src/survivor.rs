//! The truth about a trace: which records are still in the rings at the end.

use std::collections::{BTreeMap, VecDeque};

use spdk_trace_writer::{Arg, Record, Tpoint, TraceBuilder, Written};

/// A record whose first slot is still in its ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The lcore that recorded it.
    pub lcore: u32,
    /// When, in ticks.
    pub tsc: u64,
    /// Id of its tracepoint.
    pub tpoint_id: u16,
    /// Name of its tracepoint.
    pub tpoint: String,
    /// Its owner (`poller_id` up to v24.01).
    pub owner: u16,
    /// Its size.
    pub size: u32,
    /// Its object.
    pub object: u64,
    /// Its arguments as the slots hold them: strings cut to their size, integers of 4 bytes without their upper half.
    pub args: Vec<Arg>,
    /// Whether all of its slots are still its own; otherwise `args` can't be read back.
    pub args_intact: bool,
    /// Whether `next_entry` was moved past it; otherwise the writer was stopped within it.
    pub finished: bool,
    /// Index of its first slot in the ring.
    pub slot: usize,
    /// Slots that it took.
    pub slots: usize,
}

impl Survivor {
    /// The truth about a record, before it has its slots.
    fn of(lcore: u32, record: &Record, tpoint: &Tpoint, finished: bool) -> Self {
        let args = record.args.iter().zip(&tpoint.args);
        Self {
            lcore,
            tsc: record.tsc,
            tpoint_id: record.tpoint,
            tpoint: tpoint.name.clone(),
            owner: record.owner,
            size: record.size,
            object: record.object,
            args: args.map(|(arg, spec)| arg.as_stored(spec)).collect(),
            args_intact: true,
            finished,
            slot: 0,
            slots: 0,
        }
    }
}

/// The records of a trace that are still in the rings: lcore after lcore, each in the order of recording. Records that
/// `clear_tsc` hides are among them.
pub fn survivors(trace: &TraceBuilder) -> Vec<Survivor> {
    Journal::of(trace).survivors()
}

/// What was recorded, and which record each slot holds.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    tpoints: BTreeMap<u16, Tpoint>,
    /// Slots of each ring.
    slots: usize,
    lcores: BTreeMap<u32, LcoreJournal>,
}

#[derive(Debug, Clone)]
struct LcoreJournal {
    /// The newest records; older ones, which no slot holds any more, were dropped.
    records: VecDeque<Survivor>,
    /// How many were dropped: the number of the first in `records`.
    dropped: usize,
    /// Number of the record that wrote the slot last.
    writers: Vec<Option<usize>>,
}

impl Journal {
    /// The journal of all that the trace has recorded.
    pub(crate) fn of(trace: &TraceBuilder) -> Self {
        let mut image = trace.empty_image();
        let tpoints = trace.tpoints().map(|tpoint| (tpoint.id, tpoint.clone())).collect();
        let mut journal = Self { tpoints, slots: image.file.layout.slots, lcores: BTreeMap::new() };
        trace.replay(&mut image, |step, written| journal.note(step.lcore, &step.record, written, step.limit));
        journal
    }

    /// Notes a record of which the first `limit` slots were written, or all of them and `next_entry`.
    ///
    /// # Panics
    /// If its tracepoint was not declared.
    pub(crate) fn note(&mut self, lcore: u32, record: &Record, written: Written, limit: Option<usize>) {
        let ring = self.slots;
        let empty = || LcoreJournal { records: VecDeque::new(), dropped: 0, writers: vec![None; ring] };
        let survivor = Survivor::of(lcore, record, &self.tpoints[&record.tpoint], limit.is_none());
        let journal = self.lcores.entry(lcore).or_insert_with(empty);
        let number = journal.dropped + journal.records.len();
        let slot = (written.first % ring as u64) as usize;
        for part in 0..written.slots.min(limit.unwrap_or(usize::MAX)) {
            journal.writers[(slot + part) % ring] = Some(number);
        }
        journal.records.push_back(Survivor { slot, slots: written.slots, ..survivor });
        journal.drop_overwritten();
    }

    /// The records whose first slot is still theirs: lcore after lcore, each in the order of recording.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.lcores.values().flat_map(LcoreJournal::survivors).collect()
    }
}

impl LcoreJournal {
    /// Whether part `part` of that record is still in its slot.
    fn holds(&self, number: usize, record: &Survivor, part: usize) -> bool {
        self.writers[(record.slot + part) % self.writers.len()] == Some(number)
    }

    /// Forgets the records at the front that no slot holds, so that a ring written for hours takes no more memory.
    fn drop_overwritten(&mut self) {
        while self.records.front().is_some_and(|record| !self.holds(self.dropped, record, 0)) {
            self.records.pop_front();
            self.dropped += 1;
        }
    }

    fn survivors(&self) -> impl Iterator<Item = Survivor> {
        self.records.iter().enumerate().filter_map(|(at, record)| {
            let holds = |part: usize| self.holds(self.dropped + at, record, part);
            holds(0).then(|| Survivor { args_intact: (0..record.slots).all(holds), ..record.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Era;

    /// A ring of eight slots, with one tracepoint that takes three of them.
    fn small() -> TraceBuilder {
        let mut t = TraceBuilder::new(Era::F).slots(8);
        t.tpoint(Tpoint::new(193, "START").ptr("ctx").int("qd", 4).str("name", 40));
        t.tpoint(Tpoint::new(194, "DONE"));
        t
    }

    #[test]
    fn the_newest_records_survive() {
        let mut t = small();
        for tsc in 1..=3 {
            t.record(0, Record::new(193, tsc).ptr(tsc).int(0).str("a"));
        }
        let left: Vec<_> = survivors(&t).iter().map(|s| (s.tsc, s.args_intact, s.slot)).collect();
        assert_eq!(left, [(2, true, 3), (3, true, 6)]);
    }

    #[test]
    fn a_torn_record_takes_slots_from_the_oldest() {
        let mut t = small();
        for tsc in 1..=8 {
            t.record(0, Record::new(194, tsc));
        }
        t.torn(0, Record::new(193, 9).ptr(1).int(2).str("a"), 1);
        let left: Vec<_> = survivors(&t).iter().map(|s| (s.tsc, s.args_intact, s.finished)).collect();
        assert_eq!(left[0], (2, true, true));
        assert_eq!(left[7], (9, false, false));
    }

    #[test]
    fn strings_are_as_the_slots_hold_them() {
        let mut t = TraceBuilder::new(Era::C).slots(4);
        t.tpoint(Tpoint::new(1, "LONG").str("s", 30));
        t.record(0, Record::new(1, 1).str("abcdefghijklmnopqrstuvwxyz0123456789"));
        t.record(0, Record::new(1, 2).str("xy"));
        let args: Vec<_> = survivors(&t).into_iter().flat_map(|s| s.args).collect();
        assert_eq!(args, [Arg::str("abcdefghijklmnopqrstuvwxyz012"), Arg::str("xy")]);
    }
}
