//! The compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`] out.
//!
//! | module | pass or data |
//! |---|---|
//! | [`facts`] | what it asks of the target |
//! | `internal` | states that should be impossible |
//! | [`language`] | the names that it knows |
//! | `settings` | the script's settings |
//! | `resolve` | attach points to places |
//! | `check` | types; the tables of builtins and functions |
//! | `fold` | constants |
//! | `headers` | constants of C's headers |
//! | `hir`, `ty` | the typed tree |
//! | `emit` | instructions |
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_wrap, reason = "sizes, offsets and counts are bounded far below: see scratch::MOST")]
#![expect(clippy::match_same_arms, reason = "an arm says what is done for its kind, with its own reason")]
#![expect(clippy::struct_excessive_bools, reason = "they are facts and wishes of their own, not states")]

mod check;
mod compile;
mod emit;
pub mod facts;
mod fold;
mod headers;
mod hir;
mod internal;
pub mod language;
mod mentions;
mod probe;
mod process;
mod resolve;
mod settings;
mod ty;
mod value_type;

pub use bt_abi::Script;
pub use compile::{Compiled, compile};
pub use facts::{ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces};
