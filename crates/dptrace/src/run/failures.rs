//! What failed while a script ran: programs count it at its place, here it is told. The first time at a place is told when
//! it is seen, how often it was at the end.

use std::time::{Duration, Instant};

use bpf_session::Session;
use bt_abi::Script;
use bt_abi::failure::{FAILURE_BYTES, FAILURES};
use bt_abi::{Failure, FailureKind};
use bt_runtime::{Lookups as _, Place, Printer};

use super::events::tell;
use super::lookups::Machine;
use super::source::ScriptText;
use crate::failure::note;

/// How often is looked for what failed, while a script runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The helper by which keys come into maps.
const MAP_UPDATE: &str = "map_update_elem";
/// `ENOMEM`, negated as helpers give it.
const NO_MEMORY: i64 = -12;
/// `EBUSY`, `EDEADLK` and `ETIMEDOUT`, likewise: whoever was interrupted holds the lock that is needed.
const BUSY: [i64; 3] = [-16, -35, -110];
/// What is said of a key for which the kernel had no memory.
const NO_MEMORY_FOR_KEY: &str = "the kernel had no memory for another key at that moment, though the map is not full";
/// What is said of a map whose lock is held by what was interrupted.
const MAP_IS_BUSY: &str = "the map was in use by what this hit has interrupted";
/// What is said of a map that has no room for another key.
const MAP_IS_FULL: &str = "the map is full: it has no room for another key (config = { max_map_keys = N } or \
                           BPFTRACE_MAX_MAP_KEYS=N makes it larger)";
/// What is said of a loop that was not at its end.
const LOOP_CUT: &str = "the loop was cut after 8388608 turns: the kernel allows no more";
/// What is told of strings.
const TEXT_CUT: &str = "cut: longer than max_strlen allows (config = { max_strlen = N } or BPFTRACE_MAX_STRLEN=N makes it \
                        larger)";
/// See [`TEXT_CUT`].
const TEXT_UNREADABLE: &str = "empty: nothing could be read at the address (-k tells where in the script)";

/// What was seen so far.
pub(super) struct Failures<'a> {
    script: &'a Script,
    text: &'a ScriptText,
    printer: Printer,
    /// How often each failure was.
    counts: Vec<u64>,
    looked: Instant,
}

impl<'a> Failures<'a> {
    pub(super) fn new(script: &'a Script, text: &'a ScriptText, printer: Printer) -> Self {
        Self { script, text, printer, counts: vec![0; script.failures.len()], looked: Instant::now() }
    }

    /// Whether the last look was a while ago.
    pub(super) fn is_time_to_look(&self) -> bool {
        self.looked.elapsed() >= LOOK_EVERY
    }

    /// Looks, and tells what is new; what is for standard output comes back.
    pub(super) fn look(&mut self, session: &Session, machine: &Machine) -> String {
        let mut shown = String::new();
        self.looked = Instant::now();
        if self.counts.is_empty() {
            return shown;
        }
        let counted = session.map(FAILURES).and_then(|map| map.lookup(&0_u32.to_ne_bytes()).ok().flatten());
        let slots = counted.as_deref().unwrap_or_default().chunks_exact(FAILURE_BYTES as usize);
        for ((failure, before), slot) in self.script.failures.iter().zip(&mut self.counts).zip(slots) {
            let ([count, code], _) = slot.as_chunks::<8>() else { continue };
            let (count, code) = (u64::from_ne_bytes(*count), i64::from_ne_bytes(*code));
            if std::mem::replace(before, count) == 0 && count > 0 {
                let place = self.text.place(failure.span);
                shown += &Self::first(*failure, code, &place, self.text, self.printer, machine);
            }
        }
        shown
    }

    /// Tells of a place's first failure; of strings only the sum is told.
    fn first(
        failure: Failure,
        code: i64,
        place: &Place,
        text: &ScriptText,
        printer: Printer,
        machine: &Machine,
    ) -> String {
        let complain = |words: &str| {
            if !printer.is_json() {
                tell(&format!("{}: WARNING: {words}\n{}", place.shown(), text.context(place)));
            }
        };
        let helper = match failure.kind {
            FailureKind::Helper(helper) => Some(helper),
            FailureKind::MapFull => Some(MAP_UPDATE),
            _ => None,
        };
        if let Some(helper) = helper {
            let error = machine.error_text(i32::try_from(-code).unwrap_or(0));
            let known = words(failure.kind).or_else(|| helper_words(helper, code));
            let words = known.map_or_else(|| error.clone(), str::to_owned);
            complain(&format!("{words}\nAdditional Info - helper: {helper}, retcode: {code}"));
            return printer.helper_error(&error, helper, code, place);
        }
        let Some(words) = words(failure.kind) else { return String::new() };
        complain(words);
        printer.runtime_error(words, place)
    }

    /// Tells how often things failed, where it was more than once.
    pub(super) fn tell_totals(&self) {
        let counted = || self.script.failures.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        for (failure, count) in counted().filter(|(_, count)| **count > 1) {
            if let Some(what) = often(failure.kind) {
                note(&format!("{}: {count} {what}", self.text.place(failure.span).shown()));
            }
        }
        let sum = |kind| counted().filter(|(failure, _)| failure.kind == kind).map(|(_, count)| *count).sum();
        note_count(sum(FailureKind::TextCut), "string", TEXT_CUT);
        note_count(sum(FailureKind::TextUnreadable), "string", TEXT_UNREADABLE);
    }
}

/// Tells how many there were of something, if there were any.
pub(super) fn note_count(count: u64, noun: &str, what: &str) {
    if count > 0 {
        note(&format!("{count} {noun}{} {what}", if count == 1 { "" } else { "s" }));
    }
}

/// What happened more than once at a place; nothing of what is told for the whole script.
fn often(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::MapFull => "values were not put in: the map was full",
        FailureKind::Helper(MAP_UPDATE) => "values were not put in, though the map was not full",
        FailureKind::LoopCut => "loops were cut",
        FailureKind::Helper("map_lookup_elem" | "map_lookup_percpu_elem") => "look-ups found no such key",
        FailureKind::Helper(_) => "calls of the helper failed",
        FailureKind::DivisionByZero => "divisions were by 0",
        FailureKind::OutOfBounds => "indices were out of bounds",
        FailureKind::KernelStack => "kernel stacks could not be read, and are empty",
        FailureKind::UserStack => "user stacks could not be read, and are empty",
        FailureKind::TextCut | FailureKind::TextUnreadable => return None,
    })
}

/// What is told of a helper's failure, where it is not the error's text.
fn helper_words(helper: &str, code: i64) -> Option<&'static str> {
    match (helper, code) {
        (MAP_UPDATE, NO_MEMORY) => Some(NO_MEMORY_FOR_KEY),
        (MAP_UPDATE, code) if BUSY.contains(&code) => Some(MAP_IS_BUSY),
        ("map_lookup_elem" | "map_lookup_percpu_elem", _) => Some("the map has no such key"),
        _ => None,
    }
}

/// What is told of a failure; nothing of those that are only counted.
fn words(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::MapFull => MAP_IS_FULL,
        FailureKind::LoopCut => LOOP_CUT,
        FailureKind::DivisionByZero => "division by 0: the result is taken to be 1",
        FailureKind::OutOfBounds => "the index is outside of the array: what is there means nothing",
        FailureKind::KernelStack => "the kernel's stack could not be read",
        FailureKind::UserStack => "the process's stack could not be read",
        FailureKind::Helper(_) | FailureKind::TextCut | FailureKind::TextUnreadable => return None,
    })
}
