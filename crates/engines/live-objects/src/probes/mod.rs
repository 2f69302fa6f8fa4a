//! Records the hits of a process's static probes (USDT). [`AttachPlan`] finds the wanted probes in
//! the process's files, and makes a BPF program for each distinct layout of their arguments.
//! [`Recorder`] attaches these, and returns lines of a recording (`objects`) in the order of time.
//!
//! It needs neither the bpftrace language nor its compiler, and is therefore separate from
//! `bt-engine`. It prints nothing.

mod plan;
mod recorder;
mod report;
mod ticks;

use std::io;

use bpf_insn::AsmError;
use bpf_program::wire::WrongSize;
use host::HostError;
use thiserror::Error;

pub use plan::{AttachPlan, ResolvedProbe};
pub use recorder::{Recorder, Totals};
pub use report::{add_files, report_remarks, report_totals};

/// Default size of the ring buffer of probes, in bytes.
pub const RING_BYTES: u32 = 4 << 20;

/// Reason why a file cannot be part of a plan, or why a recording's totals are unknown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Unreadable file.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Failure to make the program that reads a probe's arguments.
    #[error(transparent)]
    Program(#[from] AsmError),
    /// Unreadable counter of lost events.
    #[error("reading how many events were lost: {0}")]
    Unsent(#[source] io::Error),
    /// Counter of lost events with a size other than ours.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
}
