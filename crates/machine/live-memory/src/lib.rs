//! Memory of a process, read from outside its probes, and expressions over it.
//!
//! This crate opens no file and makes no system call: a source of bytes by address implements
//! [`Memory`]. `host` does so for a running process, [`Image`] for bytes in our own memory (tests,
//! fuzzing). A [`LimitedMemory`] memory bounds the reads of one walk, since lists in another process's
//! memory may have no end.
//!
//! An [`Evaluator`] computes expressions of the script language over a memory, with types of `typeinfo` and names from
//! [`Globals`]; [`Evaluator::list`] walks lists. The types of a program without debug information can be given as C definitions
//! ([`define_types`]).
//!
//! A read is a copy of the process's memory at that moment. The process goes on meanwhile: a caller
//! that needs consistent data reads twice and compares.
#![forbid(unsafe_code)]

mod define;
mod eval;
mod format;
mod image;
mod limited;
mod lists;
mod memory;
mod mentions;
mod script;
mod tree;

pub use define::define_types;
pub use eval::{
    EvalError, Evaluator, Expression, Fault, Global, Globals, MAX_ELEMENTS, NoGlobals, Place,
    Scalar, Scope, Value,
};
pub use image::Image;
pub use limited::{LimitedMemory, Limits, ReadCounts};
pub use lists::ListWalk;
pub use memory::{Cause, Memory, MemoryError, Piece};
pub use mentions::Mentions;
pub use script::{Output, run};
pub use tree::{Shape, Tree};
