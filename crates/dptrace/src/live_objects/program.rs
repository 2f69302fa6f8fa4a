//! What must be known of a process before its objects can be found: where its globals are, and how its structs are laid out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use alive::{Cached, Compiled, Misfit, Program};
use elf::ElfImage;
use elf::symbols::{SymbolAddresses, SymbolFound};
use host::{ElfFile, FilePlace, Pid, Process, ProcessMemory};
use live_memory::{Limited, Limits, Memory};
use objects::{ObjectSpec, layouts};
use screen::counted;
use symbolize::DebugFolders;
use typeinfo::{Arch, Dwarf, DwarfSections, TypeStore};

use super::pointers::Pointers;
use crate::target::printable;

/// What the specs come down to for a process.
pub(super) struct Sources {
    /// By the places of the specs: how their objects are found.
    pub(super) compiled: Vec<(usize, Compiled)>,
    /// How the layout of the structs is known.
    pub(super) source: String,
    /// Specs that could not be used, and why.
    pub(super) misfits: Vec<String>,
    /// The addresses that are looked at, if there is no other way.
    pub(super) pointers: Option<Pointers>,
}

/// Finds out how the objects of these specs are found in a process. `pointers` gives addresses at which objects of specs may be:
/// if there is no other way, these are looked at.
pub(super) fn compile(
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
    let globals = Globals::find(&process, &all, &folders)?;
    let mut best = Attempt::default();
    for file in &globals.files {
        let Some(debug) = Debug::load(file, &folders) else { continue };
        let Some(types) = debug.types() else { continue };
        let attempt = Attempt::new(specs, &types, &globals.addresses, &Way::Symbols);
        if attempt.compiled.len() > best.compiled.len() {
            best = Attempt { source: format!("the debug information of {}", debug.name), ..attempt };
        }
    }
    let no_pointers = Pointers::default();
    let judged = Judged { specs, judges: &all, globals: &globals, memory };
    if best.compiled.is_empty() {
        best = judged.by_layout(&no_pointers, best);
    }
    if best.compiled.is_empty() {
        let pointers = pointers(&all);
        if !pointers.is_empty() {
            best = judged.by_layout(&pointers, best);
        }
    }
    let Attempt { compiled, misfits, source, pointers, .. } = best;
    Ok(Sources { compiled, source, misfits, pointers })
}

/// These specs, and behind them the built-in ones that they lack. One kind of objects can look right with the layout of another
/// version; all together do not.
fn with_judges<'s>(specs: &[&'s ObjectSpec], judges: &'s [ObjectSpec]) -> Vec<&'s ObjectSpec> {
    let is_new = |judge: &&ObjectSpec| !judge.alive.is_empty() && specs.iter().all(|spec| spec.name != judge.name);
    specs.iter().copied().chain(judges.iter().filter(is_new)).collect()
}

/// What layouts are tried for.
struct Judged<'j> {
    specs: &'j [&'j ObjectSpec],
    /// These, and others that show whether a layout is right.
    judges: &'j [&'j ObjectSpec],
    globals: &'j Globals,
    memory: &'j ProcessMemory,
}

impl Judged<'_> {
    /// The layout of those that are built in by which most objects of all `judges` are found: what does not meet the conditions of
    /// the specs does not count. Of several, that of the program's own version is taken, if it has one, else the newest.
    fn by_layout(&self, pointers: &Pointers, without: Attempt) -> Attempt {
        let (mut best, mut most) = (without, 0);
        // All look at one state of the memory: a connection that comes meanwhile must not make one of them better.
        let cached = Cached::new(Limited::new(self.memory, Limits::default()));
        let stated = self.globals.files.iter().find_map(stated_version);
        let others = layouts::versions().into_iter().rev().filter(|version| Some(*version) != stated);
        for version in stated.into_iter().chain(others) {
            let mut types = TypeStore::new(Arch::HOST);
            if alive::define(&layouts::layout_text(version), &mut types).is_err() {
                continue;
            }
            let Some((way, globals)) = self.way(pointers, &types, &cached) else { continue };
            let trial = Attempt::new(self.judges, &types, &globals, &way);
            let found = trial.count(self.judges, &cached);
            if found <= most && !best.compiled.is_empty() {
                continue;
            }
            let attempt = Attempt::new(self.specs, &types, &globals, &way);
            if found > most || !attempt.compiled.is_empty() {
                most = found;
                let source = format!(
                    "the layout of SPDK {version}, by which {} meet all conditions{}",
                    counted(found as u64, "object"),
                    way.text()
                );
                best = Attempt { source, ..attempt };
            }
        }
        // Without any object there, nothing shows that a layout is right.
        if !pointers.is_empty() && most == 0 { Attempt::default() } else { best }
    }

    /// Where to begin with these types, and the globals that are known then. None if there is nothing to begin with.
    fn way(&self, pointers: &Pointers, types: &TypeStore<'_>, memory: &dyn Memory) -> Option<(Way, Addresses)> {
        let mut globals = self.globals.addresses.clone();
        if pointers.is_empty() {
            return Some((Way::Symbols, globals));
        }
        let mut leads = false;
        for spec in self.judges {
            let program = Program { types, globals: &|_| None };
            for (name, address) in alive::roots(spec, &program, &pointers.of(&spec.name), memory) {
                leads = true;
                globals.entry(name).or_insert(address);
            }
        }
        if leads {
            return Some((Way::Roots, globals));
        }
        // Built-in layouts are of SPDK, and its objects are looked at only where its lists hold them.
        let rest = self.specs.iter().filter(|spec| spec.alive.iter().all(|alive| alive.roots.is_empty()));
        let mut left = Pointers::default();
        rest.for_each(|spec| left.extend(&pointers.only(&spec.name)));
        (!left.is_empty()).then_some((Way::Pointers(left), globals))
    }
}

/// Where the objects are looked for.
#[derive(Clone)]
enum Way {
    /// From globals that symbols name.
    Symbols,
    /// From globals to which objects lead that the trace points to.
    Roots,
    /// At these addresses only.
    Pointers(Pointers),
}

impl Way {
    /// Behind the name of the layout.
    fn text(&self) -> &'static str {
        match self {
            Self::Symbols => "",
            Self::Roots => "; its lists were found from the addresses that its trace has",
            Self::Pointers(_) => " at the addresses that its trace has",
        }
    }
}

/// The version that the program prints when it starts (`SPDK_VERSION_STRING`, include/spdk/version.h): `SPDK v24.09`.
fn stated_version(file: &ElfFile) -> Option<layouts::SpdkVersion> {
    let whole = file.whole().ok()?;
    let bytes = whole.image().ok()?.data();
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(START.len()).position(|window| window == START) {
        let behind = &bytes[from + at + START.len()..];
        let text = behind.get(..5).and_then(|text| std::str::from_utf8(text).ok());
        if let Some(version) = text.and_then(|text| text.parse().ok()) {
            return Some(version);
        }
        from += at + START.len();
    }
    None
}

/// What stands before the version.
const START: &[u8] = b"SPDK v";

/// What comes of the specs with some types.
#[derive(Default)]
struct Attempt {
    compiled: Vec<(usize, Compiled)>,
    misfits: Vec<String>,
    source: String,
    pointers: Option<Pointers>,
}

impl Attempt {
    fn new(specs: &[&ObjectSpec], types: &TypeStore<'_>, addresses: &Addresses, way: &Way) -> Self {
        let pointers = if let Way::Pointers(pointers) = way { Some(pointers.clone()) } else { None };
        let compile = if pointers.is_some() { Compiled::of_pointers } else { alive::compile };
        let mut attempt = Self { pointers, ..Self::default() };
        let program = Program { types, globals: &|name| addresses.get(name).copied() };
        for (at, spec) in specs.iter().enumerate() {
            let named = |misfit: &Misfit| format!("{}: {misfit}", spec.name);
            match compile(spec, &program) {
                Ok(compiled) => {
                    attempt.misfits.extend(compiled.left_out().iter().map(named));
                    attempt.compiled.push((at, compiled));
                }
                Err(misfits) => attempt.misfits.extend(misfits.iter().map(named)),
            }
        }
        attempt
    }

    /// The number of objects that are there.
    fn count(&self, specs: &[&ObjectSpec], memory: &dyn Memory) -> usize {
        let read = |(at, compiled): &(usize, Compiled)| match &self.pointers {
            Some(pointers) => compiled.read_at(&pointers.of(&specs[*at].name), memory).len(),
            None => compiled.read(memory).len(),
        };
        self.compiled.iter().map(read).sum()
    }
}

/// The addresses of globals in the process.
type Addresses = HashMap<String, u64>;

/// The globals of the process.
struct Globals {
    addresses: Addresses,
    /// The files that have any of them, and the program.
    files: Vec<ElfFile>,
}

impl Globals {
    fn find(process: &Process, specs: &[&ObjectSpec], folders: &DebugFolders) -> anyhow::Result<Self> {
        let names = names(specs);
        let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
        let program = process.program().load_symbols()?;
        let mut this = Self { addresses: HashMap::new(), files: Vec::new() };
        this.take(program, process, &wanted, folders, true);
        let libraries = process.libraries();
        for library in libraries.iter().filter_map(|library| FilePlace::load_symbols(library).ok()) {
            this.take(library, process, &wanted, folders, false);
        }
        Ok(this)
    }

    /// Adds the symbols of a file.
    fn take(
        &mut self,
        file: ElfFile,
        process: &Process,
        wanted: &HashSet<&str>,
        folders: &DebugFolders,
        is_program: bool,
    ) {
        let found = addresses(&file, process, wanted, folders);
        if is_program || !found.is_empty() {
            self.files.push(file);
        }
        for (name, address) in found {
            self.addresses.entry(name).or_insert(address);
        }
    }
}

fn addresses(file: &ElfFile, process: &Process, wanted: &HashSet<&str>, folders: &DebugFolders) -> Vec<(String, u64)> {
    let Ok(image) = file.image() else { return Vec::new() };
    let mut symbols = SymbolAddresses::default();
    symbols.search(&image, wanted);
    let is_missing = |name: &&&str| symbols.get(name) == SymbolFound::Missing;
    let missing: HashSet<&str> = wanted.iter().filter(is_missing).copied().collect();
    if !missing.is_empty()
        && let Some(debug) = folders.debug_file(file)
        && let Ok(image) = debug.image()
    {
        symbols.search(&image, &missing);
    }
    let found = wanted.iter().filter_map(|name| match symbols.get(name) {
        SymbolFound::At(vaddr) => Some((*name, vaddr.0)),
        _ => None,
    });
    let found: Vec<_> = found.collect();
    let bias = if found.is_empty() { None } else { bias(file, &image, process) };
    let place = |(name, vaddr): (&str, u64)| Some((name.to_owned(), vaddr.wrapping_add(bias?)));
    found.into_iter().filter_map(place).collect()
}

/// How far behind its own addresses a file is in the process.
fn bias(file: &ElfFile, image: &ElfImage<'_>, process: &Process) -> Option<u64> {
    let segments = image.address_map().segments();
    process.maps().all().iter().filter(|mapping| mapping.file() == Some(file.path())).find_map(|mapping| {
        // A mapping begins with the page that the segment begins in.
        let in_segment = |segment: &&elf::Segment| {
            let end = segment.offset.0.saturating_add(segment.file_size);
            mapping.offset.0 < end && segment.offset.0 - segment.offset.0 % 4096 <= mapping.offset.0
        };
        let segment = segments.iter().find(in_segment)?;
        let first = segment.vaddr.0.wrapping_add(mapping.offset.0).wrapping_sub(segment.offset.0);
        Some(mapping.start.0.wrapping_sub(first))
    })
}

/// The names of the globals that the specs mention: `uaddr("NAME")`.
fn names(specs: &[&ObjectSpec]) -> HashSet<String> {
    let texts = specs.iter().flat_map(|spec| &spec.alive).flat_map(|alive| {
        let values = alive.values.iter().map(|value| &value.expression);
        alive.walk.iter().chain(&alive.check).chain(values)
    });
    let of_text = |text: &str| {
        let parts: Vec<_> = text.split("uaddr(\"").skip(1).filter_map(|part| part.split('"').next()).collect();
        parts.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    texts.flat_map(|located| of_text(&located.text)).collect()
}

/// A file's debug information.
struct Debug {
    file: ElfFile,
    /// The same with its sections inflated, if some were compressed.
    plain: Option<Vec<u8>>,
    name: String,
}

impl Debug {
    /// That of the file itself, or else of the file to which it was moved.
    fn load(file: &ElfFile, folders: &DebugFolders) -> Option<Self> {
        let own = file.place().load_debug().ok().and_then(Self::new);
        own.or_else(|| folders.debug_information(file).and_then(Self::new))
    }

    fn new(file: ElfFile) -> Option<Self> {
        let plain = match typeinfo::inflated(file.image().ok()?.data()).ok()? {
            Cow::Borrowed(_) => None,
            Cow::Owned(plain) => Some(plain),
        };
        let name = printable(file.path());
        let this = Self { file, plain, name };
        let sections = DwarfSections::locate(this.bytes()?).ok()?;
        let has_types = sections.iter().any(|section| section.name == ".debug_info");
        has_types.then_some(this)
    }

    fn bytes(&self) -> Option<&[u8]> {
        let own = || self.file.image().ok().map(|image| image.data());
        self.plain.as_deref().or_else(own)
    }

    fn types(&self) -> Option<TypeStore<'_>> {
        let mut types = TypeStore::new(Arch::HOST);
        types.add_dwarf(Dwarf::new(DwarfSections::from_elf(self.bytes()?).ok()?).ok()?).ok()?;
        Some(types)
    }
}
