//! Finds the objects of a running program in its memory, as object specs (`objects`) describe them: lists from a root on, members
//! by the program's types (`typeinfo`), and conditions that must be true before anything is believed.
//!
//! The program goes on while it is read. So all is read twice, one reading after the other: an object of which both readings say
//! the same was so at the moment between them ([`agree`]). What differs is counted and left out.
//!
//! This crate opens no file and knows no process: it takes a [`Memory`], types and the addresses of globals.

mod cached;
mod compile;
mod roots;
mod walk;

use thiserror::Error;

pub use cached::Cached;
pub use compile::{Addresses, Compiled, Program, compile};
pub use roots::roots;
pub use walk::{AliveObject, Counts, Found, MAX_ELEMENTS, Reading, agree};

#[doc(no_inline)]
pub use live_memory::{Memory, Scalar as Value};

/// Why a part of a spec does not fit a program.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct Misfit {
    /// The line of the spec's file.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}
