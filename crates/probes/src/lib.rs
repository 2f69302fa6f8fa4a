//! What can be attached to, from bytes: USDT notes and their argument grammar, function symbols, where instructions begin,
//! address maps, `/proc/PID/maps` and tracepoint formats.
//!
//! This room opens no file and reads no `/proc`: bytes come in, data goes out, and broken bytes give an error or a counted
//! fault, never a panic. Memory is bounded by the size of the input, and every list that an input could make long has a limit.
#![forbid(unsafe_code)]

pub mod address;
pub mod args;
pub mod code;
pub mod elf;
mod error;
pub mod instructions;
pub mod maps;
pub mod pattern;
pub mod registers;
pub mod symbols;
pub mod tracefs;
pub mod usdt;

pub use address::{ElfVaddr, FileOffset, ProcAddr};
pub use code::{Aim, Code, CodeBytes, CodePlace, PlaceFault};
pub use error::{NoteFault, ProbesError};
pub use registers::{Arch, Register};
