//! What failed while a script ran: programs count it at its place, here it is read. The first time at a place is an event,
//! how often it was is known at the end.

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

/// How often failures are looked for while a script runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The helper by which keys come into maps.
const MAP_UPDATE: &str = "map_update_elem";
/// `ENOMEM`, negated as helpers give it.
const NO_MEMORY: i64 = -12;
/// `EBUSY`, `EDEADLK` and `ETIMEDOUT`, likewise: whoever was interrupted holds the lock that is needed.
const BUSY: [i64; 3] = [-16, -35, -110];

/// Something that failed at a place of the script for the first time. Its text is what the failure means.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RuntimeFailure {
    /// What failed.
    pub kind: FailureKind,
    /// Where in the script.
    pub span: Span,
    /// What a helper of the kernel's returned, an error number negated; 0 for what is no helper's.
    pub code: i64,
    /// The text of that error number, as `strerror(3)` has it.
    pub error: String,
}

impl RuntimeFailure {
    /// The helper of the kernel's that failed, if it was one.
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
        let of_helper = || self.helper().and_then(|helper| helper_words(helper, self.code));
        f.write_str(words(self.kind).or_else(of_helper).unwrap_or(&self.error))
    }
}

/// How often something failed at a place of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FailureCount {
    /// What failed.
    pub kind: FailureKind,
    /// Where in the script.
    pub span: Span,
    /// How often, at least once.
    pub count: u64,
}

/// What was seen so far.
pub(super) struct Failures {
    places: Vec<Failure>,
    /// How often each failure was.
    counts: Vec<u64>,
    last_read: Instant,
    /// Those that were not handed out yet.
    new: VecDeque<RuntimeFailure>,
}

impl Failures {
    pub(super) fn new(script: &Script) -> Self {
        let places = script.failures.clone();
        let counts = vec![0; places.len()];
        Self { places, counts, last_read: Instant::now(), new: VecDeque::new() }
    }

    /// Whether they were last read a while ago.
    pub(super) fn is_due(&self) -> bool {
        self.last_read.elapsed() >= POLL_INTERVAL
    }

    /// The next one that was not handed out.
    pub(super) fn next(&mut self) -> Option<RuntimeFailure> {
        self.new.pop_front()
    }

    /// Reads what was counted. What is only counted, as strings that were cut, is none that is handed out.
    pub(super) fn look(&mut self, session: &bpf_session::Session, machine: &Machine) -> Result<(), WrongSize> {
        self.last_read = Instant::now();
        if self.counts.is_empty() {
            return Ok(());
        }
        let first = ArrayIndex::default().to_ne_bytes();
        let counted = session.map(FAILURES).and_then(|map| map.lookup(&first).ok().flatten());
        let slots: Vec<FailureSlot> = read_values(FAILURES, counted.as_deref().unwrap_or_default())?;
        for ((failure, before), slot) in self.places.iter().zip(&mut self.counts).zip(slots) {
            let FailureSlot { count, error: code } = slot;
            let is_first = std::mem::replace(before, count) == 0 && count > 0;
            if is_first && !matches!(failure.kind, FailureKind::TextCut | FailureKind::TextUnreadable) {
                let error = machine.error_text(i32::try_from(-code).unwrap_or(0));
                self.new.push_back(RuntimeFailure { kind: failure.kind, span: failure.span, code, error });
            }
        }
        Ok(())
    }

    fn counts(&self) -> impl Iterator<Item = FailureCount> {
        let count =
            |(failure, count): (&Failure, &u64)| FailureCount { kind: failure.kind, span: failure.span, count: *count };
        self.places.iter().zip(&self.counts).map(count).filter(|it| it.count > 0)
    }
}

impl Session {
    /// How often things failed, at each place where they did, as it was when it was last read: while polling, and at the end.
    pub fn failure_counts(&self) -> Vec<FailureCount> {
        self.failures.counts().collect()
    }
}

/// What a helper's failure means, where it is not the error's text.
fn helper_words(helper: &str, code: i64) -> Option<&'static str> {
    match (helper, code) {
        (MAP_UPDATE, NO_MEMORY) => {
            Some("the kernel had no memory for another key at that moment, though the map is not full")
        }
        (MAP_UPDATE, code) if BUSY.contains(&code) => Some("the map was in use by what this hit has interrupted"),
        ("map_lookup_elem" | "map_lookup_percpu_elem", _) => Some("the map has no such key"),
        _ => None,
    }
}

/// What a failure means; nothing of those that are only counted, and of helpers'.
fn words(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::MapFull => {
            "the map is full: it has no room for another key (config = { max_map_keys = N } makes it larger)"
        }
        FailureKind::LoopCut => "the loop was cut after 8388608 turns: the kernel allows no more",
        FailureKind::DivisionByZero => "division by 0: the result is taken to be 1",
        FailureKind::OutOfBounds => "the index is outside of the array: what is there means nothing",
        FailureKind::KernelStack => "the kernel's stack could not be read",
        FailureKind::UserStack => "the process's stack could not be read",
        FailureKind::Helper(_) | FailureKind::TextCut | FailureKind::TextUnreadable => return None,
    })
}
