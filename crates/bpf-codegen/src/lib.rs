//! Makes BPF programs: from what is to be read at a probe to instructions, and back from the bytes that arrive to values.
//!
//! It is the only place where programs are made; recordings and scripts share it. It is pure: what it needs to know of
//! the target (where an argument lies) comes in as data, and what comes out is a [`Module`], which is loaded or written to
//! a file by others.
//!
//! | module | holds |
//! |---|---|
//! | [`module`] | programs and maps that belong together |
//! | [`payload`] | what an event looks like in the ring buffer, for the program that writes and for us who read |
//! | [`event`] | the program of a probe that sends an event |
//! | [`operand`] | the instructions that fetch a USDT probe's argument |
//! | [`script`] | the compiler of the bpftrace language |
#![forbid(unsafe_code)]

pub mod event;
pub mod module;
pub mod operand;
pub mod payload;
pub mod script;

pub use event::{EventId, Setting, Source};
pub use module::{BtfTarget, Module, ProgramDef, ProgramKind};
pub use payload::{FieldKind, Layout, Payload};
