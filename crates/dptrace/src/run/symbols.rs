//! The functions behind addresses of processes: from what a process has mapped and from its files' symbol tables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bt_runtime::Symbol;
use host::{FilePlace, Pid, Process};
use probes::ProcAddr;
use probes::symbols::{Functions, demangle};

/// How many processes are remembered.
const MAX_PROCESSES: usize = 4096;

/// Symbols of processes; files and processes are read when they are first asked for.
pub(super) struct UserSymbols {
    demangle: bool,
    processes: RefCell<HashMap<u32, Option<Rc<Process>>>>,
    files: RefCell<HashMap<PathBuf, Rc<Table>>>,
}

/// A file's functions: offset in the file, length, name; in order.
#[derive(Default)]
struct Table {
    functions: Vec<(u64, u64, String)>,
}

impl UserSymbols {
    pub(super) fn new(demangle: bool) -> Self {
        Self { demangle, processes: RefCell::default(), files: RefCell::default() }
    }

    /// Looks at what a process has mapped.
    pub(super) fn remember(&self, pid: u32) {
        if self.processes.borrow().len() < MAX_PROCESSES {
            self.process(pid);
        }
    }

    /// The function at an address of a process.
    pub(super) fn at(&self, pid: u32, address: u64) -> Option<Symbol> {
        let known = self.process(pid)?;
        self.in_process(&known, address).or_else(|| {
            // It may have mapped more since, or run another program.
            let fresh = Rc::new(Process::open(Pid(pid)).ok()?);
            self.processes.borrow_mut().insert(pid, Some(Rc::clone(&fresh)));
            self.in_process(&fresh, address)
        })
    }

    fn process(&self, pid: u32) -> Option<Rc<Process>> {
        let look = || Process::open(Pid(pid)).ok().map(Rc::new);
        self.processes.borrow_mut().entry(pid).or_insert_with(look).clone()
    }

    fn in_process(&self, process: &Process, address: u64) -> Option<Symbol> {
        let (mapping, offset) = process.maps().to_file(ProcAddr(address))?;
        let path = mapping.file()?;
        let table = self.table(process, path);
        let above = table.functions.partition_point(|function| function.0 <= offset.0);
        let (start, size, name) = table.functions[..above].last()?;
        let distance = offset.0 - start;
        // A symbol without a length goes to the next one.
        if *size != 0 && distance >= *size {
            return None;
        }
        let shown = if self.demangle { demangle(name) } else { None };
        let name = shown.unwrap_or_else(|| name.clone());
        let module = Some(path.display().to_string());
        Some(Symbol { name, offset: distance, module, ..Symbol::default() })
    }

    fn table(&self, process: &Process, path: &Path) -> Rc<Table> {
        if let Some(known) = self.files.borrow().get(path) {
            return Rc::clone(known);
        }
        let program = process.program();
        let place = if program.path() == path {
            Some(program)
        } else {
            process.libraries().into_iter().find(|place| place.path() == path)
        };
        let own = place.and_then(|place| Table::read(&place));
        // The process may be gone, and its files with it in /proc; the path is most often still that file.
        let table = Rc::new(own.or_else(|| Table::read(&FilePlace::at(path))).unwrap_or_default());
        self.files.borrow_mut().insert(path.to_owned(), Rc::clone(&table));
        table
    }
}

impl Table {
    fn read(place: &FilePlace) -> Option<Self> {
        let file = place.load().ok()?;
        let debug = file.debug_file();
        let debug_image = debug.as_ref().and_then(|debug| debug.image().ok());
        let functions = Functions::read(&file.image().ok()?, debug_image.as_ref());
        let mut functions: Vec<_> = functions
            .all()
            .iter()
            .map(|function| (function.offset.0, function.size, function.name.clone().into_owned()))
            .collect();
        // Of several names of a place the last one found is shown: the longest, and among those the global ones.
        functions.sort_by_key(|function| (function.0, function.1));
        Some(Self { functions })
    }
}
