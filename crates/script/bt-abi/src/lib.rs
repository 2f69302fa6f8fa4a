//! Interface between the compiler of scripts and their runtimes: a compiled [`Script`], and the
//! place of each byte of its events, maps and failures.
//!
//! `bt-compiler` makes a [`Script`]. A runtime
//! - loads [`Script::module`] (the ring buffer is named [`RING`](bpf_program::event::RING), the map
//!   of counters of losses [`LOST`](lost::LOST));
//! - runs the program of each [`Attach::Begin`] once, attaches all others, and on the way out runs those of [`Attach::End`];
//! - decodes each event by its action (see [`action`]) and shows it, in the order of time;
//! - at the end prints the maps (see [`map`]).
//!
//! | module | holds |
//! |---|---|
//! | [`value`] | the types of values, with their sizes |
//! | [`bytes`] | the values that have parts, as structures |
//! | [`action`] | events, and the runtime's action for each |
//! | [`map`] | maps, and merging of CPUs' values |
//! | [`failure`] | failures, and the places where they are counted |
//! | [`lost`] | counters of losses |
//! | [`signals`] | signals' names and texts |
#![forbid(unsafe_code)]
#![expect(
    clippy::struct_excessive_bools,
    reason = "they are facts of their own, not states"
)]

pub mod action;
pub mod bytes;
pub mod failure;
pub mod hits;
pub mod lost;
pub mod map;
pub mod signals;
pub mod value;

use std::path::PathBuf;

use bt_lang::Span;

use bpf_program::{License, Module, UprobePlace};

pub use action::{Action, ActionKind, EventHead, FormatPiece, FormatSize, FormatSpec, PrintTo};
pub use bpf_program::wire;
pub use failure::{Failure, FailureKind, FailureSlot};
pub use lost::LostCounters;
pub use map::{Aggregation, KeyTable, MapValue, ScriptMap, SeriesOp};
pub use value::{Clock, EnumNames, Field, Layout, LayoutKind, StackMode, ValueType};

/// A compiled script.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// Maps and programs.
    pub module: Module,
    /// Probes to attach, in the script's order.
    pub probes: Vec<ScriptProbe>,
    /// Maps of the script, by name. Those at the end of a run print in this order.
    pub maps: Vec<ScriptMap>,
    /// Actions of events.
    pub actions: Vec<Action>,
    /// Possible failures.
    pub failures: Vec<Failure>,
    /// Settings.
    pub config: Config,
    /// Kernel map of the traced processes (`u64` number to `u64` 1), if there may be more than one.
    /// The runtime inserts the first ones, and programs add to it if the script follows forks.
    pub followed: Option<String>,
}

/// A program, and one target that it is attached to. Several can have one program.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptProbe {
    /// Index in the module's programs.
    pub program: usize,
    /// Target of the attachment.
    pub attach: Attach,
    /// Name in the builtin `probe` and with `-v`: `uprobe:/bin/bash:readline`.
    pub name: String,
    /// Number of probes that it counts as in "Attached N probes".
    pub count: usize,
    /// Attach point in the script.
    pub span: Span,
}

/// Target that a program is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attach {
    /// Run once before all others are attached.
    Begin,
    /// Run once after all others are gone.
    End,
    /// Run when we get this signal (`self:signal:SIGUSR1`).
    Signal {
        /// Signal number.
        signal: i32,
    },
    /// Run directly: `test:` once, `bench:` as often as a benchmark needs.
    Manual {
        /// Name of the test or benchmark.
        name: String,
        /// True for a test, false for a benchmark.
        is_test: bool,
    },
    /// Places of a file. The program's kind decides between the place itself and the return of the
    /// function there.
    Uprobe {
        /// The file, by a name that we can open.
        path: PathBuf,
        /// Places in the file.
        places: Vec<UprobePlace>,
        /// Process; `None` for all that run the file.
        pid: Option<u32>,
    },
    /// A kernel function.
    Kprobe {
        /// Name of the function; empty for an address of the kernel.
        function: String,
        /// Offset from its first byte, or the address.
        offset: u64,
    },
    /// A tracepoint by its number in tracefs.
    Tracepoint {
        /// Tracepoint number.
        id: u64,
        /// `category:name`.
        name: String,
    },
    /// A raw tracepoint by name.
    RawTracepoint {
        /// Name of the tracepoint.
        name: String,
    },
    /// The target that the program was loaded for.
    LoadedTarget,
    /// All of the kernel's objects of a kind, once.
    Iterator,
    /// A timer at this interval in nanoseconds, on one CPU.
    Interval {
        /// Interval in nanoseconds.
        nanos: u64,
    },
    /// A sampling timer on every CPU, or for processes while they run.
    Profile {
        /// Rate of the samples.
        every: SampleRate,
        /// Threads to sample; `None` for every CPU.
        of: Option<ThreadsOf>,
    },
    /// Accesses to memory.
    Watchpoint {
        /// Start address.
        address: u64,
        /// Number of bytes.
        length: u64,
        /// Bits of `uapi::perf`: `BREAKPOINT_READ` and its like.
        access: u32,
        /// Process, all of whose threads are watched; `None` for the kernel's memory, on every CPU.
        pid: Option<u32>,
    },
    /// A software or hardware event of perf, on every CPU or of processes.
    Counter {
        /// `perf_event_attr.type`: `TYPE_HARDWARE` or `TYPE_SOFTWARE` of `uapi::perf`.
        kind: u32,
        /// `perf_event_attr.config`.
        config: u64,
        /// Number of events between two samples.
        period: u64,
        /// Threads to count; `None` for every CPU.
        of: Option<ThreadsOf>,
    },
}

/// The threads of processes, including those that start later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadsOf {
    /// Processes, at least one.
    pub pids: Vec<u32>,
    /// True if threads of processes that these start are included.
    pub follows_forks: bool,
}

/// Rate of a profile probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleRate {
    /// Interval in nanoseconds.
    Nanos(u64),
    /// Samples per second.
    Hertz(u64),
}

/// Settings of a script: from `config = { }`, from the environment, or the defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Limit on the strings that `str` reads in bytes, their end included.
    pub max_strlen: u32,
    /// Limit on the keys of a map.
    pub max_map_keys: u32,
    /// Size of the ring buffer in bytes.
    pub ring_bytes: u32,
    /// Form in which stacks are shown.
    pub stack_mode: StackMode,
    /// True to show C++ names as in the source.
    pub cpp_demangle: bool,
    /// True to look up user symbols at the end for processes that are gone by then.
    pub print_maps_on_exit: bool,
    /// True if the kernel's probes are limited to the process of `-p`, too.
    pub filter_pid: bool,
    /// Treatment of missing probes: `error`, `warn`, `ignore`.
    pub missing_probes: MissingProbes,
    /// True if stacks show source files and lines, if there is debug information.
    pub show_debug_info: bool,
    /// Ending of a cut string.
    pub str_trunc_trailer: String,
    /// Licence of the programs.
    pub license: License,
    /// Limit on the script's probes, if that was set.
    pub max_probes: Option<u32>,
    /// Limit on the programs that the script is compiled to, if that was set.
    pub max_bpf_progs: Option<u32>,
    /// Limit on the bytes of a map key or value that go on the stack.
    pub on_stack_limit: u32,
    /// Map whose number `tseries` uses for the time instead of a clock: `BPFTRACE_DUMMY_TS_MAP`,
    /// for tests of the output of time series.
    pub series_clock: Option<String>,
    /// Settings that only the runtime obeys (`max_cat_bytes`), and those that nothing obeys, as
    /// they were given.
    pub others: Vec<(String, String)>,
}

/// Treatment of missing probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissingProbes {
    /// The script does not run.
    #[default]
    Error,
    /// The script runs, and a warning lists the missing probes.
    Warn,
    /// The script runs without a warning.
    Ignore,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_strlen: 1024,
            max_map_keys: 4096,
            ring_bytes: 1 << 20,
            stack_mode: StackMode::Bpftrace,
            cpp_demangle: true,
            print_maps_on_exit: true,
            filter_pid: true,
            missing_probes: MissingProbes::Error,
            show_debug_info: false,
            str_trunc_trailer: "..".to_owned(),
            license: License::default(),
            max_probes: None,
            max_bpf_progs: None,
            on_stack_limit: 32,
            series_clock: None,
            others: Vec::new(),
        }
    }
}
