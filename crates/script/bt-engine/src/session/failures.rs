//! Failures while a script runs: programs count them at their places, and here the counts are read.
//! The first failure at a place is an event; the number of failures is known at the end.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use bt_abi::failure::{FAILURES, FailureSlot};
use bt_abi::wire::{ArrayIndex, WrongSize, read_values};
use bt_abi::{Failure, FailureKind, Script};
use bt_lang::Span;
use bt_runtime::Lookups as _;

use super::Session;
use crate::lookups::Machine;

/// Interval between reads of failures while a script runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Helper that inserts keys into maps.
const MAP_UPDATE: &str = "map_update_elem";
/// `ENOMEM`, negated as helpers return it.
const NO_MEMORY: i64 = -12;
/// `EBUSY`, `EDEADLK` and `ETIMEDOUT`, likewise: the interrupted program holds the needed lock.
const BUSY: [i64; 3] = [-16, -35, -110];

/// A failure that happened at a place of the script for the first time. Its text is the meaning of
/// the failure.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RuntimeFailure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Place in the script.
    pub span: Span,
    /// Result of a helper of the kernel, a negated error number; 0 for other failures.
    pub code: i64,
    /// Text of that error number, as `strerror(3)` returns it.
    pub error: String,
}

impl RuntimeFailure {
    /// Returns the helper of the kernel that failed, if it was one.
    pub fn helper(&self) -> Option<&'static str> {
        match self.kind {
            FailureKind::Helper(helper) => Some(helper),
            FailureKind::MapFull => Some(MAP_UPDATE),
            _ => None,
        }
    }
}

impl Display for RuntimeFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let of_helper = || {
            self.helper()
                .and_then(|helper| helper_words(helper, self.code))
        };
        f.write_str(words(self.kind).or_else(of_helper).unwrap_or(&self.error))
    }
}

/// Number of failures at a place of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FailureCount {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Place in the script.
    pub span: Span,
    /// Number of failures, at least one.
    pub count: u64,
}

/// Failures that were seen so far.
pub(super) struct Failures {
    places: Vec<Failure>,
    /// Number of each failure.
    counts: Vec<u64>,
    last_read: Instant,
    /// First failures that were not handed out yet.
    new: VecDeque<RuntimeFailure>,
}

impl Failures {
    pub(super) fn new(script: &Script) -> Self {
        let places = script.failures.clone();
        let counts = vec![0; places.len()];
        Self {
            places,
            counts,
            last_read: Instant::now(),
            new: VecDeque::new(),
        }
    }

    /// Returns true if they were last read a while ago.
    pub(super) fn is_due(&self) -> bool {
        self.last_read.elapsed() >= POLL_INTERVAL
    }

    /// Returns the next one that was not handed out.
    pub(super) fn next(&mut self) -> Option<RuntimeFailure> {
        self.new.pop_front()
    }

    /// Reads the counts. Failures that are only counted, such as cut strings, are not handed out.
    pub(super) fn look(
        &mut self,
        session: &bpf_session::Session,
        machine: &Machine,
    ) -> Result<(), WrongSize> {
        self.last_read = Instant::now();
        if self.counts.is_empty() {
            return Ok(());
        }
        let first = ArrayIndex::default().to_ne_bytes();
        let counted = session
            .map(FAILURES)
            .and_then(|map| map.lookup(&first).ok().flatten());
        let slots: Vec<FailureSlot> =
            read_values(FAILURES, counted.as_deref().unwrap_or_default())?;
        for ((failure, before), slot) in self.places.iter().zip(&mut self.counts).zip(slots) {
            let FailureSlot { count, error: code } = slot;
            let is_first = std::mem::replace(before, count) == 0 && count > 0;
            if is_first
                && !matches!(
                    failure.kind,
                    FailureKind::TextCut | FailureKind::TextUnreadable
                )
            {
                let error = machine.error_text(i32::try_from(-code).unwrap_or(0));
                self.new.push_back(RuntimeFailure {
                    kind: failure.kind,
                    span: failure.span,
                    code,
                    error,
                });
            }
        }
        Ok(())
    }

    fn counts(&self) -> impl Iterator<Item = FailureCount> {
        let count = |(failure, count): (&Failure, &u64)| FailureCount {
            kind: failure.kind,
            span: failure.span,
            count: *count,
        };
        self.places
            .iter()
            .zip(&self.counts)
            .map(count)
            .filter(|it| it.count > 0)
    }
}

impl Session {
    /// Returns the number of failures at each place that has some, as of the last read: while
    /// polling, and at the end.
    pub fn failure_counts(&self) -> Vec<FailureCount> {
        self.failures.counts().collect()
    }
}

/// Returns the meaning of a helper's failure, if it is not the error's text.
fn helper_words(helper: &str, code: i64) -> Option<&'static str> {
    match (helper, code) {
        (MAP_UPDATE, NO_MEMORY) => Some(
            "the kernel had no memory for another key at that moment, though the map is not full",
        ),
        (MAP_UPDATE, code) if BUSY.contains(&code) => {
            Some("the map was in use by the code that this hit interrupted")
        }
        ("map_lookup_elem" | "map_lookup_percpu_elem", _) => Some("the map has no such key"),
        _ => None,
    }
}

/// Returns the meaning of a failure; `None` for those that are only counted, and for helpers'.
fn words(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::MapFull => {
            "the map is full: it has no room for another key (config = { max_map_keys = N } makes \
             it larger)"
        }
        FailureKind::LoopCut => {
            "the loop was cut after 8388608 iterations: the kernel allows no more"
        }
        FailureKind::DivisionByZero => "division by 0: the result is taken to be 1",
        FailureKind::OutOfBounds => {
            "the index is outside of the array: the value read there is meaningless"
        }
        FailureKind::KernelStack => "the kernel's stack could not be read",
        FailureKind::UserStack => "the process's stack could not be read",
        _ => return None,
    })
}
