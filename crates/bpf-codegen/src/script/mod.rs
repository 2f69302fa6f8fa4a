//! The compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`] out.
//!
//! | module | pass or data |
//! |---|---|
//! | [`interface`] | what goes in and comes out |
//! | `settings` | the script's settings |
//! | `resolve` | attach points to places |
//! | `check` | types; the tables of builtins and functions |
//! | `fold` | constants |
//! | `hir`, `ty` | the typed tree |
//! | `emit` | instructions |

mod check;
mod compile;
mod emit;
mod fold;
mod hir;
pub mod interface;
mod mentions;
mod probe;
mod resolve;
mod settings;
mod ty;
mod value_type;

pub use compile::{Compiled, compile};
pub use interface::{Script, TargetFacts};
