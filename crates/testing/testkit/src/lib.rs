//! Shared parts of the tests of several crates; never linked into the product.
//!
//! Traces: a test writes one with [`TraceBuilder`] (of `spdk-trace-writer`, whose items are
//! re-exported), and [`survivors`] lists the records that a reader must find in it. [`LiveTrace`]
//! does both for a file that is read meanwhile. The feature `strategy` lets proptest generate
//! arbitrary traces, and [`Workload`] generates a target under load (also as the program
//! `gen-trace`).
//!
//! [`requests`] is a server with a client that know when each request was served and what for it
//! waited. [`script`] generates scripts, [`kernel`] decides whether a test on the live kernel may run,
//! [`command`] starts every process of a test, [`shared_data`] finds real traces beside the
//! repository, and [`sources`] lists this project's own sources.
#![forbid(unsafe_code)]

mod cpu;
pub mod kernel;
mod live;
mod program;
pub mod requests;
pub mod script;
mod shared;
mod sources;
#[cfg(feature = "strategy")]
mod strategy;
mod survivor;
mod workload;

pub use cpu::{last_cpu, on_last_cpu, stay_on_last_cpu};
pub use live::LiveTrace;
pub use program::{command, copy_program, end, write_program};
pub use shared::{real_traces, shared_data};
pub use sources::sources;
pub use spdk_trace_writer::{
    Arg, ArgKind, ArgSpec, Era, EraSpec, HeaderFields, HistoryFields, Layout, LcoreBuilder, Record,
    Relation, Rng, Section, Tpoint, TraceBuilder, TraceFile, era, nvmf,
};
#[cfg(feature = "strategy")]
pub use strategy::{any_trace, any_trace_of};
pub use survivor::{Survivor, survivors};
pub use workload::{Connection, Generated, Workload};
