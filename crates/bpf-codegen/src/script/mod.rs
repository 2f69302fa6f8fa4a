//! The compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`] out.

mod check;
mod emit;
mod fold;
mod hir;
pub mod interface;
mod probe;
mod ty;
mod value_type;

pub use interface::{Script, TargetFacts};
