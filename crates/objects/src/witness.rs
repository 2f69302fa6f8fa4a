//! What a trace itself says of the beginnings and ends of objects: records such as `RDMA_QP_CREATE`, whose object is the address.
//!
//! If a trace would have a record of each beginning and each end between two moments, and has none, then an address belonged to
//! the same object all the time.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spdk_trace::{Object, Record, Ticks, TpointTable};

use crate::spec::ObjectSpec;

/// The beginnings and ends that were seen.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// By tracepoint id: the specs whose objects its records report.
    tpoints: HashMap<u16, Vec<usize>, RandomState>,
    /// By spec and key: when.
    changes: HashMap<(usize, u64), Vec<Ticks>, RandomState>,
    /// Between these no beginning and no end was missed.
    covered: Option<(Ticks, Ticks)>,
}

impl Witness {
    /// What the tracepoints of a trace can report.
    pub(crate) fn new(specs: &[ObjectSpec], tpoints: &TpointTable) -> Self {
        let mut witness = Self::default();
        for (number, spec) in specs.iter().enumerate() {
            for name in spec.records.iter().flat_map(|pair| [&pair.begin, &pair.end]) {
                for tpoint in tpoints.all().iter().filter(|tpoint| tpoint.name == *name) {
                    witness.tpoints.entry(tpoint.id).or_default().push(number);
                }
            }
        }
        witness
    }

    /// Whether the records of this tracepoint report beginnings or ends.
    #[inline]
    pub(crate) fn reports(&self, tpoint: u16) -> bool {
        !self.tpoints.is_empty() && self.tpoints.contains_key(&tpoint)
    }

    /// Everything up to this record was seen.
    #[inline]
    pub(crate) fn reach(&mut self, tsc: Ticks) {
        if let Some((_, to)) = &mut self.covered {
            *to = (*to).max(tsc);
        }
    }

    /// Takes a record in. Says whether it reports something.
    pub(crate) fn observe(&mut self, record: &Record<'_>) -> bool {
        let Some(specs) = self.tpoints.get(&record.tpoint.id) else { return false };
        let (Object::Untyped(key) | Object::ValueOnly(key)) = record.object else { return false };
        for &spec in specs {
            let times = self.changes.entry((spec, key)).or_default();
            // A record can be observed twice: when a live trace is read for the first time, and when it is followed.
            if let Err(place) = times.binary_search(&record.tsc) {
                times.insert(place, record.tsc);
            }
        }
        true
    }

    /// Whether the trace has records of all beginnings and ends of these objects, if any were seen at all: their tracepoints
    /// were enabled wherever one of the same group is that names such objects.
    pub(crate) fn is_complete(specs: &[ObjectSpec], tpoints: &TpointTable) -> bool {
        let enabled = |name: &str| tpoints.all().iter().find(|t| t.name == name).map(|t| tpoints.is_enabled(t.id));
        let mut pairs = specs.iter().flat_map(|spec| spec.records.iter().map(move |pair| (spec, pair))).peekable();
        if pairs.peek().is_none() {
            return false;
        }
        let mut known = 0;
        let all = pairs.all(|(spec, pair)| {
            let (Some(begin), Some(end)) = (enabled(&pair.begin), enabled(&pair.end)) else { return true };
            known += 1;
            let group = tpoints.all().iter().find(|t| t.name == pair.begin).map(spdk_trace::Tpoint::group);
            let names = |t: &spdk_trace::Tpoint| t.args.iter().any(|arg| spec.tracepoint_args.contains(&arg.name));
            let is_used =
                tpoints.all().iter().any(|t| Some(t.group()) == group && tpoints.is_enabled(t.id) && names(t));
            (begin && end) || !is_used
        });
        all && known > 0
    }

    /// Says between which times nothing was missed.
    pub(crate) fn cover(&mut self, from: Ticks, to: Ticks) {
        self.covered = Some((from, to));
    }

    /// Whether anything is covered.
    pub(crate) fn is_used(&self) -> bool {
        self.covered.is_some()
    }

    /// Something may have been missed until `tsc`.
    pub(crate) fn lose_until(&mut self, tsc: Ticks) {
        if let Some((from, _)) = &mut self.covered {
            *from = (*from).max(tsc);
        }
    }

    /// Whether nothing was missed between these times.
    #[inline]
    pub(crate) fn covers(&self, from: Ticks, to: Ticks) -> bool {
        self.covered.is_some_and(|(first, last)| first <= from && to <= last)
    }

    /// Whether a beginning or an end was seen behind `from` and not behind `to`.
    #[inline]
    pub(crate) fn has_change(&self, spec: usize, key: u64, from: Ticks, to: Ticks) -> bool {
        if self.changes.is_empty() {
            return false;
        }
        let Some(times) = self.changes.get(&(spec, key)) else { return false };
        let first = times.partition_point(|time| *time <= from);
        times.get(first).is_some_and(|time| *time <= to)
    }
}

#[cfg(test)]
impl Witness {
    /// A beginning or an end at that time.
    pub(crate) fn change_for_test(&mut self, spec: usize, key: u64, tsc: Ticks) {
        self.changes.entry((spec, key)).or_default().push(tsc);
    }
}
