//! Addresses of objects that a trace has: the starting points if the program's globals are unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use objects::ObjectSpec;
use spdk_trace::{ArgValue, Object, RawTrace, ReadAt, Record};
use trace_source::{FileSource, trace_of};

use super::mapped::MappedTrace;

/// Limit on the addresses of a spec's objects.
const MAX_ADDRESSES: usize = 100_000;
/// Lowest possible address: nothing is ever mapped below it, so a lower number is a thread's
/// (`vm.mmap_min_addr`, at least a page).
const LOWEST: u64 = 4096;

/// Possible addresses of objects, by the names of their specs.
#[derive(Clone, Debug, Default)]
pub struct Pointers(BTreeMap<String, BTreeSet<u64>>);

impl Pointers {
    /// Collects the addresses that the records of a trace have of the objects of these specs.
    pub fn from_trace<'s>(
        specs: impl IntoIterator<Item = &'s ObjectSpec>,
        trace: &RawTrace,
    ) -> Self {
        let mut this = Self::default();
        for spec in specs
            .into_iter()
            .filter(|spec| !spec.alive.is_empty() && !spec.tracepoint_args.is_empty())
        {
            trace.for_each(|record| {
                if addresses(spec, record).all(|address| this.add(&spec.name, address)) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        }
        this
    }

    /// Does the same for the trace in this file; `None` if it can't be read.
    pub fn from_file<'s>(
        specs: impl IntoIterator<Item = &'s ObjectSpec>,
        path: &Path,
    ) -> Option<Self> {
        Self::from_source(specs, &FileSource::open(path).ok()?)
    }

    /// Does the same for the trace that a process writes, if there is one. Reads it from its file,
    /// or from the process's memory if the file is in another container or may not be read.
    pub fn from_process(specs: &[&ObjectSpec], pid: u32) -> Self {
        let of_file = || Self::from_file(specs.iter().copied(), &trace_of(pid).ok()?);
        let of_memory = || Self::from_source(specs.iter().copied(), &MappedTrace::find(pid)?);
        of_file().or_else(of_memory).unwrap_or_default()
    }

    fn from_source<'s>(
        specs: impl IntoIterator<Item = &'s ObjectSpec>,
        source: &impl ReadAt,
    ) -> Option<Self> {
        Some(Self::from_trace(specs, &RawTrace::read(source).ok()?))
    }

    /// Adds an address, unless it is too low. Returns false if there are too many already.
    pub fn add(&mut self, spec: &str, address: u64) -> bool {
        if address < LOWEST {
            return true;
        }
        if !self.0.contains_key(spec) {
            self.0.insert(spec.to_owned(), BTreeSet::new());
        }
        let known = self
            .0
            .get_mut(spec)
            .filter(|known| known.len() < MAX_ADDRESSES);
        known.map(|known| known.insert(address)).is_some()
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: &Self) {
        for (spec, addresses) in &other.0 {
            for &address in addresses {
                // Addresses beyond the limit are left out.
                let _ = self.add(spec, address);
            }
        }
    }

    /// Keeps the addresses of a spec that satisfy the predicate.
    pub fn retain(&mut self, spec: &str, is_kept: impl Fn(u64) -> bool) {
        if let Some(known) = self.0.get_mut(spec) {
            known.retain(|&address| is_kept(address));
        }
    }

    /// Returns true if there are no addresses.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeSet::is_empty)
    }

    /// Returns a copy with the addresses of this spec only.
    #[must_use]
    pub fn only(&self, spec: &str) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(name, _)| *name == spec)
                .map(|(name, all)| (name.clone(), all.clone()))
                .collect(),
        )
    }

    /// Returns the addresses of this spec.
    pub fn addresses(&self, spec: &str) -> Vec<u64> {
        self.0.get(spec).into_iter().flatten().copied().collect()
    }
}

/// Returns the addresses of a spec's objects in a record: arguments, and the object of a record
/// that reports a beginning.
fn addresses<'r>(spec: &'r ObjectSpec, record: &'r Record<'r>) -> impl Iterator<Item = u64> + 'r {
    let named = record
        .args
        .iter()
        .filter(|(arg, _)| spec.tracepoint_args.contains(&arg.name));
    let named = named.filter_map(|(_, value)| match value {
        ArgValue::Int(address) | ArgValue::Pointer(address) => Some(address),
        ArgValue::Str(_) => None,
    });
    let begun = match record.object {
        Object::Untyped(address) | Object::ValueOnly(address) => Some(address),
        _ => None,
    };
    named.chain(begun.filter(|_| {
        spec.records
            .iter()
            .any(|pair| pair.begin == record.tpoint.name)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_no_addresses() {
        let mut pointers = Pointers::default();
        assert!(pointers.add("poll_group", 2) && pointers.is_empty());
        assert!(
            pointers.add("qpair", 0x7000)
                && pointers.add("qpair", 0x7000)
                && pointers.add("qpair", 0x8000)
        );
        let mut all = Pointers::default();
        all.extend(&pointers);
        all.retain("qpair", |address| address > 0x7000);
        assert_eq!(
            (
                all.addresses("qpair"),
                all.addresses("ctrlr"),
                all.is_empty()
            ),
            (vec![0x8000], vec![], false)
        );
    }

    #[test]
    fn the_number_of_pointers_is_bounded() {
        let mut pointers = Pointers::default();
        assert!((0..MAX_ADDRESSES as u64).all(|at| pointers.add("qpair", LOWEST + at)));
        assert!(!pointers.add("qpair", 1) || pointers.addresses("qpair").len() == MAX_ADDRESSES);
        assert!(!pointers.add("qpair", u64::MAX));
    }
}
