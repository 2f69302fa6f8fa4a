//! What the kernel writes as text: `/proc/PID/maps` and the formats of tracepoints.
//!
//! This room opens no file: text comes in, data goes out, and text that is not of the kernel's form gives an error, never a
//! panic.
#![forbid(unsafe_code)]

mod error;
pub mod maps;
pub mod tracefs;

pub use error::TextError;
