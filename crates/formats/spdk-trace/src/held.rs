//! Copied records of one lcore's ring that are held back, in time order.
//!
//! Nearly all records are written in tsc order. Late ones, with the time of an earlier moment, are
//! in a separate heap, and the walk over the ring skips them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::header::RingPlace;
use crate::order::{Checker, Facts, Verdict, plausible_times};
use crate::problems::{Problem, Problems};
use crate::raw::Lane;
use crate::slot::{self, SLOT_SIZE, Slots};
use crate::tail::{CopiedRing, Run};
use crate::units::{FileOffset, Lcore, Ticks};

/// Slots of one ring that are held back.
#[derive(Debug)]
pub(crate) struct HeldSlots {
    place: RingPlace,
    continuation_id: u16,
    chunks: VecDeque<Chunk>,
    /// Number of chunks dropped so far, which is the number of the first one kept.
    dropped: u64,
    /// Next slot of the walk.
    next: Position,
    /// Largest tsc that the walk has passed.
    walked: Ticks,
    late: BinaryHeap<Reverse<(Ticks, Position)>>,
    /// Largest tsc received.
    pub(crate) newest: Ticks,
    /// Tsc of the last record received, whose continuations may follow.
    chain: Option<Ticks>,
    is_cut: bool,
    pub(crate) lost: LostSlots,
    /// Losses that the walk has not reached: the first slot after each, and the time of the newest
    /// record before it.
    losses: VecDeque<(Position, Ticks)>,
    /// Time of the newest record before the last loss that the walk has passed.
    lost_since: Option<Ticks>,
}

/// Slots overwritten before they were copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LostSlots {
    /// Number of lost slots.
    pub(crate) slots: u64,
    /// Time of the last record before the first lost slot.
    pub(crate) since: Option<Ticks>,
}

/// Slots received at once.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// Number of late records in it that have not been popped.
    late: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// Number of the chunk, counted from the first one ever received.
    chunk: u64,
    index: usize,
}

impl HeldSlots {
    pub(crate) fn new(place: RingPlace, continuation_id: u16) -> Self {
        Self {
            place,
            continuation_id,
            chunks: VecDeque::new(),
            dropped: 0,
            next: Position::default(),
            walked: Ticks(0),
            late: BinaryHeap::new(),
            newest: Ticks(0),
            chain: None,
            is_cut: false,
            lost: LostSlots::default(),
            losses: VecDeque::new(),
            lost_since: None,
        }
    }

    pub(crate) fn place(&self) -> &RingPlace {
        &self.place
    }

    pub(crate) fn lcore(&self) -> Lcore {
        self.place.lcore
    }

    /// Returns the number of slots in the ring.
    pub(crate) fn num_slots(&self) -> u64 {
        self.place.num_slots
    }

    /// Counts slots that were lost before the one at `before`.
    fn note_loss(&mut self, slots: u64, before: Position) {
        self.lost.since.get_or_insert(self.newest);
        self.lost.slots = self.lost.slots.saturating_add(slots);
        self.losses.push_back((before, self.newest));
    }

    /// Checks copied slots, and keeps the valid ones.
    pub(crate) fn take(&mut self, copied: CopiedRing, facts: &Facts<'_>, problems: &mut Problems) {
        let CopiedRing {
            mut bytes,
            runs,
            cut,
            ..
        } = copied;
        if bytes.capacity() == 0 && runs.is_empty() && cut.is_none() {
            return;
        }
        if let Some((at, slots)) = cut.filter(|_| !self.is_cut) {
            self.is_cut = true;
            problems.add_many(Problem::SlotsMissing, Some(self.lcore()), at, slots);
        }
        let mut checker = Checker {
            plausible: self.plausible(Slots::new(&bytes), facts),
            chain: self.chain,
        };
        let number = self.dropped + self.chunks.len() as u64;
        let mut late = 0;
        let all = bytes.len() / SLOT_SIZE;
        for (i, run) in runs.iter().enumerate() {
            if run.lost > 0 {
                self.note_loss(
                    run.lost,
                    Position {
                        chunk: number,
                        index: run.index,
                    },
                );
                checker.chain = None;
            }
            let end = runs.get(i + 1).map_or(all, |next| next.index);
            for index in run.index..end {
                let verdict = checker.slot(Slots::new(&bytes), index, facts);
                let problem = match verdict {
                    Verdict::Record(problem) => {
                        let tsc = Slots::new(&bytes).at(index).tsc();
                        late += usize::from(self.note(
                            tsc,
                            Position {
                                chunk: number,
                                index,
                            },
                        ));
                        problem
                    }
                    Verdict::Leave(problem) => Some(problem),
                    Verdict::Nothing | Verdict::Forget | Verdict::Cleared => None,
                };
                if let Some(problem) = problem {
                    problems.add(problem, Some(self.lcore()), self.offset(*run, index));
                }
                if !matches!(verdict, Verdict::Nothing | Verdict::Record(_)) {
                    bytes[index * SLOT_SIZE..][..8].fill(0);
                }
            }
        }
        self.chain = checker.chain;
        // Empty chunks are kept too, so that the lender of the memory gets it back.
        self.chunks.push_back(Chunk { bytes, late });
    }

    /// Notes a record; returns whether it is late.
    fn note(&mut self, tsc: Ticks, at: Position) -> bool {
        let is_late = tsc < self.newest;
        if is_late {
            self.late.push(Reverse((tsc, at)));
        }
        self.newest = tsc.max(self.newest);
        is_late
    }

    fn offset(&self, run: Run, index: usize) -> FileOffset {
        let seq = run.seq.saturating_add((index - run.index) as u64);
        slot::place(self.place.slots, seq % self.place.num_slots.max(1))
    }

    /// Returns the plausible times, as for a whole ring, except that all of a few records may be
    /// late.
    fn plausible(&self, slots: Slots<'_>, facts: &Facts<'_>) -> std::ops::RangeInclusive<Ticks> {
        let delay = facts.longest_delay();
        let (earliest, latest) = plausible_times(slots, delay).into_inner();
        let before = Ticks(self.newest.0.saturating_sub(delay.0));
        let earliest = if self.newest > Ticks(0) {
            earliest.min(before)
        } else {
            earliest
        };
        earliest..=Ticks(latest.max(self.newest).0.saturating_add(delay.0))
    }

    /// Returns the time of the oldest record held back.
    #[inline]
    pub(crate) fn head(&mut self) -> Option<Ticks> {
        let walk = self.walk();
        let late = self.late.peek().map(|Reverse((tsc, _))| *tsc);
        match (walk, late) {
            (Some(walk), Some(late)) => Some(walk.min(late)),
            (walk, late) => walk.or(late),
        }
    }

    /// Moves the walk to its next record, and returns that record's time.
    #[inline]
    fn walk(&mut self) -> Option<Ticks> {
        loop {
            let chunk = self.chunks.get((self.next.chunk - self.dropped) as usize)?;
            let slots = Slots::new(&chunk.bytes);
            while self.next.index < slots.len() {
                let slot = slots.at(self.next.index);
                let tsc = slot.tsc();
                // Late records are in the heap.
                if tsc != Ticks(0) && tsc >= self.walked && slot.tpoint_id() != self.continuation_id
                {
                    return Some(tsc);
                }
                self.next.index += 1;
            }
            self.next = Position {
                chunk: self.next.chunk + 1,
                index: 0,
            };
        }
    }

    /// Takes the record whose time [`Self::head`] returned.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Lane<'_>, usize)> {
        let walk = self.walk();
        let is_late = self
            .late
            .peek()
            .is_some_and(|Reverse((tsc, _))| walk.is_none_or(|walk| *tsc < walk));
        let place = if is_late {
            let Reverse((_, place)) = self.late.pop()?;
            place
        } else {
            self.walked = walk?;
            let here = self.next;
            self.next.index += 1;
            here
        };
        while let Some((_, since)) = self.losses.pop_front_if(|(behind, _)| *behind <= place) {
            self.lost_since = Some(since);
        }
        let Position { chunk, index } = place;
        let chunk = self.chunks.get_mut((chunk - self.dropped) as usize)?;
        chunk.late -= usize::from(is_late);
        let slots = Slots::new(&chunk.bytes);
        let (thread_name, lost_since) = (&self.place.thread_name, self.lost_since);
        Some((
            Lane {
                lcore: self.place.lcore,
                thread_name,
                slots,
                lost_since,
            },
            index,
        ))
    }

    /// Returns the buffers of records already passed on.
    pub(crate) fn drop_given(&mut self, mut spare: impl FnMut(Vec<u8>)) {
        while self.next.chunk > self.dropped
            && self.chunks.front().is_some_and(|chunk| chunk.late == 0)
        {
            let Some(chunk) = self.chunks.pop_front() else {
                return;
            };
            self.dropped += 1;
            spare(chunk.bytes);
        }
    }
}
