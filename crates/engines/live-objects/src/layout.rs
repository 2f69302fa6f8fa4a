//! Built-in layouts of SPDK's structs, for programs without debug information: which version's fit a process.

use std::path::PathBuf;

use host::{FilePlace, Pid, Process, ProcessMemory};
use live_memory::{Limited, Limits};
use objects::layouts::{self, SpdkVersion, VersionSearch};
use objects::{ObjectSpec, built_in};
use symbolize::DebugFolders;
use typeinfo::{Arch, TypeStore};

use super::globals::{Addresses, Globals};
use super::pointers::Pointers;
use crate::alive::{Cached, Compiled, Memory, Misfit, Program};

/// What layouts are tried with.
pub(crate) struct Judged<'j> {
    /// The specs that show whether a layout is right.
    pub judges: &'j [&'j ObjectSpec],
    pub globals: &'j Globals,
    pub memory: &'j dyn Memory,
}

/// A version whose layouts fit.
pub(crate) struct Fit {
    pub version: SpdkVersion,
    /// The number of objects that meet all conditions with them.
    pub found: usize,
    pub way: Way,
    /// The globals that are known.
    pub addresses: Addresses,
}

impl Fit {
    pub(crate) fn types(&self) -> Option<TypeStore<'static>> {
        types_of(self.version)
    }
}

fn types_of(version: SpdkVersion) -> Option<TypeStore<'static>> {
    let mut types = TypeStore::new(Arch::HOST);
    live_memory::define_types(&mut types, &layouts::layout_text(version)).ok()?;
    Some(types)
}

impl Judged<'_> {
    /// The version by whose layouts most objects of all judges are found: what does not meet the conditions of the specs does not
    /// count. Of several, that of the program's own version is taken, if it has one, else the newest; but one that fits any of the
    /// `specs`.
    pub(crate) fn best(&self, specs: &[&ObjectSpec], pointers: &Pointers) -> Option<Fit> {
        let mut best: Option<Fit> = None;
        let stated = self.globals.files.iter().find_map(stated_version);
        let others = layouts::versions().into_iter().rev().filter(|version| Some(*version) != stated);
        for version in stated.into_iter().chain(others) {
            let Some((way, addresses)) = self.way(specs, pointers, version) else { continue };
            let Some(types) = types_of(version) else { continue };
            let most = best.as_ref().map(|best| best.found);
            if let Some(found) = self.try_types(types, specs, (&way, &addresses), most) {
                best = Some(Fit { version, found, way, addresses });
            }
        }
        best
    }

    /// The number of objects that are found with these types, if that is more than `most` and any of the specs fits.
    fn try_types(
        &self,
        types: TypeStore<'_>,
        specs: &[&ObjectSpec],
        (way, addresses): (&Way, &Addresses),
        most: Option<usize>,
    ) -> Option<usize> {
        let globals = crate::alive::Addresses(|name: &str| addresses.get(name).copied());
        let program = Program::new(types, &globals);
        let found: usize = self.judges.iter().map(|judge| self.count(judge, &program, way)).sum();
        let is_more = most.is_none_or(|most| found > most);
        (is_more && specs.iter().any(|spec| compile_spec(spec, &program, way).is_ok())).then_some(found)
    }

    /// The number of objects of a spec that are there.
    fn count(&self, spec: &ObjectSpec, program: &Program<'_>, way: &Way) -> usize {
        let Ok(compiled) = compile_spec(spec, program, way) else { return 0 };
        match way {
            Way::Pointers(pointers) => compiled.read_at(&pointers.of(&spec.name), self.memory).len(),
            Way::Symbols | Way::Roots => compiled.read(self.memory).len(),
        }
    }

    /// Where to begin with this version, and the globals that are known then. None if there is nothing to begin with.
    fn way(&self, specs: &[&ObjectSpec], pointers: &Pointers, version: SpdkVersion) -> Option<(Way, Addresses)> {
        let mut addresses = self.globals.addresses.clone();
        if pointers.is_empty() {
            return Some((Way::Symbols, addresses));
        }
        let nothing = crate::alive::Addresses(|_: &str| None);
        let program = Program::new(types_of(version)?, &nothing);
        let mut leads = false;
        for spec in self.judges {
            for (name, address) in crate::alive::roots(spec, &program, &pointers.of(&spec.name), self.memory) {
                leads = true;
                addresses.entry(name).or_insert(address);
            }
        }
        if leads {
            return Some((Way::Roots, addresses));
        }
        // Built-in layouts are of SPDK, and its objects are looked at only where its lists hold them.
        let rest = specs.iter().filter(|spec| spec.alive.iter().all(|alive| alive.roots.is_empty()));
        let mut left = Pointers::default();
        rest.for_each(|spec| left.extend(&pointers.only(&spec.name)));
        (!left.is_empty()).then_some((Way::Pointers(left), addresses))
    }
}

/// Where the objects are looked for.
#[derive(Clone)]
pub(crate) enum Way {
    /// From globals that symbols name.
    Symbols,
    /// From globals to which objects lead that the trace points to.
    Roots,
    /// At these addresses only.
    Pointers(Pointers),
}

impl Way {
    /// Behind the name of the layout.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Symbols => "",
            Self::Roots => "; its lists were found from the addresses that its trace has",
            Self::Pointers(_) => " at the addresses that its trace has",
        }
    }
}

/// Compiles a spec for a program.
pub(crate) fn compile_spec(spec: &ObjectSpec, program: &Program<'_>, way: &Way) -> Result<Compiled, Vec<Misfit>> {
    match way {
        Way::Pointers(_) => Compiled::of_pointers(spec, program),
        Way::Symbols | Way::Roots => crate::alive::compile(spec, program),
    }
}

/// The most that is read of a file to find its version: more than the code and data of large programs.
const MAX_SEARCHED: u64 = 256 << 20;
/// What is read at once.
const BLOCK: u64 = 256 << 10;

/// The version that a program prints when it starts, from what the process has of the file in its memory. Nothing of that is kept.
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

/// The version of SPDK that a process has: the one by whose layouts most objects are found, or the one that its file states. Gives
/// also how it is known, in words.
pub fn version_of(pid: u32, debug_dirs: &[PathBuf]) -> anyhow::Result<Option<(SpdkVersion, &'static str)>> {
    let memory = ProcessMemory::open(Pid(pid))?;
    let process = Process::open(Pid(pid))?;
    let judges = built_in()?;
    let judges: Vec<&ObjectSpec> = judges.iter().filter(|spec| !spec.alive.is_empty()).collect();
    let globals = Globals::find(&process, &judges, &DebugFolders(debug_dirs.to_vec()));
    let cached = Cached::new(Limited::new(&memory, Limits::default()));
    let tried = Judged { judges: &judges, globals: &globals, memory: &cached };
    let mut fit = tried.best(&judges, &Pointers::default()).filter(|fit| fit.found > 0);
    if fit.is_none() {
        let pointers = Pointers::of_process(&judges, pid);
        fit = (!pointers.is_empty()).then(|| tried.best(&judges, &pointers)).flatten().filter(|fit| fit.found > 0);
    }
    if let Some(fit) = fit {
        return Ok(Some((fit.version, "most objects in its memory meet all conditions by it")));
    }
    Ok(globals.files.iter().find_map(stated_version).map(|version| (version, "its file states it")))
}
