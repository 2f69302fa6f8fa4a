//! State of this machine: processes and the files that they map, separate debug files, tracepoints,
//! capabilities, settings.
//!
//! Only `foreign` opens files that are reached through a process.
//!
//! Only this crate reads `/proc`, `/sys` and tracefs (except that `sys` reads the number of possible CPUs); `elf`,
//! `kernel-text` and `typeinfo` parse the bytes. It changes nothing: no mount, no signal, no ptrace.
#![forbid(unsafe_code)]

pub mod busy;
pub mod capabilities;
pub mod cgroups;
mod code_file;
pub mod control;
pub mod cpu_use;
pub mod cpus;
mod debug_file;
mod error;
pub mod family;
mod file;
mod files;
mod foreign;
mod interrupts;
mod kernel_btf;
mod kernel_symbols;
mod libraries;
pub mod library_cache;
pub mod machine;
mod memory;
mod parts;
mod path;
mod perf_map;
mod perf_source;
pub mod proc;
mod process;
pub mod settings;
pub mod system;
mod tracefs;
pub mod user_file;
mod vdso;
mod watch;

pub use capabilities::{Capabilities, Capability};
pub use code_file::CodeFile;
pub use error::HostError;
pub use file::{ElfFile, FilePlace, FileReader};
pub use files::{Depth, Files, stripped};
pub use interrupts::interrupt_names;
pub use kernel_btf::{KERNEL_BTF, kernel_btf};
pub use kernel_symbols::KernelSymbols;
pub use libraries::needed_by;
pub use memory::ProcessMemory;
pub use path::find_program;
pub use perf_map::PerfMap;
pub use perf_source::PerfSource;
pub use process::{Pid, Process};
pub use tracefs::{Tracefs, TracepointName};
pub use vdso::{VDSO, vdso};
pub use watch::Watch;
