//! Records the hits of a process's static probes (USDT): [`AttachPlan`] finds the wanted probes in the process's files and makes
//! a BPF program for each distinct layout of their arguments, [`Recorder`] attaches these and hands out lines of a recording
//! (`objects`) in the order of time.
//!
//! It needs neither the bpftrace language nor its compiler, which is why it stands beside `bt-engine`. Nothing is printed.
#![forbid(unsafe_code)]

mod plan;
mod recorder;
mod ticks;

use bpf_insn::AsmError;
use host::HostError;
use thiserror::Error;

pub use plan::{AttachPlan, ResolvedProbe};
pub use recorder::{Recorder, Totals};

/// Why a plan can't have a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file can't be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The program that reads a probe's arguments can't be made.
    #[error(transparent)]
    Program(#[from] AsmError),
}
