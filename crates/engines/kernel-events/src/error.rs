//! All that can go wrong with a recording of the kernel's events.

use std::io;

use bpf_insn::AsmError;
use bpf_program::wire::WrongSize;
use bpf_session::SessionError;
use thiserror::Error;
use typeinfo::TypeError;

/// Why events are not recorded.
#[derive(Debug, Error)]
pub enum EventsError {
    /// The kernel did not take the programs.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The ring or a map holds what it can't: a mistake of ours.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
    /// An event that no program sends: a mistake of ours.
    #[error("an event of the kind {kind} came, which no program sends: an internal error, please report it")]
    Kind {
        /// Its number.
        kind: u32,
    },
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
    /// A map can't be read.
    #[error("reading the map {name}")]
    Map {
        /// Its name.
        name: &'static str,
        /// Why.
        source: io::Error,
    },
}
