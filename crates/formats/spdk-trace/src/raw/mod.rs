//! A complete raw trace file: header, rings, and the iteration over all records in time order.

mod record_reader;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use crate::Error;
use crate::era::{Era, read_header};
use crate::header::{Header, RingPlace, TpointTable};
use crate::order::{self, Order, Walk};
use crate::owners::Owners;
use crate::problems::{Problem, Problems};
use crate::record::{Record, RecordSink};
use crate::ring::Ring;
use crate::slot::{SLOT_SIZE, Slot, Slots};
use crate::source::ReadAt;
use crate::units::{FileOffset, Lcore, TickRate, Ticks};
pub(crate) use record_reader::RecordReader;

/// A raw trace file, copied into memory.
#[derive(Debug)]
pub struct RawTrace {
    era: Era,
    tick_rate: TickRate,
    tpoints: TpointTable,
    owners: Owners,
    rings: Vec<(Ring, Order)>,
    problems: Problems,
}

/// Summary of one lcore's ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSummary {
    /// The lcore.
    pub lcore: Lcore,
    /// Name of the lcore's thread; empty if the file has none.
    pub thread_name: String,
    /// Number of slots in the ring.
    pub slots: u64,
    /// Number of slots written since the ring was created, overwritten ones included.
    pub written: u64,
    /// Number of records in the ring.
    pub records: u64,
    /// Number of records written with the tsc of an earlier moment, and sorted into their place.
    pub late: u64,
    /// Number of records cleared by the user.
    pub cleared: u64,
    /// True if old records were overwritten.
    pub wrapped: bool,
    /// Times of the first and the last record.
    pub span: Option<(Ticks, Ticks)>,
}

impl RawTrace {
    /// Copies the trace from `source`, which may be written to meanwhile.
    pub fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Self, Error> {
        let header = read_header(source)?;
        let mut problems = Problems::default();
        check_header(&header, source.len(), &mut problems);
        problems.append(header.problems);
        let tick_rate = header.tick_rate.unwrap_or(TickRate::ticks_as_micros());
        let facts = order::Facts {
            tpoints: &header.tpoints,
            cleared: header.cleared,
            tick_rate,
        };
        let max_slots = header.tpoints.max_slots_per_record();
        let mut rings = Vec::new();
        let bounds = Bounds::new(source.len(), header.stated_size, &header.owners);
        for place in disjoint(header.rings, bounds, &mut problems) {
            let mut ring = Ring::copy(&place, source, max_slots, &mut problems)?;
            let order = order::check(&mut ring, &facts, &mut problems);
            rings.push((ring, order));
        }
        Ok(Self {
            era: header.era,
            tick_rate,
            tpoints: header.tpoints,
            owners: header.owners,
            rings,
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

    /// Returns the owners; empty in the old eras.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Returns the damage found.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Iterates over the summaries of all rings.
    pub fn rings(&self) -> impl Iterator<Item = RingSummary> {
        self.rings.iter().map(|(ring, order)| RingSummary {
            lcore: ring.lcore,
            thread_name: ring.thread_name.clone(),
            slots: ring.num_slots,
            written: ring.cursor,
            records: order.records,
            late: order.late,
            cleared: order.cleared,
            wrapped: ring.wrapped,
            span: order.span,
        })
    }

    /// Returns the number of records in all rings.
    pub fn record_count(&self) -> u64 {
        self.rings.iter().map(|(_, order)| order.records).sum()
    }

    /// Returns the time from which every lcore has data: the newest of the rings' oldest slots, or
    /// 0 if no ring wrapped.
    ///
    /// SPDK's own printer shows nothing from before (`populate_events`, lib/trace_parser/trace.cpp;
    /// until v26.01 it left that out even if no ring had wrapped).
    pub fn common_start(&self) -> Ticks {
        if !self.rings.iter().any(|(ring, _)| ring.wrapped) {
            return Ticks(0);
        }
        let starts = self
            .rings
            .iter()
            .filter_map(|(ring, _)| ring.oldest().map(Slot::tsc));
        starts.max().unwrap_or_default()
    }

    /// Calls `each` with every record in time order, until it breaks.
    ///
    /// The rings are merged during the walk; nothing is allocated for a record.
    pub fn for_each(&self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) {
        self.walk(&mut each);
    }

    fn walk(&self, each: &mut RecordSink<'_>) {
        let rings: Vec<_> = self
            .rings
            .iter()
            .map(|(ring, order)| (ring, order))
            .collect();
        let mut reader = RecordReader::new();
        let context = Context {
            era: self.era,
            tpoints: &self.tpoints,
            owners: &self.owners,
        };
        let _ = merge(&rings, &context, &mut reader, each);
    }
}

/// Slots of one lcore, in which a record is followed by its continuations.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub(crate) lcore: Lcore,
    pub(crate) thread_name: &'a str,
    pub(crate) slots: Slots<'a>,
    /// Value for [`Record::lost_since`].
    pub(crate) lost_since: Option<Ticks>,
}

/// The tables that a record's fields refer to.
pub(crate) struct Context<'a> {
    pub(crate) era: Era,
    pub(crate) tpoints: &'a TpointTable,
    pub(crate) owners: &'a Owners,
}

/// Walks through all rings at once by (tsc, lcore), the order of SPDK's parser.
fn merge(
    rings: &[(&Ring, &Order)],
    context: &Context<'_>,
    reader: &mut RecordReader,
    each: &mut RecordSink<'_>,
) -> ControlFlow<()> {
    let continuation = context.tpoints.continuation_id();
    let mut walks = vec![Walk::default(); rings.len()];
    let mut heads = BinaryHeap::with_capacity(rings.len());
    for (i, (ring, order)) in rings.iter().enumerate() {
        if let Some(index) = walks[i].next(ring.slots(), order, continuation) {
            heads.push(Reverse((
                ring.slots().at(index).tsc(),
                ring.lcore,
                i,
                index,
            )));
        }
    }
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((_, _, i, index)) = *head;
        let (ring, order) = rings[i];
        let (thread_name, slots, lost_since) = (
            ring.thread_name.as_str(),
            ring.slots(),
            order.lost_since(index),
        );
        let lane = Lane {
            lcore: ring.lcore,
            thread_name,
            slots,
            lost_since,
        };
        if let Some(record) = reader.record(lane, index, context) {
            each(&record)?;
        }
        match walks[i].next(ring.slots(), order, continuation) {
            Some(next) => *head = Reverse((ring.slots().at(next).tsc(), ring.lcore, i, next)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
    }
    ControlFlow::Continue(())
}

/// Reports damage of a header as a whole.
pub(crate) fn check_header(header: &Header, actual: u64, problems: &mut Problems) {
    let stated = header.stated_size;
    if stated != actual {
        problems.add(Problem::WrongSize { stated, actual }, None, FileOffset(0));
    }
    if header.tick_rate.is_none() {
        problems.add(Problem::NoTickRate, None, FileOffset(0));
    }
}

/// Limits of a ring that claims more slots than it has.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// End of the file.
    file: u64,
    /// End of the file, if it matches the header. The last ring of a truncated file continued past
    /// its end.
    whole_file: Option<u64>,
    /// Offset of the owners, which lie after the rings in some eras.
    owners: Option<u64>,
}

impl Bounds {
    pub(crate) fn new(file: u64, stated: u64, owners: &Owners) -> Self {
        let whole_file = (stated == file).then_some(file);
        Self {
            file,
            whole_file,
            owners: owners.begin().map(|at| at.0),
        }
    }
}

/// Returns the rings by lcore, without those that overlap another, so that no false header makes us
/// copy bytes twice.
pub(crate) fn disjoint(
    mut rings: Vec<RingPlace>,
    bounds: Bounds,
    problems: &mut Problems,
) -> Vec<RingPlace> {
    rings.sort_by_key(|ring| (ring.history, ring.lcore));
    let mut kept: Vec<RingPlace> = Vec::with_capacity(rings.len());
    for ring in rings {
        if kept.last().is_some_and(|last| ring.history < last.slots) {
            problems.add(Problem::HistoryOverlaps, Some(ring.lcore), ring.history);
            continue;
        }
        // The previous ring can't reach into this one.
        if let Some(last) = kept.last_mut() {
            clamp(last, ring.history.0, problems);
        }
        kept.push(ring);
    }
    if let Some(last) = kept.last_mut() {
        let behind = [bounds.whole_file, bounds.owners]
            .into_iter()
            .flatten()
            .filter(|&end| end >= last.slots.0);
        if let Some(end) = behind.min() {
            clamp(last, end, problems);
        }
    }
    kept.retain(|ring| {
        if ring.slots.0 > bounds.file {
            let end = FileOffset(bounds.file);
            problems.add_many(Problem::SlotsMissing, Some(ring.lcore), end, ring.num_slots);
        }
        ring.slots.0 <= bounds.file && ring.num_slots > 0
    });
    kept.sort_by_key(|ring| ring.lcore);
    kept
}

fn clamp(ring: &mut RingPlace, end: u64, problems: &mut Problems) {
    let room = end.saturating_sub(ring.slots.0) / SLOT_SIZE as u64;
    if ring.num_slots > room {
        let end = FileOffset(ring.slots.0 + room * SLOT_SIZE as u64);
        problems.add_many(
            Problem::SlotsMissing,
            Some(ring.lcore),
            end,
            ring.num_slots - room,
        );
        ring.num_slots = room;
    }
}
