//! Compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`]
//! out.
//!
//! | module | pass or data |
//! |---|---|
//! | `compile` | the passes in their order; the last one builds a script's programs, maps and tables |
//! | `settings` | the script's settings |
//! | `types` | types of C: definitions, look-ups, layouts for the runtime |
//! | `resolve` | from attach points to places |
//! | `check` | from bodies to typed trees; the tables of builtins and functions |
//! | `emit` | from typed trees to instructions |
//! | `ctx` | data that the passes hand on |
//! | [`facts`] | facts that the compiler needs about the target |
//! | `probe` | context that a body is compiled for |
//! | `hir`, `ty`, `map` | the typed tree, types, maps |
//! | `diagnostics`, `internal` | mistakes of a script; mistakes of the compiler |
//! | `fold`, `headers` | constants: folding them, and those of C's headers |
//! | [`language`] | names that the compiler knows |
#![forbid(unsafe_code)]
#![expect(
    clippy::cast_possible_wrap,
    reason = "sizes, offsets and counts are bounded far below: see scratch::MOST"
)]
#![expect(
    clippy::match_same_arms,
    reason = "an arm says what is done for its kind, with its own reason"
)]
#![expect(
    clippy::struct_excessive_bools,
    reason = "they are facts and wishes of their own, not states"
)]

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
pub use compile::{Compilation, compile};
pub use facts::{
    ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces,
};
pub use process::FOLLOWED;
pub use resolve::NOTHING_LEFT;
