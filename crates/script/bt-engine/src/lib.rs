//! Runs bpftrace scripts from Rust: compiled straight to BPF, with neither LLVM nor libbpf.
//!
//! [`Script::builder`] takes a script's text and the processes to trace. [`Builder::compile`] makes
//! BPF programs of it, or [`Diagnostics`] with the places of the mistakes. [`Script::load`] gives
//! them to the kernel, [`Session::attach`] attaches them, [`Session::poll`] hands out [`Event`]s
//! with typed values in the order of time, and [`Session::finish`] detaches everything, runs the
//! script's `end` probes and reads its maps.
//!
//! ```no_run
#![doc = include_str!("../examples/count_syscalls.rs")]
//! ```
//!
//! A second example, `usdt_events`, receives the events of a process's static probes.
//!
//! The engine needs Linux 5.10 or later, and the capabilities `CAP_BPF` and `CAP_PERFMON` (or root)
//! from [`Script::load`] on; a script whose target is a process reads that process's files. It
//! prints nothing, installs no signal handler, ends no process but a [`Target::Command`]'s, and
//! reads no environment variable but `PATH` and `TZ`. `system()` and `cat()` of scripts are
//! [`Event`]s: the caller decides whether to carry them out. Mere reports go to an [`Observer`].
//!
//! A [`Session`] belongs to one thread; another thread empties the ring of events.
#![forbid(unsafe_code)]

mod attach;
mod builder;
mod declarations;
mod error;
mod event;
mod facts;
mod lookups;
mod maps;
mod name_tables;
mod observe;
mod process_id;
mod script;
mod session;

// Types of signatures here, so that a user needs no other crate of ours.
pub use bpf_program::wire::WrongSize;
pub use bpf_session::SessionError;
pub use bt_abi::{FailureKind, PrintTo};
pub use bt_compiler::{
    ConfigFact, FunctionPlace, KernelFacts, NOTHING_LEFT, NotFound, TargetFacts, TracedProcess,
    UsdtPlaces,
};
pub use bt_lang::{Diagnostic, Severity, Span};
pub use bt_runtime::Value;
pub use bt_runtime::histogram::{Bound, Bucket, Histogram};
pub use bt_runtime::series::{Point, Series};
pub use bt_runtime::table::{Cell, Kind as TableKind, Table};
pub use builder::Builder;
pub use declarations::Declarations;
pub use elf::ProbePoint;
pub use error::{Diagnostics, Error};
pub use event::Event;
pub use facts::{Facts, Target};
pub use host::HostError;
pub use observe::{Notice, Observer};
pub use script::{ParsedScript, Script};
pub use session::{
    AttachSummary, Benchmark, Events, FailureCount, RuntimeFailure, Session, SessionResult,
    TestResult, Totals,
};
