//! The expected contents of a trace: the records still in the rings at the end.

use std::collections::{BTreeMap, VecDeque};

use spdk_trace_writer::{Arg, Record, SlotRange, Tpoint, TraceBuilder};

/// A record whose first slot is still in its ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The lcore that recorded it.
    pub lcore: u32,
    /// Time, in ticks.
    pub tsc: u64,
    /// Id of its tracepoint.
    pub tpoint_id: u16,
    /// Name of its tracepoint.
    pub tpoint: String,
    /// Id of its owner (`poller_id` up to v24.01).
    pub owner: u16,
    /// Size.
    pub size: u32,
    /// Id of its object.
    pub object: u64,
    /// Arguments as the slots hold them: strings cut to their size, integers of 4 bytes without
    /// their upper half.
    pub args: Vec<Arg>,
    /// True if all of its slots are intact; otherwise `args` can't be read back.
    pub args_intact: bool,
    /// True if `next_entry` was moved past it; otherwise the writer was stopped within it.
    pub finished: bool,
    /// Index of its first slot in the ring.
    pub slot: usize,
    /// Number of its slots.
    pub slots: usize,
}

impl Survivor {
    /// Creates the expected record, without its slots.
    fn new(lcore: u32, record: &Record, tpoint: &Tpoint, finished: bool) -> Self {
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

/// Returns the records of a trace that are still in the rings, by lcore and in the order of
/// recording. Includes records hidden by `clear_tsc`.
pub fn survivors(trace: &TraceBuilder) -> Vec<Survivor> {
    Journal::from_trace(trace).survivors()
}

/// The recorded records, and the record in each slot.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    tpoints: BTreeMap<u16, Tpoint>,
    /// Number of slots in each ring.
    slots: usize,
    lcores: BTreeMap<u32, LcoreJournal>,
}

#[derive(Debug, Clone)]
struct LcoreJournal {
    /// The newest records; older ones that are in no slot were dropped.
    records: VecDeque<Survivor>,
    /// Number of dropped records, which is the number of the first in `records`.
    dropped: usize,
    /// Number of the record that last wrote each slot.
    writers: Vec<Option<usize>>,
}

impl Journal {
    /// Creates the journal of everything that the trace has recorded.
    pub(crate) fn from_trace(trace: &TraceBuilder) -> Self {
        let mut image = trace.empty_image();
        let tpoints = trace
            .tpoints()
            .map(|tpoint| (tpoint.id, tpoint.clone()))
            .collect();
        let mut journal = Self {
            tpoints,
            slots: image.file.layout.slots,
            lcores: BTreeMap::new(),
        };
        trace.replay(&mut image, |step, written| {
            journal.note(step.lcore, &step.record, written, step.limit);
        });
        journal
    }

    /// Notes a record. `limit` is the number of slots written; if `None`, all were written, and
    /// `next_entry` too.
    ///
    /// # Panics
    /// If its tracepoint was not declared.
    pub(crate) fn note(
        &mut self,
        lcore: u32,
        record: &Record,
        written: SlotRange,
        limit: Option<usize>,
    ) {
        let ring = self.slots;
        let empty = || LcoreJournal {
            records: VecDeque::new(),
            dropped: 0,
            writers: vec![None; ring],
        };
        let survivor = Survivor::new(
            lcore,
            record,
            &self.tpoints[&record.tpoint],
            limit.is_none(),
        );
        let journal = self.lcores.entry(lcore).or_insert_with(empty);
        let number = journal.dropped + journal.records.len();
        let slot = (written.first % ring as u64) as usize;
        for part in 0..written.slots.min(limit.unwrap_or(usize::MAX)) {
            journal.writers[(slot + part) % ring] = Some(number);
        }
        journal.records.push_back(Survivor {
            slot,
            slots: written.slots,
            ..survivor
        });
        journal.drop_overwritten();
    }

    /// Returns the records whose first slot is intact, by lcore and in the order of recording.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.lcores
            .values()
            .flat_map(LcoreJournal::survivors)
            .collect()
    }
}

impl LcoreJournal {
    /// Returns whether part `part` of this record is still in its slot.
    fn holds(&self, number: usize, record: &Survivor, part: usize) -> bool {
        self.writers[(record.slot + part) % self.writers.len()] == Some(number)
    }

    /// Drops the records at the front that are in no slot, so that a ring written for hours takes
    /// no more memory.
    fn drop_overwritten(&mut self) {
        while self
            .records
            .front()
            .is_some_and(|record| !self.holds(self.dropped, record, 0))
        {
            self.records.pop_front();
            self.dropped += 1;
        }
    }

    fn survivors(&self) -> impl Iterator<Item = Survivor> {
        self.records.iter().enumerate().filter_map(|(at, record)| {
            let holds = |part: usize| self.holds(self.dropped + at, record, part);
            holds(0).then(|| Survivor {
                args_intact: (0..record.slots).all(holds),
                ..record.clone()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Era;

    /// Creates a trace with a ring of eight slots, and one tracepoint that takes three of them.
    fn small() -> TraceBuilder {
        let mut t = TraceBuilder::new(Era::F).slots(8);
        t.tpoint(
            Tpoint::new(193, "START")
                .ptr("ctx")
                .int("qd", 4)
                .str("name", 40),
        );
        t.tpoint(Tpoint::new(194, "DONE"));
        t
    }

    #[test]
    fn the_newest_records_survive() {
        let mut t = small();
        for tsc in 1..=3 {
            t.record(0, Record::new(193, tsc).ptr(tsc).int(0).str("a"));
        }
        let left: Vec<_> = survivors(&t)
            .iter()
            .map(|s| (s.tsc, s.args_intact, s.slot))
            .collect();
        assert_eq!(left, [(2, true, 3), (3, true, 6)]);
    }

    #[test]
    fn a_torn_record_takes_slots_from_the_oldest() {
        let mut t = small();
        for tsc in 1..=8 {
            t.record(0, Record::new(194, tsc));
        }
        t.torn(0, Record::new(193, 9).ptr(1).int(2).str("a"), 1);
        let left: Vec<_> = survivors(&t)
            .iter()
            .map(|s| (s.tsc, s.args_intact, s.finished))
            .collect();
        assert_eq!(left[0], (2, true, true));
        assert_eq!(left[7], (9, false, false));
    }

    #[test]
    fn strings_are_as_the_slots_hold_them() {
        let mut t = TraceBuilder::new(Era::C).slots(4);
        t.tpoint(Tpoint::new(1, "LONG").str("s", 30));
        t.record(
            0,
            Record::new(1, 1).str("abcdefghijklmnopqrstuvwxyz0123456789"),
        );
        t.record(0, Record::new(1, 2).str("xy"));
        let args: Vec<_> = survivors(&t).into_iter().flat_map(|s| s.args).collect();
        assert_eq!(
            args,
            [Arg::str("abcdefghijklmnopqrstuvwxyz012"), Arg::str("xy")]
        );
    }
}
