//! Order of one ring's records: finds the slots that are records, and sorts them.
//!
//! A ring is almost sorted by tsc, but a record may have the tsc of an earlier moment
//! (`spdk_trace_record_tsc`; the bdev layer does that for `BDEV_IO_START`). So one pass compares
//! each slot with its neighbours and finds the few runs that need sorting; everything else is read
//! in place.

use std::ops::RangeInclusive;

use crate::header::TpointTable;
use crate::problems::{Problem, Problems};
use crate::ring::Ring;
use crate::slot::Slots;
use crate::units::{TickRate, Ticks};

/// Number of slots at either end of a ring from which the plausible times are taken. More than one,
/// since one may be torn.
const ENDS: usize = 16;
/// Maximum time between a record's tsc and its being written, in seconds. No request takes longer,
/// since hosts give up after half of that.
const MAX_DELAY_SECONDS: u64 = 60;

/// A run of slots not in tsc order.
#[derive(Debug)]
struct Window {
    start: usize,
    end: usize,
    /// Range of its sorted records in `Order::sorted`.
    sorted: std::ops::Range<usize>,
}

/// The order of a ring's records by tsc.
#[derive(Debug, Default)]
pub(crate) struct Order {
    windows: Vec<Window>,
    sorted: Vec<u32>,
    /// Slots before which others were overwritten while the ring was read, with the time of the
    /// newest record before those.
    holes: Vec<(usize, Ticks)>,
    /// Number of readable records.
    pub(crate) records: u64,
    /// Number of records written with the tsc of an earlier moment.
    pub(crate) late: u64,
    /// Number of records cleared by the user.
    pub(crate) cleared: u64,
    /// Times of the first and the last record.
    pub(crate) span: Option<(Ticks, Ticks)>,
}

/// Header data used to check every ring.
pub(crate) struct Facts<'a> {
    pub(crate) tpoints: &'a TpointTable,
    /// Records before this time were cleared by the user.
    pub(crate) cleared: Ticks,
    pub(crate) tick_rate: TickRate,
}

/// Checks every slot, leaves out those that can't be records, and sorts the rest.
pub(crate) fn check(ring: &mut Ring, header: &Facts<'_>, problems: &mut Problems) -> Order {
    let mut checker = Checker {
        plausible: plausible_times(ring.slots(), header.longest_delay()),
        chain: None,
    };
    let mut order = Order::default();
    let mut newest = Ticks(0);
    let mut is_behind_hole = false;
    for index in 0..ring.slots().len() {
        is_behind_hole |= ring.is_overwritten(index);
        match checker.slot(ring.slots(), index, header) {
            Verdict::Nothing => {}
            Verdict::Record(problem) => {
                if std::mem::take(&mut is_behind_hole) && newest > Ticks(0) {
                    order.holes.push((index, newest));
                }
                order.note(
                    ring.slots(),
                    index,
                    &mut newest,
                    header.tpoints.continuation_id(),
                );
                if let Some(problem) = problem {
                    problems.add(problem, Some(ring.lcore), ring.offset(index));
                }
            }
            Verdict::Forget => ring.erase(index),
            Verdict::Cleared => {
                order.cleared += 1;
                ring.erase(index);
            }
            Verdict::Leave(problem) => {
                problems.add(problem, Some(ring.lcore), ring.offset(index));
                ring.erase(index);
            }
        }
    }
    order.sort_windows(ring.slots(), header.tpoints.continuation_id());
    order
}

impl Facts<'_> {
    /// Returns the maximum time between a record's tsc and its being written.
    pub(crate) fn longest_delay(&self) -> Ticks {
        Ticks(self.tick_rate.get().saturating_mul(MAX_DELAY_SECONDS))
    }
}

/// Returns the range of times at the ring's ends, extended into the past: a record is written later
/// than its tsc, so one at the beginning may be older than all others left.
pub(crate) fn plausible_times(slots: Slots<'_>, longest_delay: Ticks) -> RangeInclusive<Ticks> {
    let written = |i: &usize| slots.at(*i).tsc() != Ticks(0);
    let oldest = (0..slots.len())
        .filter(written)
        .take(ENDS)
        .map(|i| slots.at(i).tsc())
        .min();
    let newest = (0..slots.len())
        .rev()
        .filter(written)
        .take(ENDS)
        .map(|i| slots.at(i).tsc())
        .max();
    let earliest = oldest.unwrap_or_default().0.saturating_sub(longest_delay.0);
    Ticks(earliest)..=newest.unwrap_or(Ticks(u64::MAX))
}

/// Result of checking a slot.
#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    /// Not the beginning of a record: a continuation, or an empty slot.
    Nothing,
    /// A record; incomplete if there is a problem.
    Record(Option<Problem>),
    /// A slot to skip without a report.
    Forget,
    /// A record cleared by the user.
    Cleared,
    /// A slot to skip, and the problem to report.
    Leave(Problem),
}

/// Checker of consecutive slots.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(crate) plausible: RangeInclusive<Ticks>,
    /// Tsc of the record whose continuations may follow.
    pub(crate) chain: Option<Ticks>,
}

impl Checker {
    #[inline]
    pub(crate) fn slot(&mut self, slots: Slots<'_>, index: usize, header: &Facts<'_>) -> Verdict {
        let slot = slots.at(index);
        let (tsc, id) = (slot.tsc(), slot.tpoint_id());
        if tsc == Ticks(0) {
            // The slot was overwritten, which is already counted.
            self.chain = None;
            return Verdict::Nothing;
        }
        let continuation_id = header.tpoints.continuation_id();
        if id == continuation_id {
            return match self.chain {
                Some(record) if record == tsc => Verdict::Nothing,
                Some(_) => Verdict::Leave(Problem::OrphanContinuation),
                // A wrapped ring may begin in the middle of a record, and so may the remains of a
                // half-written one.
                None => Verdict::Forget,
            };
        }
        self.chain = Some(tsc);
        let Some(tpoint) = header.tpoints.get(id) else {
            return Verdict::Leave(Problem::UnknownTpoint);
        };
        if !self.plausible.contains(&tsc) {
            return Verdict::Leave(Problem::ImplausibleTime);
        }
        if tsc < header.cleared {
            return Verdict::Cleared;
        }
        let continuations = tpoint.continuations();
        let whole = continuations == 0
            || continued(slots, index, continuation_id)
                .take(continuations)
                .count()
                == continuations;
        Verdict::Record((!whole).then_some(Problem::ArgumentsLost))
    }
}

/// Returns the indices of the continuations of the record at `index`.
#[inline]
pub(crate) fn continued(
    slots: Slots<'_>,
    index: usize,
    continuation_id: u16,
) -> impl Iterator<Item = usize> {
    let tsc = slots.at(index).tsc();
    (index + 1..).take_while(move |&i| {
        slots
            .get(i)
            .is_some_and(|slot| slot.tpoint_id() == continuation_id && slot.tsc() == tsc)
    })
}

impl Order {
    /// Returns [`crate::Record::lost_since`] of the record at `index`.
    #[inline]
    pub(crate) fn lost_since(&self, index: usize) -> Option<Ticks> {
        let behind = self.holes.partition_point(|(first, _)| *first <= index);
        self.holes[..behind].last().map(|(_, since)| *since)
    }

    /// Counts a record, and opens a window if it is late.
    fn note(&mut self, slots: Slots<'_>, index: usize, newest: &mut Ticks, continuation_id: u16) {
        let tsc = slots.at(index).tsc();
        self.records += 1;
        let (first, last) = self.span.unwrap_or((tsc, tsc));
        self.span = Some((first.min(tsc), last.max(tsc)));
        if tsc < *newest {
            self.late += 1;
            self.widen(slots, index, continuation_id);
        }
        *newest = tsc.max(*newest);
    }

    /// Opens a window, or widens the last ones, so that the late record at `index` can be sorted.
    fn widen(&mut self, slots: Slots<'_>, index: usize, continuation_id: u16) {
        let tsc = slots.at(index).tsc();
        let mut start = index;
        loop {
            if let Some(last) = self.windows.last()
                && start <= last.end
            {
                start = start.min(last.start);
                self.windows.pop();
                continue;
            }
            let Some(before) = start.checked_sub(1) else {
                break;
            };
            // A continuation proves nothing: it may belong to a late record whose window ends
            // before it.
            if is_record(slots, before, continuation_id) && slots.at(before).tsc() <= tsc {
                break;
            }
            start = before;
        }
        self.windows.push(Window {
            start,
            end: index + 1,
            sorted: 0..0,
        });
    }

    fn sort_windows(&mut self, slots: Slots<'_>, continuation_id: u16) {
        for window in &mut self.windows {
            let first = self.sorted.len();
            let records =
                (window.start..window.end).filter(|&i| is_record(slots, i, continuation_id));
            self.sorted.extend(records.map(|i| i as u32));
            // Stable sort: records with the same tsc keep the order in which they were written.
            self.sorted[first..].sort_by_key(|&i| slots.at(i as usize).tsc());
            window.sorted = first..self.sorted.len();
        }
    }
}

#[inline]
fn is_record(slots: Slots<'_>, index: usize, continuation_id: u16) -> bool {
    let slot = slots.at(index);
    slot.tsc() != Ticks(0) && slot.tpoint_id() != continuation_id
}

/// A walk through a ring's records by tsc.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    next: usize,
    window: usize,
    in_window: usize,
}

impl Walk {
    /// Returns the index of the next record.
    #[inline]
    pub(crate) fn next(
        &mut self,
        slots: Slots<'_>,
        order: &Order,
        continuation_id: u16,
    ) -> Option<usize> {
        loop {
            if let Some(window) = order.windows.get(self.window)
                && self.next >= window.start
            {
                if let Some(&index) = order.sorted[window.sorted.clone()].get(self.in_window) {
                    self.in_window += 1;
                    return Some(index as usize);
                }
                (self.next, self.window, self.in_window) = (window.end, self.window + 1, 0);
                continue;
            }
            if self.next >= slots.len() {
                return None;
            }
            let index = self.next;
            self.next += 1;
            if is_record(slots, index, continuation_id) {
                return Some(index);
            }
        }
    }
}
