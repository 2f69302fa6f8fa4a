//! A trace that goes on: what is new since the last look, in the order of time.

use std::ops::ControlFlow;

use crate::Error;
use crate::era::{Era, read_header};
use crate::header::{RingPlace, TpointTable};
use crate::order::{self, Facts, Order};
use crate::owners::Owners;
use crate::problems::Problems;
use crate::raw::{Bounds, Context, RecordReader, disjoint, merge, tell_header};
use crate::record::Record;
use crate::ring::Ring;
use crate::source::ReadAt;
use crate::units::{Lcore, TickRate, Ticks};

/// Follows a live trace file.
///
/// The rings are read one after the other, so a record of the first may be older than one of the last and yet come
/// only with the next look. Hence each look gives what is not newer than the newest record of the look before: by then
/// every record of that time was written.
#[derive(Debug)]
pub struct Follower {
    era: Era,
    tick_rate: TickRate,
    cleared: Ticks,
    tpoints: TpointTable,
    owners: Owners,
    rings: Vec<Followed>,
    reader: RecordReader,
    /// The newest record seen so far.
    horizon: Ticks,
    problems: Problems,
}

#[derive(Debug)]
struct Followed {
    place: RingPlace,
    /// The cursor's value at the first slot that was not given yet; `None` before the first look.
    next: Option<u64>,
}

impl Follower {
    /// Reads the header; the first [`Self::poll`] gives what the rings hold already.
    pub fn new<S: ReadAt + ?Sized>(source: &S) -> Result<Self, Error> {
        let header = read_header(source)?;
        let mut problems = Problems::default();
        tell_header(&header, source.len(), &mut problems);
        problems.append(header.problems);
        let bounds = Bounds::new(source.len(), header.stated_size, &header.owners);
        let rings = disjoint(header.rings, bounds, &mut problems);
        Ok(Self {
            era: header.era,
            tick_rate: header.tick_rate.unwrap_or(TickRate::ticks_as_micros()),
            cleared: header.cleared,
            tpoints: header.tpoints,
            owners: header.owners,
            rings: rings.into_iter().map(|place| Followed { place, next: None }).collect(),
            reader: RecordReader::new(),
            horizon: Ticks(0),
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

    /// The owners as of the last look.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The slots of each lcore's ring.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.rings.iter().map(|ring| (ring.place.lcore, ring.place.num_slots))
    }

    /// What could not be read so far.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Gives the records that are new, in the order of time. With `all`, those as well of which an older one may still
    /// come: for the last look.
    pub fn poll<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        all: bool,
        each: impl FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.owners.refresh(source)?;
        let max_slots = self.tpoints.max_slots_per_record();
        let mut rings: Vec<(Ring, Order)> = Vec::with_capacity(self.rings.len());
        let facts = Facts { tpoints: &self.tpoints, cleared: self.cleared, tick_rate: self.tick_rate };
        let mut newest = self.horizon;
        for followed in &mut self.rings {
            let mut ring = Ring::copy_since(&followed.place, source, followed.next, max_slots, &mut self.problems)?;
            newest = newest.max(ring.newest());
            if !all {
                ring.cut_at(self.horizon, self.tpoints.continuation_id());
            }
            followed.next = Some(ring.end());
            let order = order::check(&mut ring, &facts, &mut self.problems);
            rings.push((ring, order));
        }
        self.horizon = newest;
        let rings: Vec<_> = rings.iter().map(|(ring, order)| (ring, order)).collect();
        let context = Context { era: self.era, tpoints: &self.tpoints, owners: &self.owners };
        Ok(merge(&rings, &context, &mut self.reader, each))
    }
}
