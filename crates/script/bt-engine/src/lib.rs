#![doc = include_str!("../README.md")]
//!
//! # The steps
//!
//! [`Script::builder`] takes a script's text and the processes to trace. [`Builder::compile`] makes
//! BPF programs of it, or [`Diagnostics`] with the places of the mistakes. [`Script::load`] gives
//! them to the kernel. [`Session::run`] does the rest: it attaches the probes, hands out [`Event`]s
//! with typed values, detaches everything when the script is over, runs its `end` probes and reads
//! its maps. [`Session::run_until`] takes a condition of yours for the end.
//!
//! A program with a loop of its own calls [`Session::attach`], then [`Session::poll`] again and
//! again, and [`Session::finish`].
//!
//! `system()` and `cat()` of scripts are [`Event`]s: the caller decides whether to carry them out.
//! Reports that keep no script from running go to an [`Observer`].
//!
//! Options ([`Builder`]), results, events and errors are [`Send`] and [`Sync`]. [`Script`] and
//! [`Session`] are neither: make them in the thread that polls.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod attach;
mod builder;
mod declarations;
mod error;
mod event;
mod facts;
mod lookups;
mod maps;
mod name_tables;
mod not_loaded;
mod observe;
mod process_id;
mod script;
mod session;

/// Interface for dptrace's own commands, which may change in any release.
#[doc(hidden)]
pub mod unstable {
    pub use bt_compiler::{NOTHING_LEFT, NotFound, TargetFacts};

    pub use crate::declarations::Declarations;
    pub use crate::facts::Facts;
}

// Types of signatures here, so that a user needs no other crate of ours.
pub use bpf_program::wire::WrongSize;
pub use bpf_session::SessionError;
pub use bt_abi::{FailureKind, PrintTo};
pub use bt_lang::{Diagnostic, Severity, Span};
pub use bt_runtime::Value;
pub use bt_runtime::histogram::{Bound, Bucket, Histogram};
pub use bt_runtime::series::{Point, Series};
pub use bt_runtime::table::{Cell, Kind as TableKind, Table};
pub use builder::Builder;
pub use error::{Diagnostics, Error};
pub use event::Event;
pub use facts::Target;
pub use host::HostError;
pub use observe::{Notice, Observer};
pub use script::{ParsedScript, Script};
pub use session::{
    AttachSummary, Benchmark, Events, FailureCount, RuntimeFailure, Session, SessionResult,
    TestResult, Totals,
};
pub use symbolize::Warning as SymbolWarning;
pub use typeinfo::TypeError;
