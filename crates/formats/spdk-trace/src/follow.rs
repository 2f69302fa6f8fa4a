//! Follows a live trace: gives the new records in time order.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use crate::Error;
use crate::era::{Era, read_header};
use crate::header::TpointTable;
use crate::held::Held;
use crate::order::Facts;
use crate::owners::Owners;
use crate::problems::Problems;
use crate::raw::{Bounds, Context, RecordReader, check_header, disjoint};
use crate::record::{Each, Record};
use crate::slot::SLOT_SIZE;
use crate::source::ReadAt;
use crate::tail::{Copied, Tail};
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Follows a live trace file.
///
/// Its [`Tail`] copies new slots, often enough that none is overwritten before, and in a separate thread if need be. Copied
/// records are held back here: the rings are read one after the other, so a record of the first ring may be older than one
/// of the last, and yet be copied only by the next poll. So no record is given that is newer than the newest record of an
/// earlier poll: at that poll, every record of that time was already written, except those that are written late.
#[derive(Debug)]
pub struct Follower {
    era: Era,
    tick_rate: TickRate,
    cleared: Ticks,
    tpoints: TpointTable,
    owners: Owners,
    rings: Vec<Held>,
    reader: RecordReader,
    tail: Tail,
    /// For each poll its time, and the newest record until then.
    taken: VecDeque<(Duration, Ticks)>,
    /// Number of calls of [`Self::poll`].
    polls: u64,
    /// The time of the last record given.
    given: Ticks,
    late: u64,
    spare: Vec<Vec<u8>>,
    problems: Problems,
}

/// Slots of a ring that were overwritten before they were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Whose ring.
    pub lcore: Lcore,
    /// Slots of the ring.
    pub ring: u64,
    /// Slots that were lost.
    pub slots: u64,
    /// The time of the last record before the first of them.
    pub since: Ticks,
}

impl Follower {
    /// Reads the header; the first poll gives everything that is in the rings.
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
            rings: rings.into_iter().map(|place| Held::new(place, continuation_id)).collect(),
            reader: RecordReader::new(),
            taken: VecDeque::new(),
            polls: 0,
            given: Ticks(0),
            late: 0,
            spare: Vec::new(),
            problems,
        })
    }

    /// The era of its layout.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Ticks a second.
    pub fn tick_rate(&self) -> TickRate {
        self.tick_rate
    }

    /// The tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        &self.tpoints
    }

    /// The owners as they were read last.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The slots of each lcore's ring.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.rings.iter().map(|ring| (ring.lcore(), ring.num_slots()))
    }

    /// Each ring's lcore, and the name of the thread that writes it: empty if the file has none.
    pub fn lcores(&self) -> impl Iterator<Item = (Lcore, &str)> {
        self.rings.iter().map(|ring| (ring.lcore(), ring.place().thread_name.as_str()))
    }

    /// What of a file of that many bytes lies outside the rings' slots, in the order of the file.
    pub fn outside_of_slots(&self, len: u64) -> Vec<Range<u64>> {
        let slots = |ring: &Held| {
            let (begin, slots) = (ring.place().slots.0, ring.num_slots());
            begin.min(len)..begin.saturating_add(slots.saturating_mul(SLOT_SIZE as u64)).min(len)
        };
        let mut rings: Vec<_> = self.rings.iter().map(slots).collect();
        rings.sort_by_key(|slots| slots.start);
        let starts = std::iter::once(0).chain(rings.iter().map(|slots| slots.end));
        let ends = rings.iter().map(|slots| slots.start).chain([len]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|part| !part.is_empty()).collect()
    }

    /// What could not be read so far.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// What was overwritten before it was copied, ring by ring.
    pub fn losses(&self) -> impl Iterator<Item = Loss> {
        self.rings.iter().filter(|ring| ring.lost.slots > 0).map(|ring| Loss {
            lcore: ring.lcore(),
            ring: ring.num_slots(),
            slots: ring.lost.slots,
            since: ring.lost.since.unwrap_or_default(),
        })
    }

    /// The time of the newest record that was given.
    pub fn given(&self) -> Ticks {
        self.given
    }

    /// How many records were given behind newer ones, since they were written later than they were held back for.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What copies for this follower; nothing has been copied yet.
    pub fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Reads the owners again. Their ids may be reused at any time, so call this before each [`Self::give`].
    pub fn refresh_owners<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<(), Error> {
        self.owners.refresh_used(source).map(drop)
    }

    /// Takes over bytes of the file that have changed since it was read: those of owners. Others do not matter.
    pub fn change(&mut self, at: FileOffset, bytes: &[u8]) {
        self.owners.change(at, bytes).for_each(drop);
    }

    /// Takes over what one or several polls copied; the last of them began at `at`, by any clock.
    pub fn take(&mut self, copied: Copied, at: Duration) {
        let facts = Facts { tpoints: &self.tpoints, cleared: self.cleared, tick_rate: self.tick_rate };
        for (held, copied) in self.rings.iter_mut().zip(copied.rings) {
            held.take(copied, &facts, &mut self.problems);
        }
        let newest = self.rings.iter().map(|ring| ring.newest).max().unwrap_or_default();
        self.taken.push_back((at, newest));
    }

    /// Gives the records that are not newer than the newest record of the polls that were `hold` or more before the last
    /// poll. The last poll itself never counts.
    pub fn give(&mut self, hold: Duration, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(&(last, _)) = self.taken.back() else { return ControlFlow::Continue(()) };
        let others = self.taken.iter().take(self.taken.len() - 1);
        let old = others.take_while(|(at, _)| at.saturating_add(hold) <= last).count();
        let Some((_, horizon)) = self.taken.drain(..old).next_back() else { return ControlFlow::Continue(()) };
        self.give_until(horizon, &mut each)
    }

    /// Gives all records that were taken, even if older ones may still arrive: for the end.
    pub fn give_all(&mut self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.give_until(Ticks(u64::MAX), &mut each)
    }

    /// The memory of records that were given, for reuse ([`Copied::prepare`]).
    pub fn spare(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.spare.drain(..)
    }

    /// Polls the rings and gives the new records in time order. With `all`, also those for which older ones may still
    /// arrive: for the last poll.
    pub fn poll<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        all: bool,
        each: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.refresh_owners(source)?;
        let mut copied = Copied::default();
        self.tail.poll(source, &mut copied)?;
        self.polls += 1;
        self.take(copied, Duration::from_nanos(self.polls));
        let flow = if all { self.give_all(each) } else { self.give(Duration::ZERO, each) };
        self.spare.clear();
        Ok(flow)
    }

    /// Merges all rings by (tsc, lcore).
    fn give_until(&mut self, horizon: Ticks, each: &mut Each<'_>) -> ControlFlow<()> {
        let context = Context { era: self.era, tpoints: &self.tpoints, owners: &self.owners };
        let mut heads = BinaryHeap::with_capacity(self.rings.len());
        for (i, ring) in self.rings.iter_mut().enumerate() {
            heads.extend(ring.head().filter(|&tsc| tsc <= horizon).map(|tsc| Reverse((tsc, ring.lcore(), i))));
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
