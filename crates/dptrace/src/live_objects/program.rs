//! What must be known of a process before its objects can be found: where its globals are, and how its structs are laid out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use alive::{Cached, Compiled, Misfit, Program};
use elf::ElfImage;
use elf::symbols::{SymbolAddresses, SymbolFound};
use host::{ElfFile, FilePlace, Pid, Process, ProcessMemory};
use live_memory::{Limited, Limits};
use objects::{ObjectSpec, layouts};
use screen::counted;
use symbolize::DebugFolders;
use typeinfo::{Arch, Dwarf, DwarfSections, TypeStore};

use crate::target::printable;

/// What the specs come down to for a process.
pub(super) struct Sources {
    /// By the places of the specs: how their objects are found.
    pub(super) compiled: Vec<(usize, Compiled)>,
    /// How the layout of the structs is known.
    pub(super) source: String,
    /// Specs that could not be used, and why.
    pub(super) misfits: Vec<String>,
    /// Whether only addresses that are known from elsewhere can be looked at.
    pub(super) of_pointers: bool,
}

/// Finds out how the objects of these specs are found in a process. `pointers` are addresses at which objects of the same specs
/// may be: if there is no other way, these are looked at.
pub(super) fn compile(
    pid: u32,
    specs: &[&ObjectSpec],
    debug_dirs: &[PathBuf],
    memory: &ProcessMemory,
    pointers: &[Vec<u64>],
) -> anyhow::Result<Sources> {
    let process = Process::open(Pid(pid))?;
    let folders = DebugFolders(debug_dirs.to_vec());
    let judges = objects::built_in()?;
    let all = with_judges(specs, &judges);
    let globals = Globals::find(&process, &all, &folders)?;
    let mut best = Attempt::default();
    for file in &globals.files {
        let Some(debug) = Debug::load(file, &folders) else { continue };
        let Some(types) = debug.types() else { continue };
        let attempt = Attempt::new(specs, &types, &globals, false);
        if attempt.compiled.len() > best.compiled.len() {
            best = Attempt { source: format!("the debug information of {}", debug.name), ..attempt };
        }
    }
    if best.compiled.is_empty() {
        best = by_layout((specs, &all), &globals, memory, None, best);
    }
    if best.compiled.is_empty() && pointers.iter().any(|pointers| !pointers.is_empty()) {
        best = by_layout((specs, specs), &globals, memory, Some(pointers), best);
    }
    let Attempt { compiled, misfits, source, of_pointers } = best;
    Ok(Sources { compiled, source, misfits, of_pointers })
}

/// These specs, and behind them the built-in ones that they lack. One kind of objects can look right with the layout of another
/// version; all together do not.
fn with_judges<'s>(specs: &[&'s ObjectSpec], judges: &'s [ObjectSpec]) -> Vec<&'s ObjectSpec> {
    let is_new = |judge: &&ObjectSpec| !judge.alive.is_empty() && specs.iter().all(|spec| spec.name != judge.name);
    specs.iter().copied().chain(judges.iter().filter(is_new)).collect()
}

/// The layout of those that are built in by which most objects of all `judges` are found: what does not meet the conditions of the
/// specs does not count. Of several, that of the program's own version is taken, if it has one, else the newest.
fn by_layout(
    (specs, judges): (&[&ObjectSpec], &[&ObjectSpec]),
    globals: &Globals,
    memory: &ProcessMemory,
    pointers: Option<&[Vec<u64>]>,
    without: Attempt,
) -> Attempt {
    let (mut best, mut most) = (without, 0);
    // All look at one state of the memory: a connection that comes meanwhile must not make one of them better.
    let cached = Cached::new(Limited::new(memory, Limits::default()));
    let stated = globals.files.iter().find_map(stated_version);
    let others = layouts::versions().into_iter().rev().filter(|version| Some(*version) != stated);
    for version in stated.into_iter().chain(others) {
        let mut types = TypeStore::new(Arch::HOST);
        if alive::define(&layouts::layout_text(version), &mut types).is_err() {
            continue;
        }
        let trial = Attempt::new(judges, &types, globals, pointers.is_some());
        let read = |(at, compiled): &(usize, Compiled)| match pointers {
            Some(pointers) => compiled.read_at(&pointers[*at], &cached).len(),
            None => compiled.read(&cached).len(),
        };
        let found: usize = trial.compiled.iter().map(read).sum();
        if found <= most && !best.compiled.is_empty() {
            continue;
        }
        let attempt = Attempt::new(specs, &types, globals, pointers.is_some());
        if found > most || !attempt.compiled.is_empty() {
            most = found;
            let way = if pointers.is_some() { " at the addresses that the trace has" } else { "" };
            let source = format!(
                "the layout of SPDK {version}, by which {} meet all conditions{way}",
                counted(found as u64, "object")
            );
            best = Attempt { source, ..attempt };
        }
    }
    // Without any object there, nothing shows that a layout is right.
    if pointers.is_some() && most == 0 { Attempt::default() } else { best }
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
    of_pointers: bool,
}

impl Attempt {
    fn new(specs: &[&ObjectSpec], types: &TypeStore<'_>, globals: &Globals, of_pointers: bool) -> Self {
        let mut attempt = Self { of_pointers, ..Self::default() };
        let program = Program { types, globals: &|name| globals.addresses.get(name).copied() };
        for (at, spec) in specs.iter().enumerate() {
            let named = |misfit: &Misfit| format!("{}: {misfit}", spec.name);
            let compile = if of_pointers { Compiled::of_pointers } else { alive::compile };
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
}

/// The addresses of globals in the process.
struct Globals {
    addresses: HashMap<String, u64>,
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
