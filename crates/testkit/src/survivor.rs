//! The truth about a trace: which records are still in the rings at the end.

use std::collections::{BTreeMap, VecDeque};

use crate::image::Written;
use crate::record::{Arg, Record};
use crate::tpoint::Tpoint;

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
    pub(crate) fn of(lcore: u32, record: &Record, tpoint: &Tpoint, finished: bool) -> Self {
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

/// What was recorded, and which record each slot holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
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
    /// Notes a record of which the first `limit` slots were written to a ring of `ring` slots.
    pub(crate) fn note(&mut self, record: Survivor, written: Written, limit: usize, ring: usize) {
        let empty = || LcoreJournal { records: VecDeque::new(), dropped: 0, writers: vec![None; ring] };
        let journal = self.lcores.entry(record.lcore).or_insert_with(empty);
        let number = journal.dropped + journal.records.len();
        let slot = (written.first % ring as u64) as usize;
        for part in 0..written.slots.min(limit) {
            journal.writers[(slot + part) % ring] = Some(number);
        }
        let slots = written.slots;
        journal.records.push_back(Survivor { slot, slots, ..record });
        journal.drop_overwritten();
    }

    /// The records whose first slot is still theirs: lcore after lcore, each in the order of recording.
    pub(crate) fn surviving(&self) -> Vec<Survivor> {
        self.lcores.values().flat_map(LcoreJournal::surviving).collect()
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

    fn surviving(&self) -> impl Iterator<Item = Survivor> {
        self.records.iter().enumerate().filter_map(|(at, record)| {
            let holds = |part: usize| self.holds(self.dropped + at, record, part);
            holds(0).then(|| Survivor { args_intact: (0..record.slots).all(holds), ..record.clone() })
        })
    }
}
