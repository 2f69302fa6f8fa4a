//! Prepares a process for the search: the addresses of its globals, and the layouts of its structs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use host::{Pid, Process, ProcessMemory};
use live_memory::{LimitedMemory, Limits};
use objects::{ObjectSpec, layouts};
use screen::counted;
use symbolize::{DebugFolders, TypesFile};
use text::printable::path as printable;
use typeinfo::{Arch, TypeStore};

use super::globals::{Addresses, Globals, texts};
use super::layout::{LayoutMatch, LayoutSearch, StartingPoints, compile_spec};
use super::pointers::Pointers;
use crate::alive::{CachedMemory, CompiledSpec, Memory, Misfit, Program};

/// Compiled specs for a process, and their sources.
pub(crate) struct Sources {
    /// Compiled specs, with their indices.
    pub compiled: Vec<(usize, CompiledSpec)>,
    /// Source of the struct layouts.
    pub source: String,
    /// Specs that could not be used, with reasons.
    pub misfits: Vec<String>,
    /// Addresses to read, if there is no other way.
    pub pointers: Option<Pointers>,
}

/// Compiles these specs for a process. If there is no other way, `pointers` returns addresses at
/// which their objects may be.
pub(crate) fn compile(
    pid: u32,
    specs: &[&ObjectSpec],
    debug_dirs: &[PathBuf],
    memory: &ProcessMemory,
    pointers: &dyn Fn(&[&ObjectSpec]) -> Pointers,
) -> anyhow::Result<Sources> {
    let process = Process::open(Pid(pid))?;
    let folders = DebugFolders(debug_dirs.to_vec());
    let built_in = objects::built_in()?;
    let all = with_judges(specs, &built_in);
    let mut globals = Globals::find(&process, &all, &folders);
    let unread = globals.unread.take();
    // All candidates see one state of the memory: a connection that comes meanwhile must not favour
    // one of them.
    let cached = CachedMemory::new(LimitedMemory::new(memory, Limits::default()));
    let judged = LayoutSearch {
        judges: &all,
        globals: &globals,
        memory: &cached,
    };
    let mut plan = Plan::default();
    plan.by_debug_information(specs, &globals, &folders);
    // Debug information that finds no objects may be of another version: then a layout has to find
    // more.
    if !plan.compiled.is_empty()
        && !plan.finds_any(&cached)
        && let Some(better) = by_better_layout(specs, &judged, &folders)
    {
        plan = better;
    }
    let missing = plan.missing(specs);
    if missing.iter().any(|spec| globals.has_roots_of(spec))
        && let Some(fit) = judged.best(&missing, &Pointers::default())
    {
        plan.by_layout(specs, &fit);
    }
    if plan.compiled.is_empty() {
        let pointers = pointers(&all);
        // Without any object, nothing shows that a layout is right.
        if !pointers.is_empty()
            && let Some(fit) = judged.best(specs, &pointers).filter(|fit| fit.found > 0)
        {
            plan.by_layout(specs, &fit);
        }
    }
    // Without its file, a process still has its memory.
    if let Some(error) = unread.filter(|_| plan.compiled.is_empty()) {
        return Err(error.into());
    }
    let misfits = plan.misfits.into_values().flatten().collect();
    let compiled = plan.compiled.into_iter().collect();
    Ok(Sources {
        compiled,
        source: plan.sources.join(", "),
        misfits,
        pointers: plan.pointers,
    })
}

/// Returns these specs, followed by the built-in ones that they lack. One kind of objects can look
/// right with the layout of another version; all together do not.
fn with_judges<'s>(specs: &[&'s ObjectSpec], judges: &'s [ObjectSpec]) -> Vec<&'s ObjectSpec> {
    let is_new = |judge: &&ObjectSpec| {
        !judge.alive.is_empty() && specs.iter().all(|spec| spec.name != judge.name)
    };
    specs
        .iter()
        .copied()
        .chain(judges.iter().filter(is_new))
        .collect()
}

/// Compiles the specs by a layout, if that finds any object of theirs or of others, and debug
/// information finds none.
fn by_better_layout(
    specs: &[&ObjectSpec],
    judged: &LayoutSearch<'_>,
    folders: &DebugFolders,
) -> Option<Plan> {
    let mut others = Plan::default();
    others.by_debug_information(judged.judges, judged.globals, folders);
    if others.finds_any(judged.memory) {
        return None;
    }
    let fit = judged
        .best(specs, &Pointers::default())
        .filter(|fit| fit.found > 0)?;
    let mut better = Plan::default();
    better.by_layout(specs, &fit);
    (!better.compiled.is_empty()).then_some(better)
}

/// Returns the names of structs and enumerations in the specs, and of those to which their members
/// may lead.
fn type_names(specs: &[&ObjectSpec]) -> BTreeSet<String> {
    let newest = layouts::versions().into_iter().next_back();
    let known = newest
        .into_iter()
        .flat_map(layouts::structs)
        .map(|(name, _)| name.to_owned());
    let of_text = |text: &str| {
        let parts = ["struct ", "enum "].map(|tag| text.split(tag).skip(1));
        let names = parts.into_iter().flatten().filter_map(|part| {
            part.split(|c: char| c != '_' && !c.is_alphanumeric())
                .next()
        });
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    texts(specs)
        .flat_map(|located| of_text(&located.text))
        .chain(known)
        .collect()
}

/// Compiled specs, by index, and their sources.
#[derive(Default)]
struct Plan {
    compiled: BTreeMap<usize, CompiledSpec>,
    /// Reasons why specs or parts of them do not fit.
    misfits: BTreeMap<usize, Vec<String>>,
    sources: Vec<String>,
    pointers: Option<Pointers>,
}

impl Plan {
    /// Returns the specs that are not compiled yet.
    fn missing<'s>(&self, specs: &[&'s ObjectSpec]) -> Vec<&'s ObjectSpec> {
        let specs = specs.iter().enumerate();
        specs
            .filter(|(at, _)| !self.compiled.contains_key(at))
            .map(|(_, spec)| *spec)
            .collect()
    }

    /// Returns true if there is any object.
    fn finds_any(&self, memory: &dyn Memory) -> bool {
        self.compiled
            .values()
            .any(|compiled| compiled.finds_any(memory))
    }

    /// Compiles the specs by the debug information of the files that have globals, one after the
    /// other.
    fn by_debug_information(
        &mut self,
        specs: &[&ObjectSpec],
        globals: &Globals,
        folders: &DebugFolders,
    ) {
        for file in &globals.files {
            if self.missing(specs).is_empty() {
                break;
            }
            let Ok(debug) = TypesFile::read(file, folders) else {
                continue;
            };
            let mut types = TypeStore::new(Arch::HOST);
            if debug.add_to(&mut types).is_err() {
                continue;
            }
            types.prepare(
                &type_names(specs)
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            );
            if self.take(specs, types, &globals.addresses, &StartingPoints::Symbols) {
                self.sources.push(format!(
                    "the debug information of {}",
                    printable(debug.path())
                ));
            }
        }
    }

    fn by_layout(&mut self, specs: &[&ObjectSpec], fit: &LayoutMatch) {
        let Some(types) = fit.types() else { return };
        if self.take(specs, types, &fit.addresses, &fit.way) {
            let found = counted(fit.found as u64, "object");
            let (version, way) = (fit.version, fit.way.text());
            self.sources.push(format!(
                "the layout of SPDK {version}, by which {found} meet all conditions{way}"
            ));
        }
    }

    /// Compiles the specs that are not compiled yet. Returns true if any fits.
    fn take(
        &mut self,
        specs: &[&ObjectSpec],
        types: TypeStore<'_>,
        addresses: &Addresses,
        way: &StartingPoints,
    ) -> bool {
        let globals = crate::alive::Addresses(|name: &str| addresses.get(name).copied());
        let program = Program::new(types, &globals);
        let before = self.compiled.len();
        for (at, spec) in specs.iter().enumerate() {
            if self.compiled.contains_key(&at) {
                continue;
            }
            let named = |misfit: &Misfit| format!("{}: {misfit}", spec.name);
            match compile_spec(spec, &program, way) {
                Ok(compiled) => {
                    self.misfits
                        .insert(at, compiled.left_out().iter().map(named).collect());
                    self.compiled.insert(at, compiled);
                }
                Err(misfits) => drop(
                    self.misfits
                        .entry(at)
                        .or_insert_with(|| misfits.iter().map(named).collect()),
                ),
            }
        }
        let is_more = self.compiled.len() > before;
        if let StartingPoints::Pointers(pointers) = way
            && is_more
        {
            self.pointers = Some(pointers.clone());
        }
        is_more
    }
}
