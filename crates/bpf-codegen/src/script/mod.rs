//! The compiler of the bpftrace language: a syntax tree and facts about the target in, a [`Script`] out.

pub mod interface;

pub use interface::{Script, TargetFacts};
