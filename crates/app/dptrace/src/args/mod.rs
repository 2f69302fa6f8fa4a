//! Options that several commands have: what was typed, and what it means.

mod bytes;
pub(crate) mod filter;
pub(crate) mod input;
pub(crate) mod mistaken;
pub(crate) mod objects;
pub(crate) mod specs;

pub(crate) use bytes::bytes;
