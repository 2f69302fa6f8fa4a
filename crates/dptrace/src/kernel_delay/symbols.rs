//! What the addresses of stacks are called.

use std::cell::RefCell;
use std::collections::HashMap;

use host::{FilePlace, Pid, Process};
use kernel_delay::Symbols;
use probes::symbols::Functions;

/// Names of the kernel's functions and of a process's.
pub(super) struct Names {
    /// By address: `/proc/kallsyms`, which shows no addresses to those who may not see them.
    kernel: Vec<(u64, String)>,
    mappings: Vec<Mapped>,
    files: Vec<(String, FilePlace)>,
    /// The functions of a file, read when they are first asked for.
    functions: RefCell<HashMap<usize, Vec<Named>>>,
}

/// A function: its offset in its file, its length, its name.
type Named = (u64, u64, String);

/// A piece of a process's memory that is a file's.
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    file: usize,
}

impl Names {
    /// Reads the kernel's names, and what the process has mapped now.
    pub(super) fn read(pid: u32) -> Self {
        let mut names =
            Self { kernel: kernel(), mappings: Vec::new(), files: Vec::new(), functions: RefCell::default() };
        if let Ok(process) = Process::open(Pid(pid)) {
            names.map(&process);
        }
        names
    }

    fn map(&mut self, process: &Process) {
        let places = std::iter::once(process.program()).chain(process.libraries());
        self.files = places.map(|place| (place.path().display().to_string(), place)).collect();
        for mapping in process.maps().all() {
            let path = mapping.file().map(|path| path.display().to_string());
            let file = path.and_then(|path| self.files.iter().position(|(known, _)| *known == path));
            if let Some(file) = file.filter(|_| mapping.permissions.execute) {
                let (start, end) = (mapping.start.0, mapping.end.0);
                self.mappings.push(Mapped { start, end, offset: mapping.offset.0, file });
            }
        }
    }

    /// The function at an offset, shown for a place so much further.
    fn in_file(&self, file: usize, offset: u64, further: u64) -> Option<String> {
        let mut all = self.functions.borrow_mut();
        let functions = all.entry(file).or_insert_with(|| functions(&self.files[file].1));
        let after = functions.partition_point(|(start, _, _)| *start <= offset);
        let (start, length, name) = functions.get(after.checked_sub(1)?)?;
        let inside = offset - start < (*length).max(1);
        inside.then(|| format!("{name}+{:#x}", offset - start + further))
    }
}

/// How the functions begin that stand between a tracepoint and us in a stack: they tell nothing.
const OURS: [&str; 4] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];

impl Symbols for Names {
    fn kernel(&self, address: u64) -> Vec<String> {
        let after = self.kernel.partition_point(|(start, _)| *start <= address);
        let found = after.checked_sub(1).and_then(|index| self.kernel.get(index));
        if found.is_some_and(|(_, name)| OURS.iter().any(|ours| name.starts_with(ours))) {
            return Vec::new();
        }
        vec![found.map_or_else(
            || format!("[unknown] {address:#x} [kernel]"),
            |(start, name)| match name.split_once('\t') {
                Some((name, module)) => format!("{name}+{:#x} {module}", address - start),
                None => format!("{name}+{:#x} [kernel]", address - start),
            },
        )]
    }

    fn user(&self, address: u64, caller: bool) -> Vec<String> {
        let at = if caller { address.saturating_sub(1) } else { address };
        let inside = |mapped: &&Mapped| (mapped.start..mapped.end).contains(&at);
        let Some(mapped) = self.mappings.iter().find(inside) else {
            return vec![format!("[unknown] {address:#x}")];
        };
        let path = &self.files[mapped.file].0;
        let module = spdk_trace::printable(path.rsplit('/').next().unwrap_or(path).as_bytes()).into_owned();
        let offset = at - mapped.start + mapped.offset;
        vec![match self.in_file(mapped.file, offset, address - at) {
            Some(name) => format!("{name} [{module}]"),
            None => format!("[unknown] {address:#x} [{module}+{:#x}]", offset + (address - at)),
        }]
    }
}

/// `/proc/kallsyms`: address, kind, name, and for a module's symbol a tab and the module in brackets.
fn kernel() -> Vec<(u64, String)> {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let line = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        let (kind, name) = rest.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        (address != 0 && matches!(kind, "t" | "T" | "w" | "W")).then(|| (address, name.to_owned()))
    };
    let mut names: Vec<(u64, String)> = text.lines().filter_map(line).collect();
    names.sort_by_key(|(address, _)| *address);
    names
}

fn functions(place: &FilePlace) -> Vec<Named> {
    let Ok(file) = place.load() else { return Vec::new() };
    let Ok(image) = file.image() else { return Vec::new() };
    let debug = file.debug_file();
    let debug = debug.as_ref().and_then(|debug| debug.image().ok());
    let functions = Functions::read(&image, debug.as_ref());
    let one = |function: &probes::symbols::Function<'_>| {
        let name = function.display_name();
        // A version of a symbol is for the linker.
        let name = name.split_once('@').map_or(&*name, |(name, _)| name);
        (function.offset.0, function.size, spdk_trace::printable(name.as_bytes()).into_owned())
    };
    functions.all().iter().map(one).collect()
}
