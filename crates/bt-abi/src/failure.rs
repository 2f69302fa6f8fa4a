//! Run-time failures, by place in the script. Programs count them; the runtime reads the counters and reports them.
//!
//! The map [`FAILURES`] has one value: [`FAILURE_BYTES`] for each of [`Script::failures`](super::Script::failures), a `u64`,
//! how often it happened, and an `i64`, the last error. Only what fails touches it.

use std::collections::HashMap;

use bt_lang::Span;

/// The map's name. It is there if a script has failures.
pub const FAILURES: &str = "failures";
/// The bytes of a failure in the map's value.
pub const FAILURE_BYTES: u32 = 16;

/// Something that can fail, and where.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Failure {
    /// What.
    pub kind: FailureKind,
    /// Where in the script.
    pub span: Span,
}

/// What can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FailureKind {
    /// A helper gave an error.
    Helper(&'static str),
    /// A map has no room for another key.
    MapFull,
    /// A loop did as many turns as the kernel allows, and was not at its end.
    LoopCut,
    /// A division by 0, which gives 1, or its remainder, likewise.
    DivisionByZero,
    /// An index that the array does not have.
    OutOfBounds,
    /// The kernel's stack was not there.
    KernelStack,
    /// The process's stack was not there.
    UserStack,
    /// A string was longer than `max_strlen`.
    TextCut,
    /// A string's memory could not be read.
    TextUnreadable,
}

/// Failures as they are found, each once.
#[derive(Debug, Default)]
pub struct Failures {
    /// In the order in which they were found.
    pub all: Vec<Failure>,
    known: HashMap<Failure, u32>,
}

impl Failures {
    /// Where the map's value has it.
    pub fn place(&mut self, failure: Failure) -> u32 {
        let next = self.all.len() as u32;
        let index = *self.known.entry(failure).or_insert(next);
        if index == next {
            self.all.push(failure);
        }
        index * FAILURE_BYTES
    }
}
