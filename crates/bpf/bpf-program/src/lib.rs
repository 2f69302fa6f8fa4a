//! BPF programs before anything is loaded: the model of a [`Module`], and the program that records a probe.
//!
//! It is pure: where an argument lies comes in as data, and what comes out is loaded, or written to a file, by others.
//!
//! | module | holds |
//! |---|---|
//! | [`module`] | programs and maps that belong together |
//! | [`payload`] | an event in the ring buffer, for the program that writes it and for us who read it |
//! | [`event`] | the program of a probe that sends an event |
//! | [`place`] | places in memory with their types, and the stack of a program as a structure |
//! | [`emit`] | statements over the assembler: values, conditions, maps |
//! | [`wire`] | how structures that programs write are read |
//! | [`operand`] | the instructions that fetch a USDT probe's argument |
#![forbid(unsafe_code)]

pub mod emit;
pub mod event;
pub mod module;
pub mod operand;
pub mod payload;
pub mod place;
pub mod wire;

pub use emit::Emit;
pub use event::{EventId, Setting, Source};
pub use module::{BtfTarget, License, Module, ProgramDef, ProgramKind, UprobePlace};
pub use payload::{FieldKind, Layout, Payload};
pub use place::{Member, Place, Word, argument};
