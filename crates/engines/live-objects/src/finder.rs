//! Finds the objects of some specs in the memory of a process, repeatedly.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use host::{Pid, ProcessMemory};
use live_memory::{LimitedMemory, Limits};
use objects::ObjectSpec;
use screen::counted;

use super::pointers::Pointers;
use super::program::{self, Sources};
use crate::alive::{CachedMemory, CompiledSpec, Counts, Value, WalkResult, agree};

/// Finder of the objects of a process.
pub struct Finder {
    memory: ProcessMemory,
    kinds: Vec<Kind>,
    /// Source of the struct layouts, for messages.
    source: String,
    /// Specs that could not be used, with reasons.
    misfits: Vec<String>,
    /// Addresses to read, if no way leads from the program's globals to the objects.
    pointers: Option<RefCell<Pointers>>,
}

/// Spec compiled for the process.
pub struct Kind {
    /// Spec.
    pub spec: ObjectSpec,
    /// Compiled expressions of the spec.
    pub compiled: CompiledSpec,
}

/// Objects alive at one moment.
pub struct Snapshot {
    /// Time, in ticks.
    pub time: u64,
    /// Result for each kind.
    pub found: Vec<WalkResult>,
}

impl Finder {
    /// Prepares to read the objects of these specs. The process's types and symbols decide which it
    /// can have; without these, the addresses in its trace do.
    pub fn open(pid: u32, specs: &[ObjectSpec], debug_dirs: &[PathBuf]) -> anyhow::Result<Self> {
        Self::open_with(pid, specs, debug_dirs, &|specs| {
            Pointers::from_process(specs, pid)
        })
    }

    /// Does the same with addresses from elsewhere, requested only if needed.
    pub fn open_with(
        pid: u32,
        specs: &[ObjectSpec],
        debug_dirs: &[PathBuf],
        pointers: &dyn Fn(&[&ObjectSpec]) -> Pointers,
    ) -> anyhow::Result<Self> {
        let memory = ProcessMemory::open(Pid(pid))?;
        let specs: Vec<&ObjectSpec> = specs.iter().filter(|spec| !spec.alive.is_empty()).collect();
        let Sources {
            compiled,
            source,
            misfits,
            pointers,
        } = program::compile(pid, &specs, debug_dirs, &memory, pointers)?;
        let pointers = pointers.map(RefCell::new);
        let kinds = compiled
            .into_iter()
            .map(|(at, compiled)| Kind {
                spec: specs[at].clone(),
                compiled,
            })
            .collect();
        Ok(Self {
            memory,
            kinds,
            source,
            misfits,
            pointers,
        })
    }

    /// Returns the kinds of objects that can be found.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns the source of the struct layouts.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the specs that could not be used, with reasons.
    pub fn misfits(&self) -> &[String] {
        &self.misfits
    }

    /// Returns true if only addresses known from elsewhere are read.
    pub fn is_of_pointers(&self) -> bool {
        self.pointers.is_some()
    }

    /// Adds addresses to read. An address without an object is dropped at the next reading.
    pub fn add(&self, pointers: &Pointers) {
        if let Some(known) = &self.pointers {
            known.borrow_mut().extend(pointers);
        }
    }

    /// Reads all objects twice, and keeps those on which both readings agree.
    pub fn read(&self) -> Snapshot {
        let read = || {
            let memory = CachedMemory::new(LimitedMemory::new(&self.memory, Limits::default()));
            let kind = |kind: &Kind| match &self.pointers {
                Some(pointers) => kind
                    .compiled
                    .read_at(&pointers.borrow().addresses(&kind.spec.name), &memory),
                None => kind.compiled.read(&memory),
            };
            self.kinds.iter().map(kind).collect::<Vec<_>>()
        };
        let first = read();
        let time = sys::clock::ticks();
        let second = read();
        let found: Vec<_> = first
            .iter()
            .zip(second)
            .map(|(first, second)| agree(first, second))
            .collect();
        self.give_up(&found);
        Snapshot { time, found }
    }

    /// Reads all objects once, for counters that change between any two readings. The caller must
    /// compare such readings itself before it trusts an object.
    pub fn read_once(&self) -> Snapshot {
        let memory = CachedMemory::new(LimitedMemory::new(&self.memory, Limits::default()));
        let time = sys::clock::ticks();
        let read = |kind: &Kind| {
            let reading = kind.compiled.read(&memory);
            agree(&reading.clone(), reading)
        };
        let found = self.kinds.iter().map(read).collect();
        Snapshot { time, found }
    }

    /// Drops the addresses without an object. A trace that has one of them again adds it again.
    fn give_up(&self, found: &[WalkResult]) {
        let Some(pointers) = &self.pointers else {
            return;
        };
        for (kind, found) in self.kinds.iter().zip(found) {
            let key = kind.compiled.key();
            let there = found
                .objects
                .iter()
                .filter_map(|object| match object.values.get(key) {
                    Some(Value::Int(address)) => Some(*address),
                    _ => None,
                });
            let there: BTreeSet<u64> = there.collect();
            pointers
                .borrow_mut()
                .retain(&kind.spec.name, |address| there.contains(&address));
        }
    }
}

impl Snapshot {
    /// Returns the number of objects.
    pub fn object_count(&self) -> usize {
        self.found.iter().map(|found| found.objects.len()).sum()
    }

    /// Describes what was left out.
    pub fn left_out(&self, kinds: &[Kind]) -> Vec<String> {
        let all = kinds.iter().zip(&self.found);
        all.flat_map(|(kind, found)| left_out(&kind.spec.name, &found.counts))
            .collect()
    }
}

fn left_out(name: &str, counts: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let objects = |count| counted(count, name);
    if counts.rejected > 0 {
        let check = counts.rejected_by.as_deref().unwrap_or_default();
        notes.push(format!(
            "{} rejected: not all have {check}",
            objects(counts.rejected)
        ));
    }
    if counts.torn > 0 {
        notes.push(format!(
            "{} changed while they were read",
            objects(counts.torn)
        ));
    }
    if counts.unreadable > 0 {
        notes.push(format!("{} could not be read", objects(counts.unreadable)));
    }
    notes.extend(counts.cut.iter().map(|cut| format!("{name}: {cut}")));
    notes.extend(counts.failed.iter().map(|cause| format!("{name}: {cause}")));
    notes
}
