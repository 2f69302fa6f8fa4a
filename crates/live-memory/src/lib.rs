//! The memory of a process as a reader outside of its probes sees it.
//!
//! This crate opens no file and makes no system call: whoever has bytes by their addresses implements [`Memory`]. `host` does
//! so for a process that runs, [`Image`] for bytes in our own memory (tests, fuzzing). A [`Limited`] memory bounds what one walk
//! may read, since lists in the memory of others may have no end.
//!
//! A read is a copy of what the process had at that moment. The process goes on meanwhile: what must fit together is read
//! twice and compared by whoever needs that.
#![forbid(unsafe_code)]

mod image;
mod limited;
mod memory;

pub use image::Image;
pub use limited::{Limited, Limits, Spent};
pub use memory::{Cause, Memory, Piece, Unreadable};
