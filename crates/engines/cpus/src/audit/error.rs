//! All that can go wrong with an audit.

use std::io;

use bpf_insn::AsmError;
use bpf_program::wire::WrongSize;
use bpf_session::SessionError;
use thiserror::Error;
use typeinfo::TypeError;

/// Why CPUs are not audited.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The kernel did not take the programs.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A map or the ring holds what it can't: a mistake of ours.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
    /// A program can't be made: a mistake of ours.
    #[error(transparent)]
    Assembly(#[from] AsmError),
    /// The kernel's types are not what they should be.
    #[error(transparent)]
    Types(#[from] TypeError),
    /// The kernel does not describe its types.
    #[error("this kernel does not describe its types: {path} (CONFIG_DEBUG_INFO_BTF)")]
    NoTypes {
        /// The file that should have them.
        path: &'static str,
        /// Why it can't be read.
        source: io::Error,
    },
    /// A tracepoint without which nothing is known is missing.
    #[error("this kernel has no tracepoint {name}")]
    NoTracepoint {
        /// Its name.
        name: &'static str,
    },
    /// A map can't be read or written.
    #[error("reading the map {name}")]
    Map {
        /// Its name.
        name: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A CPU did not take the interrupt with which its audit begins.
    #[error("CPU {cpu} can't be audited: it is not online, or did not take an interrupt")]
    Unreachable {
        /// Its number.
        cpu: u32,
    },
}

impl AuditError {
    /// Whether this kernel or these rights do not allow it.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Session(error) => error.is_unsupported(),
            Self::NoTypes { .. } | Self::NoTracepoint { .. } => true,
            _ => false,
        }
    }
}
