//! Built-in layouts of SPDK's structs, for programs without debug information: finds the version
//! that fits a process.

use std::path::PathBuf;

use host::{FilePlace, Pid, Process, ProcessMemory};
use live_memory::{LimitedMemory, Limits};
use objects::layouts::{self, SpdkVersion, VersionSearch};
use objects::{ObjectSpec, built_in};
use symbolize::DebugFolders;
use typeinfo::{Arch, TypeStore};

use super::globals::{Addresses, Globals};
use super::pointers::Pointers;
use crate::alive::{CachedMemory, CompiledSpec, Memory, Misfit, Program};

/// Input of the search for a layout.
pub(crate) struct LayoutSearch<'j> {
    /// Specs that show whether a layout is right.
    pub judges: &'j [&'j ObjectSpec],
    pub globals: &'j Globals,
    pub memory: &'j dyn Memory,
}

/// Version with layouts that fit.
pub(crate) struct LayoutMatch {
    pub version: SpdkVersion,
    /// Number of objects that meet all conditions.
    pub found: usize,
    pub way: StartingPoints,
    /// Known globals.
    pub addresses: Addresses,
}

impl LayoutMatch {
    pub(crate) fn types(&self) -> Option<TypeStore<'static>> {
        types_of(self.version)
    }
}

fn types_of(version: SpdkVersion) -> Option<TypeStore<'static>> {
    let mut types = TypeStore::new(Arch::HOST);
    live_memory::define_types(&mut types, &layouts::layout_text(version)).ok()?;
    Some(types)
}

impl LayoutSearch<'_> {
    /// Returns the version that finds the most objects of all judges; objects that fail a condition
    /// don't count. Ties go to the program's own version, if stated, else to the newest one. The
    /// version must fit at least one of the `specs`.
    pub(crate) fn best(&self, specs: &[&ObjectSpec], pointers: &Pointers) -> Option<LayoutMatch> {
        let mut best: Option<LayoutMatch> = None;
        let stated = self.globals.files.iter().find_map(stated_version);
        let others = layouts::versions()
            .into_iter()
            .rev()
            .filter(|version| Some(*version) != stated);
        for version in stated.into_iter().chain(others) {
            let Some((way, addresses)) = self.way(specs, pointers, version) else {
                continue;
            };
            let Some(types) = types_of(version) else {
                continue;
            };
            let most = best.as_ref().map(|best| best.found);
            if let Some(found) = self.try_types(types, specs, (&way, &addresses), most) {
                best = Some(LayoutMatch {
                    version,
                    found,
                    way,
                    addresses,
                });
            }
        }
        best
    }

    /// Returns the number of objects found with these types, if it exceeds `most` and any of the
    /// specs fits.
    fn try_types(
        &self,
        types: TypeStore<'_>,
        specs: &[&ObjectSpec],
        (way, addresses): (&StartingPoints, &Addresses),
        most: Option<usize>,
    ) -> Option<usize> {
        let globals = crate::alive::Addresses(|name: &str| addresses.get(name).copied());
        let program = Program::new(types, &globals);
        let found: usize = self
            .judges
            .iter()
            .map(|judge| self.count(judge, &program, way))
            .sum();
        let is_more = most.is_none_or(|most| found > most);
        (is_more
            && specs
                .iter()
                .any(|spec| compile_spec(spec, &program, way).is_ok()))
        .then_some(found)
    }

    /// Returns the number of objects of a spec in memory.
    fn count(&self, spec: &ObjectSpec, program: &Program<'_>, way: &StartingPoints) -> usize {
        let Ok(compiled) = compile_spec(spec, program, way) else {
            return 0;
        };
        match way {
            StartingPoints::Pointers(pointers) => compiled
                .read_at(&pointers.addresses(&spec.name), self.memory)
                .len(),
            StartingPoints::Symbols | StartingPoints::Roots => compiled.read(self.memory).len(),
        }
    }

    /// Returns the starting points with this version, and the globals known then. `None` if there
    /// are none.
    fn way(
        &self,
        specs: &[&ObjectSpec],
        pointers: &Pointers,
        version: SpdkVersion,
    ) -> Option<(StartingPoints, Addresses)> {
        let mut addresses = self.globals.addresses.clone();
        if pointers.is_empty() {
            return Some((StartingPoints::Symbols, addresses));
        }
        let nothing = crate::alive::Addresses(|_: &str| None);
        let program = Program::new(types_of(version)?, &nothing);
        let mut leads = false;
        for spec in self.judges {
            for (name, address) in
                crate::alive::roots(spec, &program, &pointers.addresses(&spec.name), self.memory)
            {
                leads = true;
                addresses.entry(name).or_insert(address);
            }
        }
        if leads {
            return Some((StartingPoints::Roots, addresses));
        }
        // Built-in layouts are SPDK's, and its objects are read only where its lists hold them.
        let rest = specs
            .iter()
            .filter(|spec| spec.alive.iter().all(|alive| alive.roots.is_empty()));
        let mut left = Pointers::default();
        rest.for_each(|spec| left.extend(&pointers.only(&spec.name)));
        (!left.is_empty()).then_some((StartingPoints::Pointers(left), addresses))
    }
}

/// Starting points of the search for objects.
#[derive(Clone)]
pub(crate) enum StartingPoints {
    /// Globals named by symbols.
    Symbols,
    /// Globals found from objects that the trace points to.
    Roots,
    /// Only these addresses.
    Pointers(Pointers),
}

impl StartingPoints {
    /// Returns the suffix of the layout's name in messages.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Symbols => "",
            Self::Roots => "; its lists were found from the addresses that its trace has",
            Self::Pointers(_) => " at the addresses that its trace has",
        }
    }
}

/// Compiles a spec for a program.
pub(crate) fn compile_spec(
    spec: &ObjectSpec,
    program: &Program<'_>,
    way: &StartingPoints,
) -> Result<CompiledSpec, Vec<Misfit>> {
    match way {
        StartingPoints::Pointers(_) => CompiledSpec::compile_pointers(spec, program),
        StartingPoints::Symbols | StartingPoints::Roots => crate::alive::compile(spec, program),
    }
}

/// Limit on the bytes read of a file to find its version: more than the code and data of large
/// programs.
const MAX_SEARCHED: u64 = 256 << 20;
/// Size of one read, in bytes.
const BLOCK: u64 = 256 << 10;

/// Returns the version that a program prints when it starts, from the loaded parts of its file.
/// Nothing of them is kept.
fn stated_version(file: &FilePlace) -> Option<SpdkVersion> {
    let reader = file.reader().ok()?;
    let segments = file.load_notes().ok()?.image().ok()?.loaded_ranges();
    let mut block = vec![0; BLOCK as usize];
    let mut left = MAX_SEARCHED;
    for range in segments {
        let mut search = VersionSearch::default();
        let mut at = range.start;
        while at < range.end && left > 0 {
            let length = (range.end - at).min(BLOCK).min(left);
            let bytes = &mut block[..length as usize];
            // A file that ends before its segment has nothing more.
            if reader.read_exact_at(bytes, at).is_err() {
                break;
            }
            if let Some(version) = search.feed(bytes) {
                return Some(version);
            }
            (at, left) = (at + length, left - length);
        }
    }
    None
}

/// Returns the SPDK version of a process, and its source in words: the version that finds the most
/// objects, or the one that its file states.
pub fn version_of(
    pid: u32,
    debug_dirs: &[PathBuf],
) -> anyhow::Result<Option<(SpdkVersion, &'static str)>> {
    let memory = ProcessMemory::open(Pid(pid))?;
    let process = Process::open(Pid(pid))?;
    let judges = built_in()?;
    let judges: Vec<&ObjectSpec> = judges
        .iter()
        .filter(|spec| !spec.alive.is_empty())
        .collect();
    let globals = Globals::find(&process, &judges, &DebugFolders(debug_dirs.to_vec()));
    let cached = CachedMemory::new(LimitedMemory::new(&memory, Limits::default()));
    let tried = LayoutSearch {
        judges: &judges,
        globals: &globals,
        memory: &cached,
    };
    let mut fit = tried
        .best(&judges, &Pointers::default())
        .filter(|fit| fit.found > 0);
    if fit.is_none() {
        let pointers = Pointers::from_process(&judges, pid);
        fit = (!pointers.is_empty())
            .then(|| tried.best(&judges, &pointers))
            .flatten()
            .filter(|fit| fit.found > 0);
    }
    if let Some(fit) = fit {
        return Ok(Some((
            fit.version,
            "most objects in its memory meet all conditions with it",
        )));
    }
    Ok(globals
        .files
        .iter()
        .find_map(stated_version)
        .map(|version| (version, "its file states it")))
}
