//! What the addresses of stacks are called.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use bt_runtime::{SourcePlace, Symbol};
use kernel_delay::Symbols;

use crate::user_symbols::{DebugFolders, UserSymbols};

/// How long inlined functions and source lines may be looked for in a report: a large program's debug information takes a
/// second and more, and what is read of it stays in memory.
const LINES: Duration = Duration::from_secs(5);

/// Names of the kernel's functions and of a process's.
pub(super) struct Names {
    pid: u32,
    /// By address: `/proc/kallsyms`, which shows no addresses to those who may not see them.
    kernel: OnceCell<Vec<(u64, String)>>,
    user: UserSymbols,
    /// What is known already: the outer functions of most stacks are the same.
    known: RefCell<HashMap<(u64, bool), Vec<String>>>,
}

impl Names {
    /// Looks at what the process has mapped now. Nothing else is read before it is asked for.
    pub(super) fn of(pid: u32) -> Self {
        let user = UserSymbols::new(true, Some(LINES), Vec::new(), DebugFolders::default());
        user.remember(pid);
        Self { pid, kernel: OnceCell::new(), user, known: RefCell::default() }
    }

    /// Looks again; if it is gone, what was seen before stays.
    pub(super) fn renew(&self) {
        self.user.remember(self.pid);
    }

    /// Whether some of the process's functions lack what was inlined into them.
    pub(super) fn are_short(&self) -> bool {
        self.user.is_time_up()
    }

    fn name(&self, address: u64, caller: bool) -> Vec<String> {
        crate::interrupt::step();
        // A caller goes on behind its call, which can be the begin of the next function, or of another source line.
        let at = address.saturating_sub(u64::from(caller));
        let place = self.user.place(self.pid, at);
        let module = place.as_ref().and_then(|(path, _)| path.file_name());
        let module = module.map(|name| printable::text(name.as_encoded_bytes()).into_owned());
        let symbols = self.user.known_at(self.pid, at).unwrap_or_default();
        if symbols.is_empty() {
            return vec![match (module, place) {
                (Some(module), Some((_, offset))) => {
                    format!("[unknown] {address:#x} [{module}+{:#x}]", offset + (address - at))
                }
                _ => format!("[unknown] {address:#x}"),
            }];
        }
        // What is in memory only has no file.
        let module = module.unwrap_or_else(|| host::VDSO.trim_matches(['[', ']']).to_owned());
        symbols.iter().map(|symbol| line(symbol, &module, address - at)).collect()
    }
}

/// `function+0x1d [module] file:line`.
fn line(symbol: &Symbol, module: &str, further: u64) -> String {
    let Symbol { name, offset, place, inlined, .. } = symbol;
    // A version of a symbol is for the linker.
    let name = name.split_once('@').map_or(&**name, |(name, _)| name);
    let mut text = printable::text(name.as_bytes()).into_owned();
    // Writing to a string does not fail.
    let _ = if *inlined {
        write!(text, " (inlined) [{module}]")
    } else {
        write!(text, "+{:#x} [{module}]", offset + further)
    };
    if let Some(SourcePlace { file, line }) = place {
        let _ = write!(text, " {}:{line}", printable::text(file.as_bytes()));
    }
    text
}

/// How the functions begin that stand between a tracepoint and us in a stack: they tell nothing.
const OURS: [&str; 4] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];

impl Symbols for Names {
    fn kernel(&self, address: u64) -> Vec<String> {
        let kernel = self.kernel.get_or_init(kernel);
        let after = kernel.partition_point(|(start, _)| *start <= address);
        let found = after.checked_sub(1).and_then(|index| kernel.get(index));
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
        let known = self.known.borrow().get(&(address, caller)).cloned();
        known.unwrap_or_else(|| {
            let lines = self.name(address, caller);
            self.known.borrow_mut().insert((address, caller), lines.clone());
            lines
        })
    }
}

/// `/proc/kallsyms`: address, kind, name, and for a module's symbol a tab and the module in brackets.
fn kernel() -> Vec<(u64, String)> {
    let text = host::proc::text("/proc/kallsyms").unwrap_or_default();
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
