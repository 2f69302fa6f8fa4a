//! Compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`]
//! out.
//!
//! | module | pass or data |
//! |---|---|
//! | `compile` | the road: the passes in their order, and at its end the programs, maps and tables of a script |
//! | `settings` | the script's settings |
//! | `types` | types of C: definitions, look-ups, layouts for the runtime |
//! | `resolve` | attach points to places |
//! | `check` | bodies to typed trees; the tables of builtins and functions |
//! | `emit` | typed trees to instructions |
//! | `ctx` | what passes hand on |
//! | [`facts`] | what the compiler asks of the target |
//! | `probe` | what a body is compiled for |
//! | `hir`, `ty`, `map` | the typed tree, types, maps |
//! | `diagnostics`, `internal` | what is wrong with a script; what is wrong with the compiler |
//! | `fold`, `headers` | constants: how they are computed, those of C's headers |
//! | [`language`] | the names that the compiler knows |
#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_wrap, reason = "sizes, offsets and counts are bounded far below: see scratch::MOST")]
#![expect(clippy::match_same_arms, reason = "an arm says what is done for its kind, with its own reason")]
#![expect(clippy::struct_excessive_bools, reason = "they are facts and wishes of their own, not states")]

mod check;
mod compile;
mod ctx;
mod diagnostics;
mod emit;
pub mod facts;
mod fold;
mod headers;
mod hir;
mod internal;
pub mod language;
mod map;
mod probe;
mod process;
mod resolve;
mod settings;
mod ty;
mod types;
mod used_builtins;

pub use bt_abi::Script;
pub use compile::{Compiled, compile};
pub use facts::{ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces};
pub use process::FOLLOWED;
pub use resolve::NOTHING_LEFT;
