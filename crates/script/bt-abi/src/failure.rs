//! Failures at run time, each at its place in the script. Programs count failures there; the
//! runtime polls the counts and reports them.
//!
//! The only value of the map [`FAILURES`] is a [`FailureSlot`] for each of
//! [`Script::failures`](super::Script::failures). Only failures touch it.

use std::collections::HashMap;

use bt_lang::Span;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Name of the map. It exists if anything in the script can fail.
pub const FAILURES: &str = "failures";

/// A failure in the map's value.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FailureSlot {
    /// Number of failures.
    pub count: u64,
    /// Last error, negative as helpers return it; 0 for failures without an error.
    pub error: i64,
}

/// A possible failure, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Place in the script.
    pub span: Span,
}

/// Kinds of failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FailureKind {
    /// A helper returned an error.
    Helper(&'static str),
    /// A map has no room for another key.
    MapFull,
    /// A loop was cut: it reached the kernel's limit on iterations.
    LoopCut,
    /// A division by 0, whose result is 1; likewise for a remainder.
    DivisionByZero,
    /// An index outside of the array.
    OutOfBounds,
    /// The kernel's stack could not be read.
    KernelStack,
    /// The process's stack could not be read.
    UserStack,
    /// A string was longer than `max_strlen`.
    TextCut,
    /// A string's memory could not be read.
    TextUnreadable,
}

/// Collects failures while a script is compiled, each once.
#[derive(Debug, Default)]
pub struct Failures {
    /// Failures in the order in which they were found.
    pub all: Vec<Failure>,
    known: HashMap<Failure, u32>,
}

impl Failures {
    /// Returns the offset of a failure's [`FailureSlot`] in the map's value.
    pub fn place(&mut self, failure: Failure) -> u32 {
        let next = self.all.len() as u32;
        let index = *self.known.entry(failure).or_insert(next);
        if index == next {
            self.all.push(failure);
        }
        index * size_of::<FailureSlot>() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_a_slot() {
        let mut failures = Failures::default();
        let mut place = |kind| {
            failures.place(Failure {
                kind,
                span: Span::default(),
            })
        };
        let kinds = [
            FailureKind::MapFull,
            FailureKind::LoopCut,
            FailureKind::MapFull,
        ];
        assert_eq!(kinds.map(&mut place), [0, 16, 0]);
        let slot: FailureSlot = zerocopy::transmute!([3_i64, -14]);
        assert_eq!(
            slot,
            FailureSlot {
                count: 3,
                error: -14
            }
        );
    }
}
