//! Finds the objects of a running program in its memory, as object specs (`objects`) describe them:
//! lists from a root on, members by the program's types (`typeinfo`), and conditions that guard
//! against misread memory.
//!
//! The program keeps running meanwhile, so everything is read twice. If both readings of an object
//! agree, it had these values at the moment between them ([`agree`]). Objects that differ are
//! counted and left out.
//!
//! This crate opens no file and knows no process: it takes a [`Memory`], types and the addresses of
//! globals.

mod cached;
mod compile;
mod roots;
mod walk;

use thiserror::Error;

pub use cached::CachedMemory;
pub use compile::{Addresses, CompiledSpec, Program, compile};
pub use roots::roots;
pub use walk::{AliveObject, Counts, MAX_ELEMENTS, Reading, WalkResult, agree};

#[doc(no_inline)]
pub use live_memory::{Memory, Scalar as Value};

/// Reason why a part of a spec does not fit a program.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct Misfit {
    /// Line in the spec's file.
    pub line: usize,
    /// Description of the problem.
    pub what: String,
}
