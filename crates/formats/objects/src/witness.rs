//! Beginnings and ends of objects in the trace itself: records such as `RDMA_QP_CREATE`, whose
//! object is the address.
//!
//! If a trace would have a record of each beginning and end between two times, and has none, an
//! address belonged to the same object all the time.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spdk_trace::{Object, Record, Ticks, Tpoint, TpointTable};

use crate::alive_spec::RecordPair;
use crate::spec::ObjectSpec;

/// The observed beginnings and ends.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Specs whose objects are reported by a tracepoint's records, by tracepoint id.
    tpoints: HashMap<u16, Vec<usize>, RandomState>,
    /// Times of the changes, by spec and key.
    changes: HashMap<(usize, u64), Vec<Ticks>, RandomState>,
    /// Period in which the trace's records were observed, apart from lost ones.
    extent: Option<(Ticks, Ticks)>,
    /// Period in which no beginning or end was missed.
    covered: Option<(Ticks, Ticks)>,
}

impl Witness {
    /// Collects the tracepoints of the trace that report changes.
    pub(crate) fn new(specs: &[ObjectSpec], tpoints: &TpointTable) -> Self {
        let mut witness = Self::default();
        for (number, spec) in specs.iter().enumerate() {
            for name in spec
                .records
                .iter()
                .flat_map(|pair| [&pair.begin, &pair.end])
            {
                for tpoint in tpoints.all().iter().filter(|tpoint| tpoint.name == *name) {
                    witness.tpoints.entry(tpoint.id).or_default().push(number);
                }
            }
        }
        witness
    }

    /// Returns whether the records of this tracepoint report beginnings or ends.
    #[inline]
    pub(crate) fn reports(&self, tpoint: u16) -> bool {
        !self.tpoints.is_empty() && self.tpoints.contains_key(&tpoint)
    }

    /// Extends the observed periods to `tsc`.
    #[inline]
    pub(crate) fn reach(&mut self, tsc: Ticks) {
        for (_, to) in self.extent.iter_mut().chain(&mut self.covered) {
            *to = (*to).max(tsc);
        }
    }

    /// Applies a record. Returns whether it reports a change.
    pub(crate) fn observe(&mut self, record: &Record<'_>) -> bool {
        let Some(specs) = self.tpoints.get(&record.tpoint.id) else {
            return false;
        };
        let (Object::Untyped(key) | Object::ValueOnly(key)) = record.object else {
            return false;
        };
        for &spec in specs {
            let times = self.changes.entry((spec, key)).or_default();
            // A record can be observed twice: when a live trace is first read, and when it is
            // followed.
            if let Err(place) = times.binary_search(&record.tsc) {
                times.insert(place, record.tsc);
            }
        }
        true
    }

    /// Returns whether the trace has records of all beginnings and ends of these objects, and any
    /// at all. Their tracepoints must be enabled if a tracepoint of the same group that refers to
    /// such objects is.
    pub(crate) fn is_complete(specs: &[ObjectSpec], tpoints: &TpointTable) -> bool {
        let is_known = |pair: &RecordPair| Self::ids(pair, tpoints).is_some();
        let has_any = specs.iter().flat_map(|spec| &spec.records).any(is_known);
        has_any
            && specs
                .iter()
                .all(|spec| Self::disabled(spec, tpoints).next().is_none())
    }

    /// Finds the tracepoints of beginnings and ends of a spec's objects that were disabled although
    /// one of the same group that refers to such objects was enabled.
    pub(crate) fn disabled<'s>(
        spec: &'s ObjectSpec,
        tpoints: &'s TpointTable,
    ) -> impl Iterator<Item = &'s str> {
        let is_used = |group: u16| {
            let names = |t: &Tpoint| {
                t.args
                    .iter()
                    .any(|arg| spec.tracepoint_args.contains(&arg.name))
            };
            tpoints
                .all()
                .iter()
                .any(|t| t.group() == group && tpoints.is_enabled(t.id) && names(t))
        };
        let known = spec
            .records
            .iter()
            .filter_map(|pair| Some((pair, Self::ids(pair, tpoints)?)));
        let used = known.filter(move |(_, [begin, _])| is_used(begin.group()));
        let all =
            used.flat_map(|(pair, [begin, end])| [(&*pair.begin, begin.id), (&*pair.end, end.id)]);
        all.filter(|(_, id)| !tpoints.is_enabled(*id))
            .map(|(name, _)| name)
    }

    /// Returns the tracepoints of a pair's beginning and end, if the trace has both.
    fn ids<'t>(pair: &RecordPair, tpoints: &'t TpointTable) -> Option<[&'t Tpoint; 2]> {
        let find = |name: &str| tpoints.all().iter().find(|t| t.name == name);
        Some([find(&pair.begin)?, find(&pair.end)?])
    }

    /// Sets the period of the trace.
    pub(crate) fn extend(&mut self, from: Ticks, to: Ticks) {
        self.extent = Some((from, to));
    }

    /// Returns whether the records from `from` to `to` were observed.
    #[inline]
    pub(crate) fn extends(&self, from: Ticks, to: Ticks) -> bool {
        self.extent
            .is_some_and(|(first, last)| first <= from && to <= last)
    }

    /// Sets the period in which nothing was missed.
    pub(crate) fn cover(&mut self, from: Ticks, to: Ticks) {
        self.covered = Some((from, to));
    }

    /// Returns whether any period is covered.
    pub(crate) fn is_used(&self) -> bool {
        self.covered.is_some()
    }

    /// Notes that records before `tsc` may have been missed.
    pub(crate) fn lose_until(&mut self, tsc: Ticks) {
        for (from, _) in self.extent.iter_mut().chain(&mut self.covered) {
            *from = (*from).max(tsc);
        }
    }

    /// Returns whether nothing was missed between these times.
    #[inline]
    pub(crate) fn covers(&self, from: Ticks, to: Ticks) -> bool {
        self.covered
            .is_some_and(|(first, last)| first <= from && to <= last)
    }

    /// Returns the time of the first beginning or end after `from`, if one was observed.
    #[inline]
    pub(crate) fn change_after(&self, spec: usize, key: u64, from: Ticks) -> Option<Ticks> {
        if self.changes.is_empty() {
            return None;
        }
        let times = self.changes.get(&(spec, key))?;
        times
            .get(times.partition_point(|time| *time <= from))
            .copied()
    }

    /// Returns whether a beginning or an end was observed after `from` and not after `to`.
    #[inline]
    pub(crate) fn has_change(&self, spec: usize, key: u64, from: Ticks, to: Ticks) -> bool {
        self.change_after(spec, key, from)
            .is_some_and(|time| time <= to)
    }
}

#[cfg(test)]
impl Witness {
    /// Adds a beginning or an end at this time.
    pub(crate) fn change_for_test(&mut self, spec: usize, key: u64, tsc: Ticks) {
        self.changes.entry((spec, key)).or_default().push(tsc);
    }
}
