//! Finds the objects of some specs in the memory of a process, as often as it is asked.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use host::{Pid, ProcessMemory};
use live_memory::{Limited, Limits};
use objects::ObjectSpec;
use screen::counted;

use super::pointers::Pointers;
use super::program::{self, Sources};
use crate::alive::{Cached, Compiled, Counts, Found, Value, agree};

/// What knows the objects of a process.
pub struct Finder {
    memory: ProcessMemory,
    kinds: Vec<Kind>,
    /// How the layout of the process's structs is known, for messages.
    source: String,
    /// Specs that could not be used, and why.
    misfits: Vec<String>,
    /// The addresses that are looked at, if there is no way to the objects from the program's globals.
    pointers: Option<RefCell<Pointers>>,
}

/// The objects of one spec.
pub struct Kind {
    /// The spec.
    pub spec: ObjectSpec,
    /// Expressions of the spec, compiled for the process.
    pub compiled: Compiled,
}

/// What was alive at one moment.
pub struct Snapshot {
    /// When, in ticks.
    pub time: u64,
    /// What was found of each kind.
    pub found: Vec<Found>,
}

impl Finder {
    /// Prepares to read these specs' objects. Which of them the process can have is known from its types and symbols, and if it has
    /// none of these, from the addresses that its trace has.
    pub fn open(pid: u32, specs: &[ObjectSpec], debug_dirs: &[PathBuf]) -> anyhow::Result<Self> {
        Self::open_with(pid, specs, debug_dirs, &|specs| Pointers::of_process(specs, pid))
    }

    /// The same with addresses from elsewhere, which are asked for if they are needed.
    pub fn open_with(
        pid: u32,
        specs: &[ObjectSpec],
        debug_dirs: &[PathBuf],
        pointers: &dyn Fn(&[&ObjectSpec]) -> Pointers,
    ) -> anyhow::Result<Self> {
        let memory = ProcessMemory::open(Pid(pid))?;
        let specs: Vec<&ObjectSpec> = specs.iter().filter(|spec| !spec.alive.is_empty()).collect();
        let Sources { compiled, source, misfits, pointers } =
            program::compile(pid, &specs, debug_dirs, &memory, pointers)?;
        let pointers = pointers.map(RefCell::new);
        let kinds = compiled.into_iter().map(|(at, compiled)| Kind { spec: specs[at].clone(), compiled }).collect();
        Ok(Self { memory, kinds, source, misfits, pointers })
    }

    /// The kinds of objects that can be found.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// How the layout of the process's structs is known.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Specs that could not be used, and why.
    pub fn misfits(&self) -> &[String] {
        &self.misfits
    }

    /// Whether only addresses that are known from elsewhere are looked at.
    pub fn is_of_pointers(&self) -> bool {
        self.pointers.is_some()
    }

    /// Looks at these addresses, too. Each is given up if there is no object at the next reading.
    pub fn add(&self, pointers: &Pointers) {
        if let Some(known) = &self.pointers {
            known.borrow_mut().extend(pointers);
        }
    }

    /// Reads all objects twice, and keeps those that both readings agree about: so they were at the moment between them.
    pub fn read(&self) -> Snapshot {
        let read = || {
            let memory = Cached::new(Limited::new(&self.memory, Limits::default()));
            let kind = |kind: &Kind| match &self.pointers {
                Some(pointers) => kind.compiled.read_at(&pointers.borrow().of(&kind.spec.name), &memory),
                None => kind.compiled.read(&memory),
            };
            self.kinds.iter().map(kind).collect::<Vec<_>>()
        };
        let first = read();
        let time = sys::clock::ticks();
        let second = read();
        let found: Vec<_> = first.iter().zip(second).map(|(first, second)| agree(first, second)).collect();
        self.give_up(&found);
        Snapshot { time, found }
    }

    /// Forgets the addresses at which nothing was found: a trace that has one of them again adds it again.
    fn give_up(&self, found: &[Found]) {
        let Some(pointers) = &self.pointers else { return };
        for (kind, found) in self.kinds.iter().zip(found) {
            let key = kind.compiled.key();
            let there = found.objects.iter().filter_map(|object| match object.values.get(key) {
                Some(Value::Int(address)) => Some(*address),
                _ => None,
            });
            let there: BTreeSet<u64> = there.collect();
            pointers.borrow_mut().retain(&kind.spec.name, |address| there.contains(&address));
        }
    }
}

impl Snapshot {
    /// The number of objects.
    pub fn object_count(&self) -> usize {
        self.found.iter().map(|found| found.objects.len()).sum()
    }

    /// What was left out, in words.
    pub fn left_out(&self, kinds: &[Kind]) -> Vec<String> {
        let all = kinds.iter().zip(&self.found);
        all.flat_map(|(kind, found)| left_out(&kind.spec.name, &found.counts)).collect()
    }
}

fn left_out(name: &str, counts: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let objects = |count| counted(count, name);
    if counts.rejected > 0 {
        let check = counts.rejected_by.as_deref().unwrap_or_default();
        notes.push(format!("{} not believed: not all have {check}", objects(counts.rejected)));
    }
    if counts.torn > 0 {
        notes.push(format!("{} changed while they were read", objects(counts.torn)));
    }
    if counts.unreadable > 0 {
        notes.push(format!("{} could not be read", objects(counts.unreadable)));
    }
    notes.extend(counts.cut.iter().map(|cut| format!("{name}: {cut}")));
    notes.extend(counts.failed.iter().map(|cause| format!("{name}: {cause}")));
    notes
}
