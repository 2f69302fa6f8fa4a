//! Options that several commands share, as typed and as resolved.

mod bytes;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod mistaken;
pub(crate) mod objects;
pub(crate) mod process;
pub(crate) mod specs;

pub(crate) use bytes::{bytes, check_buffer};
