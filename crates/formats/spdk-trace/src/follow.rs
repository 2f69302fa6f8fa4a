//! Follows a live trace: passes on new records in time order.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use crate::Error;
use crate::era::{Era, read_header};
use crate::header::TpointTable;
use crate::held::HeldSlots;
use crate::order::Facts;
use crate::owners::Owners;
use crate::problems::Problems;
use crate::raw::{Bounds, Context, RecordReader, check_header, disjoint};
use crate::record::{Record, RecordSink};
use crate::slot::SLOT_SIZE;
use crate::source::ReadAt;
use crate::tail::{CopiedSlots, Tail};
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Reader that follows a live trace file.
///
/// Its [`Tail`] copies new slots before they are overwritten, in a separate thread if need be.
/// Copied records are held back here. The rings are read one after the other, so a record of the
/// first ring may be older than one of the last, and yet be copied only by the next poll. So no
/// record is passed on that is newer than the newest record of an earlier poll: at that poll all
/// records up to that time had been written, except late ones.
#[derive(Debug)]
pub struct Follower {
    era: Era,
    tick_rate: TickRate,
    cleared: Ticks,
    tpoints: TpointTable,
    owners: Owners,
    rings: Vec<HeldSlots>,
    reader: RecordReader,
    tail: Tail,
    /// For each poll its time, and the time of the newest record up to then.
    taken: VecDeque<(Duration, Ticks)>,
    /// Number of calls of [`Self::poll`].
    polls: u64,
    /// Time of the newest record passed on.
    given: Ticks,
    late: u64,
    spare: Vec<Vec<u8>>,
    problems: Problems,
}

/// Slots of a ring that were overwritten before they were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The lcore of the ring.
    pub lcore: Lcore,
    /// Number of slots in the ring.
    pub ring: u64,
    /// Number of lost slots.
    pub slots: u64,
    /// Time of the last record before the first lost slot.
    pub since: Ticks,
}

impl Follower {
    /// Reads the header. The first poll returns everything in the rings.
    pub fn new<S: ReadAt + ?Sized>(source: &S) -> Result<Self, Error> {
        let header = read_header(source)?;
        let mut problems = Problems::default();
        check_header(&header, source.len(), &mut problems);
        problems.append(header.problems);
        let bounds = Bounds::new(source.len(), header.stated_size, &header.owners);
        let rings = disjoint(header.rings, bounds, &mut problems);
        let continuation_id = header.tpoints.continuation_id();
        Ok(Self {
            era: header.era,
            tick_rate: header.tick_rate.unwrap_or(TickRate::ticks_as_micros()),
            cleared: header.cleared,
            tail: Tail::new(rings.iter().cloned(), header.tpoints.max_slots_per_record()),
            tpoints: header.tpoints,
            owners: header.owners,
            rings: rings
                .into_iter()
                .map(|place| HeldSlots::new(place, continuation_id))
                .collect(),
            reader: RecordReader::new(),
            taken: VecDeque::new(),
            polls: 0,
            given: Ticks(0),
            late: 0,
            spare: Vec::new(),
            problems,
        })
    }

    /// Returns the era of the file.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Returns the ticks per second.
    pub fn tick_rate(&self) -> TickRate {
        self.tick_rate
    }

    /// Returns the tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        &self.tpoints
    }

    /// Returns the owners as last read.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Iterates over the lcores and the number of slots in their rings.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.rings
            .iter()
            .map(|ring| (ring.lcore(), ring.num_slots()))
    }

    /// Iterates over the lcores and the names of their threads, which are empty if the file has
    /// none.
    pub fn lcores(&self) -> impl Iterator<Item = (Lcore, &str)> {
        self.rings
            .iter()
            .map(|ring| (ring.lcore(), ring.place().thread_name.as_str()))
    }

    /// Returns the parts of a file of `len` bytes outside the rings' slots, in file order.
    pub fn outside_of_slots(&self, len: u64) -> Vec<Range<u64>> {
        let slots = |ring: &HeldSlots| {
            let (begin, slots) = (ring.place().slots.0, ring.num_slots());
            begin.min(len)
                ..begin
                    .saturating_add(slots.saturating_mul(SLOT_SIZE as u64))
                    .min(len)
        };
        let mut rings: Vec<_> = self.rings.iter().map(slots).collect();
        rings.sort_by_key(|slots| slots.start);
        let starts = std::iter::once(0).chain(rings.iter().map(|slots| slots.end));
        let ends = rings.iter().map(|slots| slots.start).chain([len]);
        starts
            .zip(ends)
            .map(|(start, end)| start..end)
            .filter(|part| !part.is_empty())
            .collect()
    }

    /// Returns the damage found so far.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Iterates over the rings that lost slots before they were copied.
    pub fn losses(&self) -> impl Iterator<Item = Loss> {
        self.rings
            .iter()
            .filter(|ring| ring.lost.slots > 0)
            .map(|ring| Loss {
                lcore: ring.lcore(),
                ring: ring.num_slots(),
                slots: ring.lost.slots,
                since: ring.lost.since.unwrap_or_default(),
            })
    }

    /// Returns the time of the newest record passed on.
    pub fn given(&self) -> Ticks {
        self.given
    }

    /// Returns the number of records passed on after newer ones, because they were written later
    /// than the hold time.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the tail that copies for this follower, before its first poll.
    pub fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Reads the owners again. Their ids may be reused at any time, so call this before each
    /// [`Self::give`].
    pub fn refresh_owners<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<(), Error> {
        self.owners.refresh_used(source).map(drop)
    }

    /// Applies changed bytes of the file, if they belong to owners; others have no effect.
    pub fn change(&mut self, at: FileOffset, bytes: &[u8]) {
        self.owners.change(at, bytes).for_each(drop);
    }

    /// Takes the slots copied by one or more polls; the last of these began at `at`, by any clock.
    pub fn take(&mut self, copied: CopiedSlots, at: Duration) {
        let facts = Facts {
            tpoints: &self.tpoints,
            cleared: self.cleared,
            tick_rate: self.tick_rate,
        };
        for (held, copied) in self.rings.iter_mut().zip(copied.rings) {
            held.take(copied, &facts, &mut self.problems);
        }
        let newest = self
            .rings
            .iter()
            .map(|ring| ring.newest)
            .max()
            .unwrap_or_default();
        self.taken.push_back((at, newest));
    }

    /// Passes on all records up to the newest one of the polls at least `hold` before the last
    /// poll. The last poll itself never counts.
    pub fn give(
        &mut self,
        hold: Duration,
        mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(&(last, _)) = self.taken.back() else {
            return ControlFlow::Continue(());
        };
        let others = self.taken.iter().take(self.taken.len() - 1);
        let old = others
            .take_while(|(at, _)| at.saturating_add(hold) <= last)
            .count();
        let Some((_, horizon)) = self.taken.drain(..old).next_back() else {
            return ControlFlow::Continue(());
        };
        self.give_until(horizon, &mut each)
    }

    /// Passes on all records taken, even if older ones may still arrive: for the end.
    pub fn give_all(
        &mut self,
        mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.give_until(Ticks(u64::MAX), &mut each)
    }

    /// Returns the buffers of records already passed on, for reuse ([`CopiedSlots::prepare`]).
    pub fn spare(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.spare.drain(..)
    }

    /// Polls the rings, and passes on new records in time order. With `all`, includes those for
    /// which older ones may still arrive: for the last poll.
    pub fn poll<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        all: bool,
        each: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.refresh_owners(source)?;
        let mut copied = CopiedSlots::default();
        self.tail.poll(source, &mut copied)?;
        self.polls += 1;
        self.take(copied, Duration::from_nanos(self.polls));
        let flow = if all {
            self.give_all(each)
        } else {
            self.give(Duration::ZERO, each)
        };
        self.spare.clear();
        Ok(flow)
    }

    /// Merges all rings by (tsc, lcore), up to the horizon.
    fn give_until(&mut self, horizon: Ticks, each: &mut RecordSink<'_>) -> ControlFlow<()> {
        let context = Context {
            era: self.era,
            tpoints: &self.tpoints,
            owners: &self.owners,
        };
        let mut heads = BinaryHeap::with_capacity(self.rings.len());
        for (i, ring) in self.rings.iter_mut().enumerate() {
            heads.extend(
                ring.head()
                    .filter(|&tsc| tsc <= horizon)
                    .map(|tsc| Reverse((tsc, ring.lcore(), i))),
            );
        }
        let mut flow = ControlFlow::Continue(());
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((tsc, lcore, i)) = *head;
            self.late += u64::from(tsc < self.given);
            self.given = self.given.max(tsc);
            if let Some((lane, index)) = self.rings[i].pop()
                && let Some(record) = self.reader.record(lane, index, &context)
            {
                flow = each(&record);
            }
            if flow.is_break() {
                break;
            }
            match self.rings[i].head().filter(|&tsc| tsc <= horizon) {
                Some(next) => *head = Reverse((next, lcore, i)),
                None => drop(PeekMut::pop(head)),
            }
        }
        for ring in &mut self.rings {
            ring.drop_given(|bytes| self.spare.push(bytes));
        }
        flow
    }
}
