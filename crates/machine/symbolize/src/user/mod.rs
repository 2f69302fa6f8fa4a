//! The functions at addresses of processes: from the mappings of a process and the symbol tables of
//! its files. Scripts and stacks of system calls share them.

mod code;
mod folders;
mod jit;
mod lines;
mod logged;
mod recent;
mod table;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use elf::symbols::demangle;
use host::{FilePlace, Pid, Process, VDSO};
use kernel_text::maps::{Backing, Mapping};
use sys::CodeLog;
use text::printable;

use crate::{CodeAt, Symbol, Warn};

pub use folders::DebugFolders;
use jit::JitNames;
use lines::Lines;
use logged::MappingLog;
use recent::LruCache;
use table::Table;

/// Limit on the memory of remembered processes, in bytes.
const PROCESSES: usize = 16 << 20;
/// Limit on the memory of the functions of files, in bytes: those of some hundred programs with
/// their libraries.
const FUNCTIONS: usize = 64 << 20;
/// Limit on the memory of debug information, in bytes: that of a program of some hundred megabytes.
const MAX_DEBUG_BYTES: usize = 512 << 20;
/// Limit on the memory of the names of code that processes make at run time, in bytes.
const JIT_NAMES: usize = 64 << 20;
/// Pause before a process is read again for an address that it did not have, as a multiple of the
/// duration of the last read: stacks without frame pointers are full of such addresses, and a
/// process of thousands of threads takes milliseconds to read.
const RETRY_FACTOR: u32 = 10;
/// Number of first reads without that pause: a process that has just started has not mapped its
/// libraries yet, and a stack is cut at an address outside any code.
const EARLY_READS: u8 = 8;

/// Options of look-ups.
#[derive(Clone, Debug, Default)]
pub struct SymbolOptions {
    /// True to show names as their authors wrote them, not as the compiler encoded them.
    pub demangle: bool,
    /// Limit on the total time for source lines, and with them inlined functions; `None` to leave
    /// them out.
    pub lines: Option<Duration>,
    /// Files with user probes, which are searched for the functions of ended processes.
    pub probed: Vec<PathBuf>,
    /// Further directories of debug files.
    pub folders: DebugFolders,
}

/// Symbols of processes. Files and processes are read when they are first asked for. The least
/// recently used ones are forgotten if they would take too much memory.
pub struct UserSymbols {
    options: SymbolOptions,
    warn: Warn,
    /// Time that source lines have taken.
    spent: Cell<Duration>,
    processes: RefCell<LruCache<u32, CachedProcess>>,
    files: RefCell<LruCache<FileName, Table>>,
    /// Source lines of files, by our names of them; `None` if a file has none.
    debug: RefCell<LruCache<FilePlace, Option<Lines>>>,
    /// Names of code that processes make at run time.
    jit: RefCell<LruCache<u32, JitNames>>,
    /// Earlier states of processes: see [`UserSymbols::adopt`].
    adopted: RefCell<HashMap<u32, Vec<Process>>>,
    /// Log of mappings: see [`UserSymbols::read_log`].
    logged: RefCell<Option<MappingLog>>,
    /// Files without names: see [`UserSymbols::stripped_files`].
    stripped: RefCell<BTreeSet<PathBuf>>,
}

/// A file by its path and its inode number, which is 0 if unknown: containers have different files
/// of a name.
type FileName = (PathBuf, u64);

/// A process as it was when it was read.
struct CachedProcess {
    /// `None` if it was gone.
    process: Option<Process>,
    /// Time from which it is worth reading again.
    stale: Instant,
    /// Number of reads that are left without a pause.
    early: u8,
}

impl CachedProcess {
    fn read(pid: u32, early: u8) -> Self {
        let start = Instant::now();
        let process = Process::open(Pid(pid)).ok();
        let now = Instant::now();
        Self {
            process,
            stale: now + (now - start) * RETRY_FACTOR,
            early,
        }
    }

    fn may_be_read_again(&self) -> bool {
        self.early > 0 || Instant::now() >= self.stale
    }

    /// Returns the memory that it takes, in bytes.
    fn memory(&self) -> usize {
        let mappings = self
            .process
            .as_ref()
            .map_or(&[][..], |process| process.maps().all());
        let paths = mappings
            .iter()
            .map(|mapping| mapping.file().map_or(0, |path| path.as_os_str().len()));
        size_of::<Self>() + size_of_val(mappings) + paths.sum::<usize>()
    }
}

impl UserSymbols {
    /// Creates it; nothing is read yet. Warnings are given at most once for each file.
    pub fn new(options: SymbolOptions, warn: Warn) -> Self {
        Self {
            options,
            warn,
            spent: Cell::default(),
            processes: RefCell::new(LruCache::new(PROCESSES)),
            files: RefCell::new(LruCache::new(FUNCTIONS)),
            debug: RefCell::new(LruCache::new(MAX_DEBUG_BYTES)),
            jit: RefCell::new(LruCache::new(JIT_NAMES)),
            adopted: RefCell::default(),
            logged: RefCell::default(),
            stripped: RefCell::default(),
        }
    }

    /// Returns the files, escaped, in which an address has no name because they have no names of
    /// their own functions, and no debug file here.
    pub fn stripped_files(&self) -> Vec<String> {
        self.stripped.borrow().iter().map(printable::path).collect()
    }

    /// Finds the symbols of processes that are gone, or have another program now, in this log, too.
    pub fn read_log(&self, log: CodeLog) {
        *self.logged.borrow_mut() = Some(MappingLog::new(log));
    }

    /// Returns the code at an address of a process. The address of a `caller` in a stack is the one
    /// where it goes on, so the code at its call is returned: a call that never returns can be the
    /// last instruction of a function.
    pub fn code(&self, pid: u32, address: u64, caller: bool) -> CodeAt {
        let found = self.code_now(pid, address, caller);
        let mut logged = self.logged.borrow_mut();
        let Some(logged) = &mut *logged else {
            return found;
        };
        logged.read();
        if matches!(found, CodeAt::Functions(_)) {
            return found;
        }
        let is_gone = matches!(found, CodeAt::Unknown);
        match logged
            .process(pid)
            .map(|process| self.in_process(&process, address, caller))
        {
            Some(code @ CodeAt::Functions(_)) => code,
            Some(CodeAt::NotCode) if logged.has_lost => found,
            Some(code) if is_gone => code,
            _ => found,
        }
    }

    /// Finds the same in the present mappings of the process, or in those of the last read.
    fn code_now(&self, pid: u32, address: u64, caller: bool) -> CodeAt {
        let cached = self.cached(pid);
        let Some(known) = &cached.process else {
            return self.in_probed(address, caller);
        };
        let found = self.in_process(known, address, caller);
        if matches!(found, CodeAt::Functions(_)) || !cached.may_be_read_again() {
            return found;
        }
        // It may have mapped more since, or run another program.
        let fresh = Rc::new(CachedProcess::read(pid, cached.early.saturating_sub(1)));
        self.keep(pid, &fresh);
        match (&fresh.process, found) {
            (Some(process), _) => self.in_process(process, address, caller),
            (None, CodeAt::NotCode) => CodeAt::Unknown,
            (None, found) => found,
        }
    }

    /// Finds the same in the mappings that were last remembered, or in those of another time
    /// ([`Self::adopt`]).
    pub fn known_code(&self, pid: u32, address: u64, caller: bool) -> CodeAt {
        let found = match &self.cached(pid).process {
            Some(process) => self.in_process(process, address, caller),
            None => CodeAt::Unknown,
        };
        if matches!(found, CodeAt::Functions(_)) {
            return found;
        }
        let adopted = self.adopted.borrow();
        let earlier = adopted.get(&pid).into_iter().flatten().rev();
        let mut named = earlier.map(|process| self.in_process(process, address, caller));
        named
            .find(|code| matches!(code, CodeAt::Functions(_)))
            .unwrap_or(found)
    }

    /// Keeps the mappings of a process at some time, for addresses without a name when it was last
    /// remembered: it closed a library since, or ended before it was read again.
    pub fn adopt(&self, pid: u32, process: Process) {
        self.adopted
            .borrow_mut()
            .entry(pid)
            .or_default()
            .push(process);
    }

    /// Reads the present mappings of a process, so that its symbols can be found when it has ended.
    pub fn remember(&self, pid: u32) {
        self.keep(pid, &Rc::new(CachedProcess::read(pid, EARLY_READS)));
    }

    /// Remembers a process as it is now, unless it is gone: then its earlier state is worth more.
    fn keep(&self, pid: u32, cached: &Rc<CachedProcess>) {
        if cached.process.is_some() {
            self.processes
                .borrow_mut()
                .insert(pid, Rc::clone(cached), cached.memory());
        }
    }

    fn cached(&self, pid: u32) -> Rc<CachedProcess> {
        let known = self.processes.borrow_mut().get(&pid);
        known.unwrap_or_else(|| {
            let cached = Rc::new(CachedProcess::read(pid, EARLY_READS));
            self.processes
                .borrow_mut()
                .insert(pid, Rc::clone(&cached), cached.memory());
            cached
        })
    }

    /// Returns the functions of a file at an offset in it: one, and those that were inlined there
    /// if lines are wanted.
    fn symbol(&self, table: &Table, offset: u64, path: &Path) -> Option<Vec<Symbol>> {
        let found = table.at(offset)?;
        let module = Some(path.display().to_string());
        let own = Symbol {
            name: self.shown(found.name),
            offset: found.distance,
            module,
            ..Symbol::default()
        };
        let debug = table
            .debug
            .as_ref()
            .filter(|_| self.options.lines.is_some() && !self.is_time_up());
        let Some(debug) = debug else {
            return Some(vec![own]);
        };
        let start = Instant::now();
        let symbols = match &*self.lines_of(debug) {
            Some(lines) => lines.frames(own, found.vaddr, |name| self.shown(name)),
            None => vec![own],
        };
        self.spent.set(self.spent.get() + start.elapsed());
        Some(symbols)
    }

    fn lines_of(&self, place: &FilePlace) -> Rc<Option<Lines>> {
        let known = self.debug.borrow_mut().get(place);
        known.unwrap_or_else(|| {
            let lines = Rc::new(Lines::read(place, &self.warn));
            let memory = lines.as_ref().as_ref().map_or(0, Lines::memory);
            self.debug.borrow_mut().insert(
                place.clone(),
                Rc::clone(&lines),
                memory + size_of::<Lines>(),
            );
            lines
        })
    }

    /// Returns a name in the requested form: as its author wrote it, or as the compiler did.
    fn shown(&self, name: &str) -> String {
        let demangled = if self.options.demangle {
            demangle(name)
        } else {
            None
        };
        demangled.unwrap_or_else(|| name.to_owned())
    }

    /// Returns true if the time for lines is up: addresses since then have their function only.
    pub fn is_time_up(&self) -> bool {
        self.options
            .lines
            .is_some_and(|most| self.spent.get() >= most)
    }

    fn table(&self, process: &Process, path: &Path, inode: u64) -> Rc<Table> {
        self.table_of(path, inode, || {
            let program = process.program();
            let place = if program.path() == path {
                Some(program)
            } else {
                process
                    .libraries()
                    .into_iter()
                    .find(|place| place.path() == path)
            };
            let own = place.and_then(|place| Table::read(&place, &self.options.folders));
            // The process may be gone, and its files with it in /proc; the path is most often still
            // that file.
            own.or_else(|| Table::read(&FilePlace::reported(path, inode), &self.options.folders))
        })
    }

    fn table_of(&self, path: &Path, inode: u64, read: impl FnOnce() -> Option<Table>) -> Rc<Table> {
        let name = (path.to_owned(), inode);
        let known = self.files.borrow_mut().get(&name);
        known.unwrap_or_else(|| {
            let table = Rc::new(read().unwrap_or_default());
            self.files
                .borrow_mut()
                .insert(name, Rc::clone(&table), table.memory());
            table
        })
    }
}

/// Returns true if a mapping is the kernel's own library.
pub(crate) fn is_vdso(mapping: &Mapping) -> bool {
    matches!(&mapping.backing, Backing::Special(name) if name == VDSO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn named_here() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn mappings_of_another_time_have_names() {
        let (symbols, nobody) = (
            UserSymbols::new(SymbolOptions::default(), crate::ignore()),
            u32::MAX,
        );
        let address = named_here as *const () as u64;
        assert_eq!(named_here(), 7);
        assert!(!matches!(
            symbols.known_code(nobody, address, false),
            CodeAt::Functions(_)
        ));
        symbols.adopt(nobody, Process::open(Pid(std::process::id())).unwrap());
        let CodeAt::Functions(found) = symbols.known_code(nobody, address, false) else {
            panic!("no function")
        };
        assert!(found[0].name.contains("named_here"), "{found:?}");
    }
}
