//! Errors of programs on the scheduler's tracepoints, and of what they leave in maps and rings.

use std::io;

use bpf_insn::AsmError;
use bpf_program::wire::WrongSize;
use bpf_session::SessionError;
use thiserror::Error;
use typeinfo::TypeError;

/// Reason for which programs do not run, or what they left cannot be read.
#[derive(Debug, Error)]
pub enum SchedError {
    /// The kernel did not take the programs.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A map or the ring holds something of another size: a mistake of ours.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
    /// An event that no program sends: a mistake of ours.
    #[error(
        "received an event of kind {kind}, which no program sends: an internal error, please \
         report it"
    )]
    Kind {
        /// Number of the kind.
        kind: u32,
    },
    /// A program cannot be made: a mistake of ours.
    #[error(transparent)]
    Assembly(#[from] AsmError),
    /// The kernel's types are not as expected.
    #[error(transparent)]
    Types(#[from] TypeError),
    /// The kernel does not describe its types.
    #[error("this kernel does not describe its types: {path} (CONFIG_DEBUG_INFO_BTF)")]
    NoTypes {
        /// The file that should have them.
        path: &'static str,
        /// Reason for which it cannot be read.
        source: io::Error,
    },
    /// A tracepoint is missing without which nothing is known.
    #[error("this kernel has no tracepoint {name}")]
    NoTracepoint {
        /// Name of the tracepoint.
        name: &'static str,
    },
    /// A map cannot be read or written.
    #[error("using the map {name}")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// Reason.
        source: io::Error,
    },
    /// A CPU did not run a program in an interrupt.
    #[error("CPU {cpu} can't be audited: it is not online, or did not take an interrupt")]
    Unreachable {
        /// Number of the CPU.
        cpu: u32,
    },
}

impl SchedError {
    /// Makes an error of a map from its reason.
    pub fn map(name: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Map { name, source }
    }

    /// Returns true if this kernel or the user's rights do not allow it.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Session(error) => error.is_unsupported(),
            Self::NoTypes { .. } | Self::NoTracepoint { .. } => true,
            _ => false,
        }
    }
}
