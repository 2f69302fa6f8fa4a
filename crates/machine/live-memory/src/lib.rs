//! The memory of a process as a reader outside of its probes sees it, and expressions over it.
//!
//! This crate opens no file and makes no system call: whoever has bytes by their addresses implements [`Memory`]. `host` does
//! so for a process that runs, [`Image`] for bytes in our own memory (tests, fuzzing). A [`Limited`] memory bounds what one walk
//! may read, since lists in the memory of others may have no end.
//!
//! An [`Evaluator`] computes expressions of the script language over a memory, with types of `typeinfo` and names from
//! [`Globals`]; [`Evaluator::list`] walks lists. The types of a program without debug information can be given as C definitions
//! ([`define_types`]).
//!
//! A read is a copy of what the process had at that moment. The process goes on meanwhile: what must fit together is read
//! twice and compared by whoever needs that.
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
    EvalError, Evaluator, Expression, Fault, Global, Globals, MAX_ELEMENTS, NoGlobals, Place, Scalar, Scope, Value,
};
pub use image::Image;
pub use limited::{Limited, Limits, Spent};
pub use lists::ListWalk;
pub use memory::{Cause, Memory, Piece, Unreadable};
pub use mentions::Mentions;
pub use script::{Output, run};
pub use tree::{Shape, Tree};
