//! Records the hits of a process's static probes (USDT): [`AttachPlan`] finds the wanted probes in the process's files and makes
//! a BPF program for each distinct layout of their arguments, [`Recorder`] attaches these and hands out lines of a recording
//! (`objects`) in the order of time.
//!
//! It needs neither the bpftrace language nor its compiler, which is why it stands beside `bt-engine`. Nothing is printed.

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

/// Size of the ring buffer of probes, in bytes, if none is named.
pub const RING_BYTES: u32 = 4 << 20;

/// Why a file cannot be part of a plan, or why a recording's totals are not known.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file can't be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The program that reads a probe's arguments can't be made.
    #[error(transparent)]
    Program(#[from] AsmError),
    /// The counter of lost events can't be read.
    #[error("reading how many events were lost: {0}")]
    Unsent(#[source] io::Error),
    /// The counter of lost events has another size than ours.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
}
