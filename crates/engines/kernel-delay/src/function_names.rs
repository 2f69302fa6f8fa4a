//! Names of the addresses of stacks, as the report shows them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use host::Process;
use observer::Observer;
use symbolize::{CodeAt, KernelSymbols, SourcePlace, Symbol, SymbolOptions, UserSymbols, Warn};
use text::printable;

use crate::Symbols;

/// Time limit for finding inlined functions and source lines in a report: a large program's debug
/// information takes a second and more, and stays in memory once read.
const LINES_TIMEOUT: Duration = Duration::from_secs(5);

/// Names of functions of the kernel and of processes.
pub struct FunctionNames {
    /// Symbols of the kernel, read on first use; without addresses for users who may not see them.
    kernel: OnceCell<KernelSymbols>,
    user: UserSymbols,
    /// Cache of lines: the outer functions of most stacks are the same.
    known: RefCell<HashMap<(u32, u64, bool), Lines>>,
    observer: Observer,
}

/// Lines for an address; `None` if there is no code.
type Lines = Option<Vec<String>>;

impl FunctionNames {
    /// Reads the processes' current mappings; symbols are read on first use.
    pub fn for_processes(pids: &[u32], warn: Warn, observer: Observer) -> Self {
        let options = SymbolOptions {
            demangle: true,
            lines: Some(LINES_TIMEOUT),
            ..SymbolOptions::default()
        };
        let user = UserSymbols::new(options, warn);
        for &pid in pids {
            user.remember(pid);
        }
        Self {
            kernel: OnceCell::new(),
            user,
            known: RefCell::default(),
            observer,
        }
    }

    /// Reads the processes' mappings again, and those of new processes; keeps the data of processes
    /// that have exited.
    pub fn renew(&self, pids: &[u32]) {
        for &pid in pids {
            self.user.remember(pid);
        }
    }

    /// Keeps mappings that processes had meanwhile: for some processes this is the only record of
    /// their libraries.
    pub fn adopt(&self, seen: Vec<(u32, Process)>) {
        for (pid, process) in seen {
            self.user.adopt(pid, process);
        }
    }

    /// Returns true if some of the process's functions lack the functions inlined into them.
    pub fn are_short(&self) -> bool {
        self.user.is_time_up()
    }

    /// Returns the files whose code has no names because they are stripped.
    pub fn stripped_files(&self) -> Vec<String> {
        self.user.stripped_files()
    }

    fn name(&self, pid: u32, address: u64, caller: bool) -> Lines {
        self.observer.step();
        Some(match self.user.known_code(pid, address, caller) {
            CodeAt::Functions(symbols) => {
                // An inlined function is in the file of the function that contains it.
                let module = symbols
                    .last()
                    .and_then(|outer| outer.module.as_deref())
                    .map_or("[unknown]", file_name);
                symbols
                    .iter()
                    .map(|symbol| line(symbol, &printable::text(module.as_bytes())))
                    .collect()
            }
            CodeAt::Unnamed(code) => {
                vec![printable::text(code.to_string().as_bytes()).into_owned()]
            }
            CodeAt::Unknown => vec![format!("{address:#x}")],
            CodeAt::NotCode => return None,
        })
    }
}

/// Returns a path's last part; the kernel's library has no path.
fn file_name(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .unwrap_or(path)
        .trim_matches(['[', ']'])
}

/// Returns the name without the version that only the linker needs, as in `memcpy@@GLIBC_2.14`.
/// Names of JIT code may have an `@`, too: `JS:~f /app/node_modules/@scope/index.js:1`.
fn without_version(name: &str) -> &str {
    let is_version = |text: &str| {
        let text = text.trim_start_matches('@');
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    match name.split_once('@') {
        Some((plain, version))
            if !plain.is_empty() && !plain.contains(' ') && is_version(version) =>
        {
            plain
        }
        _ => name,
    }
}

/// Formats a symbol: `function+0x1d [module] file:line`.
fn line(symbol: &Symbol, module: &str) -> String {
    let Symbol {
        name,
        offset,
        place,
        inlined,
        ..
    } = symbol;
    let name = without_version(name);
    let mut text = printable::text(name.as_bytes()).into_owned();
    // Writing to a string does not fail.
    let _ = if *inlined {
        write!(text, " (inlined) [{module}]")
    } else {
        write!(text, "+{offset:#x} [{module}]")
    };
    if let Some(SourcePlace { file, line }) = place {
        let _ = write!(text, " {}:{line}", printable::text(file.as_bytes()));
    }
    text
}

/// Prefixes of the functions between a tracepoint and our programs in a stack: they are not the
/// thread's.
const OWN_PREFIXES: [&str; 4] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];

impl Symbols for FunctionNames {
    fn kernel(&self, address: u64) -> Vec<String> {
        let kernel = self
            .kernel
            .get_or_init(|| KernelSymbols::read().unwrap_or_default());
        match kernel.code_at(address) {
            Some((name, ..)) if OWN_PREFIXES.iter().any(|ours| name.starts_with(ours)) => {
                Vec::new()
            }
            Some((name, offset, module)) => vec![format!(
                "{name}+{offset:#x} [{}]",
                module.unwrap_or("kernel")
            )],
            None => vec![format!("[unknown] {address:#x} [kernel]")],
        }
    }

    fn user(&self, pid: u32, address: u64, caller: bool) -> Option<Vec<String>> {
        let known = self.known.borrow().get(&(pid, address, caller)).cloned();
        known.unwrap_or_else(|| {
            let lines = self.name(pid, address, caller);
            self.known
                .borrow_mut()
                .insert((pid, address, caller), lines.clone());
            lines
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_left_out_and_names_with_an_at_sign_stay() {
        for (name, plain) in [
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("memcpy@GLIBC_2.2.5", "memcpy"),
            (
                "JS:~f /app/node_modules/@scope/p/index.js:1",
                "JS:~f /app/node_modules/@scope/p/index.js:1",
            ),
            ("@anonymous", "@anonymous"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_version(name), plain);
        }
    }
}
