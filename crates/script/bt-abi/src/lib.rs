//! What the compiler of scripts and those who run them share: a compiled [`Script`], and where each byte of its events, maps
//! and failures lies.
//!
//! `bt-compiler` makes a [`Script`]. Who runs it
//! - loads [`Script::module`] (the ring buffer is named [`RING`](bpf_program::event::RING), the map of what was lost
//!   [`LOST`](lost::LOST));
//! - runs the program of each [`Attach::Begin`] once, attaches all others, and on the way out runs those of [`Attach::End`];
//! - decodes each event by its action (see [`action`]) and shows it, in the order of time;
//! - at the end prints the maps (see [`map`]).
//!
//! | module | holds |
//! |---|---|
//! | [`value`] | the types of values, with their sizes |
//! | [`bytes`] | the values that have parts, as structures |
//! | [`action`] | events, and what the runtime does for each |
//! | [`map`] | maps, and how CPUs' values become one |
//! | [`failure`] | what can fail, and where it is counted |
//! | [`lost`] | counters of what was lost |
//! | [`signals`] | signals' names and texts |
#![forbid(unsafe_code)]
#![expect(clippy::struct_excessive_bools, reason = "they are facts of their own, not states")]

pub mod action;
pub mod bytes;
pub mod failure;
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
    /// What to attach, in the script's order.
    pub probes: Vec<ScriptProbe>,
    /// The script's maps, by name. Those at the end of a run print in this order.
    pub maps: Vec<ScriptMap>,
    /// What events ask for.
    pub actions: Vec<Action>,
    /// What can fail.
    pub failures: Vec<Failure>,
    /// The settings.
    pub config: Config,
    /// The kernel map of the processes that count (`u64` number to `u64` 1), if there may be more than one: the
    /// runtime puts the first in, and programs add to it if the script follows forks.
    pub followed: Option<String>,
}

/// A program and one thing that it is attached to. Several can have one program.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptProbe {
    /// An index into the module's programs.
    pub program: usize,
    /// Where.
    pub attach: Attach,
    /// What the builtin `probe` says, and `-v`: `uprobe:/bin/bash:readline`.
    pub name: String,
    /// How many probes it counts as in "Attached N probes".
    pub count: usize,
    /// The attach point in the script.
    pub span: Span,
}

/// What a program is attached to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attach {
    /// Run once before all others are attached.
    Begin,
    /// Run once after all others are gone.
    End,
    /// Run when we get this signal (`self:signal:SIGUSR1`).
    Signal {
        /// Its number.
        signal: i32,
    },
    /// Run directly: `test:` once, `bench:` as often as a benchmark needs.
    Manual {
        /// Its name.
        name: String,
        /// True for a test, false for a benchmark.
        is_test: bool,
    },
    /// Places of a file. The program's kind says whether at the place or when the function there returns.
    Uprobe {
        /// The file, by a name that we can open.
        path: PathBuf,
        /// Where.
        places: Vec<UprobePlace>,
        /// The process, or all that run the file.
        pid: Option<u32>,
    },
    /// A kernel function.
    Kprobe {
        /// Its name; empty for an address of the kernel.
        function: String,
        /// Bytes behind its first, or the address.
        offset: u64,
    },
    /// A tracepoint by the number that tracefs has for it.
    Tracepoint {
        /// The number.
        id: u64,
        /// `category:name`.
        name: String,
    },
    /// A raw tracepoint by name.
    RawTracepoint {
        /// Its name.
        name: String,
    },
    /// What the program was loaded for.
    LoadedTarget,
    /// All of the kernel's objects of a kind, once.
    Iterator,
    /// At this interval in nanoseconds, on one CPU.
    Interval {
        /// Nanoseconds.
        nanos: u64,
    },
    /// On every CPU, or for processes while they run.
    Profile {
        /// How often.
        every: SampleRate,
        /// Whose threads.
        of: Option<ThreadsOf>,
    },
    /// Accesses to memory.
    Watchpoint {
        /// Where.
        address: u64,
        /// How many bytes.
        length: u64,
        /// Bits of `uapi::perf`: `BREAKPOINT_READ` and its like.
        access: u32,
        /// The process, all of whose threads are watched; none for the kernel's memory, on every CPU.
        pid: Option<u32>,
    },
    /// A software or hardware event of perf, on every CPU or of processes.
    Counter {
        /// `perf_event_attr.type`: `TYPE_HARDWARE` or `TYPE_SOFTWARE` of `uapi::perf`.
        kind: u32,
        /// `perf_event_attr.config`.
        config: u64,
        /// The number of events between two samples.
        period: u64,
        /// Whose threads.
        of: Option<ThreadsOf>,
    },
}

/// The threads of processes, including those that start later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadsOf {
    /// The processes, of which there is at least one.
    pub pids: Vec<u32>,
    /// Whether those of the processes that these start belong to them.
    pub follows_forks: bool,
}

/// How often a profile probe runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleRate {
    /// At this interval in nanoseconds.
    Nanos(u64),
    /// Samples per second.
    Hertz(u64),
}

/// A script's settings: of `config = { }`, of the environment, or the defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The longest string that `str` reads, its end included.
    pub max_strlen: u32,
    /// How many keys a map has at most.
    pub max_map_keys: u32,
    /// The ring buffer's bytes.
    pub ring_bytes: u32,
    /// How stacks are shown.
    pub stack_mode: StackMode,
    /// Whether C++ names are shown as in the source.
    pub cpp_demangle: bool,
    /// Whether user symbols are looked up at the end for processes that are gone by then.
    pub print_maps_on_exit: bool,
    /// Whether the kernel's probes are those of the process of `-p` alone, too.
    pub filter_pid: bool,
    /// What to do about probes that are not there: `error`, `warn`, `ignore`.
    pub missing_probes: MissingProbes,
    /// Whether stacks show source files and lines where debug information is there.
    pub show_debug_info: bool,
    /// What a cut string ends with.
    pub str_trunc_trailer: String,
    /// The licence that the programs are loaded with.
    pub license: License,
    /// How many probes the script may have, if that was set.
    pub max_probes: Option<u32>,
    /// How many programs the script may be compiled to, if that was set.
    pub max_bpf_progs: Option<u32>,
    /// How many bytes of a map key or value go on the stack.
    pub on_stack_limit: u32,
    /// The map whose number `tseries` takes for the time, where it is not to look at a clock: `BPFTRACE_DUMMY_TS_MAP`,
    /// for tests of what prints time series.
    pub series_clock: Option<String>,
    /// Settings that only who runs the script obeys (`max_cat_bytes`), and those that nothing obeys, as they were given.
    pub others: Vec<(String, String)>,
}

/// What to do about probes that are not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissingProbes {
    /// The script does not run.
    #[default]
    Error,
    /// It runs, and a warning says which are not there.
    Warn,
    /// It runs.
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
