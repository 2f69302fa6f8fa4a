//! Texts of the kernel: `/proc/PID/maps`, the formats of tracepoints, `/proc/interrupts`, and sets
//! of CPUs.
//!
//! This crate opens no file: text comes in, data goes out, and text that is not of the kernel's
//! form gives an error, never a panic.
#![forbid(unsafe_code)]

pub mod cpus;
mod error;
pub mod interrupts;
pub mod maps;
pub mod tracefs;

pub use error::TextError;
