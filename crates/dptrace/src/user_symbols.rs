//! The functions behind addresses of processes: from what a process has mapped and from its files' symbol tables. Scripts
//! and stacks of system calls share it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use addr2line::Loader;
use bt_runtime::{SourcePlace, Symbol};
use host::{ElfFile, FilePlace, Pid, Process, VDSO};
use probes::ProcAddr;
use probes::elf::{ElfImage, ElfKind};
use probes::maps::{Backing, Mapping};
use probes::symbols::{Functions, demangle};

/// Where the kernel puts position-independent programs of x86-64 that are not randomized: two thirds of the address
/// space, `ELF_ET_DYN_BASE` of `arch/x86/include/asm/elf.h`.
const PLAIN_BASE: u64 = 0x5555_5555_4000;
/// How many processes are remembered.
const MAX_PROCESSES: usize = 4096;
/// A process is looked at again for an address that it did not have after so many times what the last look took: stacks
/// without frame pointers are full of such addresses, and a process of thousands of threads takes milliseconds to look at.
const LOOK_AGAIN: u32 = 10;

/// The folders of `--debuginfo`, where debug files are looked for that are not where they belong.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugFolders(pub(crate) Vec<PathBuf>);

impl DebugFolders {
    /// The file that a file's debug information was moved to: where it belongs, or else `NAME.debug` in one of the folders.
    /// A folder that is not absolute may be meant from the file's own, as in other tools. A debug file of another build is
    /// none, where both say which they are of.
    pub(crate) fn debug_file(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_file().or_else(|| {
            let mut name = file.path().file_name()?.to_owned();
            name.push(".debug");
            let beside = file.path().parent().unwrap_or(Path::new(""));
            let folders = self.0.iter().flat_map(|folder| [folder.clone(), beside.join(folder)]);
            let id = |file: &ElfFile| Some(file.image().ok()?.build_id()?.to_string());
            let wanted = id(file);
            let mut found = folders.filter_map(|folder| FilePlace::at(&folder.join(&name)).load().ok());
            found.find(|debug| wanted.is_none() || id(debug).is_none_or(|id| Some(id) == wanted))
        })
    }
}

/// Symbols of processes; files and processes are read when they are first asked for.
pub(crate) struct UserSymbols {
    demangle: bool,
    /// How long source files and lines, and with them inlined functions, may be looked for in all; none if they are not
    /// wanted.
    lines: Option<Duration>,
    /// How long that has taken.
    spent: Cell<Duration>,
    /// The files that user probes are in: where the functions of processes are looked for that are gone.
    probed: Vec<PathBuf>,
    folders: DebugFolders,
    processes: RefCell<HashMap<u32, Rc<Look>>>,
    files: RefCell<HashMap<PathBuf, Rc<Table>>>,
}

/// What was seen of a process.
struct Look {
    /// None if it was gone.
    process: Option<Process>,
    /// When it is worth another look.
    stale: Instant,
}

impl Look {
    fn at(pid: u32) -> Self {
        let began = Instant::now();
        let process = Process::open(Pid(pid)).ok();
        let now = Instant::now();
        Self { process, stale: now + (now - began) * LOOK_AGAIN }
    }
}

/// A file's functions.
#[derive(Default)]
struct Table {
    /// In the order of their places.
    functions: Vec<Function>,
    /// The file, by a name that we can open.
    opened: PathBuf,
    /// Its source lines, read when they are first asked for.
    lines: OnceCell<Option<Loader>>,
}

/// A function of a file.
struct Function {
    /// Where it begins, as an offset in the file.
    offset: u64,
    /// Its address in the file's own terms.
    vaddr: u64,
    /// Its bytes; 0 if that is not known.
    size: u64,
    name: String,
}

impl UserSymbols {
    pub(crate) fn new(demangle: bool, lines: Option<Duration>, probed: Vec<PathBuf>, folders: DebugFolders) -> Self {
        Self {
            demangle,
            lines,
            spent: Cell::default(),
            probed,
            folders,
            processes: RefCell::default(),
            files: RefCell::default(),
        }
    }

    /// The functions at an address of a process, the innermost first.
    pub(crate) fn at(&self, pid: u32, address: u64) -> Option<Vec<Symbol>> {
        let look = self.look(pid);
        let Some(known) = &look.process else { return self.in_probed(address) };
        self.in_process(known, address).or_else(|| {
            // It may have mapped more since, or run another program.
            if Instant::now() < look.stale {
                return None;
            }
            let fresh = Rc::new(Look::at(pid));
            if fresh.process.is_some() {
                self.processes.borrow_mut().insert(pid, Rc::clone(&fresh));
            }
            self.in_process(fresh.process.as_ref()?, address)
        })
    }

    /// The same, as it was when it was last remembered: the process is not looked at again for what it mapped since.
    pub(crate) fn known_at(&self, pid: u32, address: u64) -> Option<Vec<Symbol>> {
        self.in_process(self.look(pid).process.as_ref()?, address)
    }

    /// Looks at a process while it is there.
    pub(crate) fn remember(&self, pid: u32) {
        let look = Look::at(pid);
        if look.process.is_some() {
            self.processes.borrow_mut().insert(pid, Rc::new(look));
        }
    }

    fn look(&self, pid: u32) -> Rc<Look> {
        let mut processes = self.processes.borrow_mut();
        if processes.len() >= MAX_PROCESSES {
            processes.clear();
        }
        Rc::clone(processes.entry(pid).or_insert_with(|| Rc::new(Look::at(pid))))
    }

    /// The function at an address of a process that is gone, in the files that probes are in: where they are at fixed
    /// addresses, by themselves or for want of randomization.
    fn in_probed(&self, address: u64) -> Option<Vec<Symbol>> {
        self.probed.iter().find_map(|path| {
            let file = FilePlace::at(path);
            let (table, offset) = {
                let loaded = file.load_notes().ok()?;
                let image = loaded.image().ok()?;
                let base = if image.kind() == ElfKind::Fixed { 0 } else { PLAIN_BASE };
                let vaddr = probes::ElfVaddr(address.checked_sub(base)?);
                (self.table_of(path, || Table::read(&file, &self.folders)), image.address_map().to_offset(vaddr).ok()?)
            };
            self.symbol(&table, offset.0, path)
        })
    }

    fn in_process(&self, process: &Process, address: u64) -> Option<Vec<Symbol>> {
        if let Some(mapping) = process.maps().at(ProcAddr(address)).filter(|mapping| is_vdso(mapping)) {
            let path = Path::new(VDSO);
            return self.symbol(&self.table_of(path, Table::vdso), address - mapping.start.0, path);
        }
        let (mapping, offset) = process.maps().to_file(ProcAddr(address))?;
        let path = mapping.file()?;
        self.symbol(&self.table(process, path), offset.0, path)
    }

    /// The functions of a file at an offset in it: one, and those that were inlined there where lines are wanted.
    fn symbol(&self, table: &Table, offset: u64, path: &Path) -> Option<Vec<Symbol>> {
        let above = table.functions.partition_point(|function| function.offset <= offset);
        let Function { offset: start, vaddr, size, name } = table.functions[..above].last()?;
        let distance = offset - start;
        // A symbol without a length goes to the next one.
        if *size != 0 && distance >= *size {
            return None;
        }
        let name = self.shown(name);
        let module = Some(path.display().to_string());
        let own = Symbol { name, offset: distance, module, ..Symbol::default() };
        if self.lines.is_none() || self.is_time_up() {
            return Some(vec![own]);
        }
        let begun = Instant::now();
        let found = table.with_lines(own, vaddr + distance, |name| self.shown(name));
        self.spent.set(self.spent.get() + begun.elapsed());
        Some(found)
    }

    /// A name as it is wanted: as its author wrote it, or as the compiler did.
    fn shown(&self, name: &str) -> String {
        let demangled = if self.demangle { demangle(name) } else { None };
        demangled.unwrap_or_else(|| name.to_owned())
    }

    /// Whether the time for lines is up: addresses since then have their function only.
    pub(crate) fn is_time_up(&self) -> bool {
        self.lines.is_some_and(|most| self.spent.get() >= most)
    }

    /// The file that a process has mapped at an address, and the offset in it.
    pub(crate) fn place(&self, pid: u32, address: u64) -> Option<(PathBuf, u64)> {
        let look = self.look(pid);
        let (mapping, offset) = look.process.as_ref()?.maps().to_file(ProcAddr(address))?;
        Some((mapping.file()?.to_owned(), offset.0))
    }

    fn table(&self, process: &Process, path: &Path) -> Rc<Table> {
        self.table_of(path, || {
            let program = process.program();
            let place = if program.path() == path {
                Some(program)
            } else {
                process.libraries().into_iter().find(|place| place.path() == path)
            };
            let own = place.and_then(|place| Table::read(&place, &self.folders));
            // The process may be gone, and its files with it in /proc; the path is most often still that file.
            own.or_else(|| Table::read(&FilePlace::at(path), &self.folders))
        })
    }

    fn table_of(&self, path: &Path, read: impl FnOnce() -> Option<Table>) -> Rc<Table> {
        if let Some(known) = self.files.borrow().get(path) {
            return Rc::clone(known);
        }
        let table = Rc::new(read().unwrap_or_default());
        self.files.borrow_mut().insert(path.to_owned(), Rc::clone(&table));
        table
    }
}

impl Table {
    fn read(place: &FilePlace, folders: &DebugFolders) -> Option<Self> {
        let file = place.load().ok()?;
        let debug = folders.debug_file(&file);
        let debug_image = debug.as_ref().and_then(|debug| debug.image().ok());
        // Where there is a debug file, the source's lines were moved to it.
        let opened = debug.as_ref().map_or(file.opened(), ElfFile::opened).to_owned();
        Some(Self::of(&Functions::read(&file.image().ok()?, debug_image.as_ref()), opened))
    }

    /// The kernel's own library.
    fn vdso() -> Option<Self> {
        let bytes = host::vdso()?;
        Some(Self::of(&Functions::read(&ElfImage::parse(&bytes).ok()?, None), PathBuf::new()))
    }

    fn of(functions: &Functions<'_>, opened: PathBuf) -> Self {
        let function = |function: &probes::symbols::Function<'_>| Function {
            offset: function.offset.0,
            vaddr: function.vaddr.0,
            size: function.size,
            name: function.name.clone().into_owned(),
        };
        let mut functions: Vec<Function> = functions.all().iter().map(function).collect();
        // Of several names of a place the last one is shown: that of the longest function.
        functions.sort_by_key(|function| (function.offset, function.size));
        Self { functions, opened, lines: OnceCell::new() }
    }

    /// A function with its source's line, behind those that were inlined at this address.
    fn with_lines(&self, mut own: Symbol, vaddr: u64, shown: impl Fn(&str) -> String) -> Vec<Symbol> {
        let loader = self.lines.get_or_init(|| Loader::new(&self.opened).ok());
        let mut frames = Vec::new();
        if let Some(mut found) = loader.as_ref().and_then(|loader| loader.find_frames(vaddr).ok()) {
            while let Ok(Some(frame)) = found.next() {
                let place = frame.location.and_then(|location| {
                    Some(SourcePlace { file: location.file?.to_owned(), line: location.line.unwrap_or_default() })
                });
                let name =
                    frame.function.as_ref().and_then(|function| function.raw_name().ok().map(|name| shown(&name)));
                frames.push((name.unwrap_or_else(|| "?".to_owned()), place));
            }
        }
        own.place = frames.pop().and_then(|(_, place)| place);
        let inlined = |(name, place)| Symbol { name, place, inlined: true, ..Symbol::default() };
        frames.into_iter().map(inlined).chain([own]).collect()
    }
}

/// Whether a mapping is the kernel's own library.
pub(crate) fn is_vdso(mapping: &Mapping) -> bool {
    matches!(&mapping.backing, Backing::Special(name) if name == VDSO)
}
