//! Splits copied slots into runs for a stream, and joins runs again.

use crate::slot::{SLOT_SIZE, Slots};
use crate::tail::CopiedSlots;
use crate::units::Ticks;

/// Slots of one ring that were written consecutively, as copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedRun<'a> {
    /// Index of the ring among those of the [`crate::Follower`].
    pub ring: usize,
    /// Sequence number of the first slot's write, counted from 0 since the ring was created.
    pub seq: u64,
    /// Number of slots lost before the first one: overwritten before they could be copied.
    pub lost: u64,
    /// The slots, 32 bytes each.
    pub slots: &'a [u8],
}

impl CopiedSlots {
    /// Iterates over the runs, ring by ring, in the order in which they were written.
    pub fn runs(&self) -> impl Iterator<Item = CopiedRun<'_>> {
        self.rings.iter().enumerate().flat_map(|(ring, copied)| {
            let ends = copied
                .runs
                .iter()
                .skip(1)
                .map(|run| run.index * SLOT_SIZE)
                .chain([copied.bytes.len()]);
            copied.runs.iter().zip(ends).map(move |(run, end)| {
                let slots = copied
                    .bytes
                    .get(run.index * SLOT_SIZE..end)
                    .unwrap_or_default();
                CopiedRun {
                    ring,
                    seq: run.seq,
                    lost: run.lost,
                    slots,
                }
            })
        })
    }

    /// Appends a run to those of its ring. Bytes after its last complete slot are dropped.
    pub fn push(&mut self, run: &CopiedRun<'_>) {
        if self.rings.len() <= run.ring {
            self.rings.resize_with(run.ring + 1, Default::default);
        }
        let slots = run.slots.len() / SLOT_SIZE;
        let ring = &mut self.rings[run.ring];
        ring.bytes
            .extend_from_slice(&run.slots[..slots * SLOT_SIZE]);
        ring.ran(run.seq, slots as u64, run.lost);
    }

    /// Returns the buffers of its slots, for reuse ([`CopiedSlots::prepare`]).
    pub fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        self.rings.into_iter().map(|ring| ring.bytes)
    }
}

impl CopiedRun<'_> {
    /// Returns the number of records that begin in the run, and the earliest of their times. Slots
    /// with `continuation_id` ([`crate::TpointTable::continuation_id`]) and unwritten ones begin
    /// none.
    pub fn records(&self, continuation_id: u16) -> (u64, Option<Ticks>) {
        let slots = Slots::new(self.slots);
        let all = (0..slots.len()).map(|index| slots.at(index));
        let begin =
            all.filter(|slot| slot.tsc() != Ticks(0) && slot.tpoint_id() != continuation_id);
        begin.fold((0, None), |(count, first), slot| {
            (
                count + 1,
                Some(first.map_or(slot.tsc(), |first: Ticks| first.min(slot.tsc()))),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(copied: &CopiedSlots) -> Vec<(usize, u64, u64, Vec<u8>)> {
        copied
            .runs()
            .map(|run| (run.ring, run.seq, run.lost, run.slots.to_vec()))
            .collect()
    }

    #[test]
    fn slots_without_a_gap_are_one_run() {
        let mut copied = CopiedSlots::default();
        let [first, second] = [[1; 64], [2; 64]];
        copied.push(&CopiedRun {
            ring: 1,
            seq: 7,
            lost: 0,
            slots: &first,
        });
        copied.push(&CopiedRun {
            ring: 1,
            seq: 9,
            lost: 0,
            slots: &second,
        });
        copied.push(&CopiedRun {
            ring: 1,
            seq: 20,
            lost: 9,
            slots: &[],
        });
        assert_eq!(
            whole(&copied),
            [(1, 7, 0, [first, second].concat()), (1, 20, 9, Vec::new())]
        );
        assert_eq!((copied.bytes(), copied.is_empty()), (128, false));
        assert_eq!(copied.runs().map(|run| run.records(9).0).sum::<u64>(), 4);
    }

    proptest! {
        /// Splitting and joining gives the same slots, in any order of the runs.
        #[test]
        fn runs_put_together_are_what_was_copied(
            runs in prop::collection::vec((0..3_usize, any::<u64>(), 0..3_u64, 0..5_usize), 0..20)
        ) {
            let mut copied = CopiedSlots::default();
            for (n, (ring, seq, lost, slots)) in runs.iter().enumerate() {
                copied.push(&CopiedRun { ring: *ring, seq: *seq, lost: *lost, slots: &vec![n as u8; slots * SLOT_SIZE] });
            }
            let mut again = CopiedSlots::default();
            copied.runs().for_each(|run| again.push(&run));
            prop_assert_eq!(whole(&again), whole(&copied));
            prop_assert_eq!(again.bytes(), copied.bytes());
        }
    }
}
