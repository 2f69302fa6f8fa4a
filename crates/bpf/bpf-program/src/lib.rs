//! BPF programs before anything is loaded: the model of a [`Module`], and the program that records
//! a probe.
//!
//! The crate is pure: the location of an argument comes in as data, and others load the resulting
//! programs or write them to a file.
//!
//! | module | holds |
//! |---|---|
//! | [`module`] | programs and maps that belong together |
//! | [`payload`] | an event in the ring buffer, for the program that writes it and the reader |
//! | [`event`] | the program of a probe that sends an event |
//! | [`place`] | places in memory with their types, and the stack of a program as a structure |
//! | [`emit`] | statements over the assembler: values, conditions, maps |
//! | [`wire`] | reading of structures that programs write |
//! | [`operand`] | instructions that fetch a USDT probe's argument |
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
