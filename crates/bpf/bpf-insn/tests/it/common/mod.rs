//! Shared parts of the tests.

pub(crate) mod sample;
pub(crate) mod strategy;
pub(crate) mod table;
