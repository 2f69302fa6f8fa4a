//! Failures of a running script, in words: the first one at each place when it occurs, and the
//! total at the end.

use bt_engine::{FailureCount, FailureKind, RuntimeFailure};
use bt_lang::Span;
use bt_runtime::Printer;
use console::messages::{is_bpftrace_compat, note};
use text::printable;

use super::compat;
use super::events::print_error;
use super::source::ScriptText;

/// Helper that puts keys into maps.
const MAP_UPDATE: &str = "map_update_elem";
/// Note on strings that were cut.
const TEXT_CUT: &str = "cut: longer than max_strlen allows (config = { max_strlen = N } or \
                        BPFTRACE_MAX_STRLEN=N makes it larger)";
/// Note on strings that could not be read.
const TEXT_UNREADABLE: &str =
    "empty: nothing could be read at the address (-k reports where in the script)";

/// Reports a place's first failure; returns the text for standard output.
pub(super) fn first(failure: &RuntimeFailure, text: &ScriptText, printer: Printer) -> String {
    let place = text.place(failure.span);
    let complain = |words: &str| {
        if !printer.is_json() {
            print_error(&format!(
                "{}: WARNING: {words}\n{}",
                place.shown(),
                text.context(&place)
            ));
        }
    };
    let bpftrace = compat::failure_words(failure).filter(|_| is_bpftrace_compat());
    let words = bpftrace.map_or_else(|| failure.to_string(), str::to_owned);
    if let Some(helper) = failure.helper() {
        complain(&format!(
            "{words}\nAdditional Info - helper: {helper}, retcode: {}",
            failure.code
        ));
        return printer.helper_error(&failure.error, helper, failure.code, &text.in_json(place));
    }
    complain(&words);
    printer.runtime_error(&words, &text.in_json(place))
}

/// Reports the attach points that were never hit, as the script has them.
pub(super) fn report_never_hit(spans: &[Span], text: &ScriptText) {
    const MAX_LISTED: usize = 10;
    let written = |span: &Span| text.text.get(span.start as usize..span.end as usize);
    let points = spans
        .iter()
        .filter_map(written)
        .map(|point| printable::text(point.as_bytes()));
    if !spans.is_empty() {
        note(&format!(
            "never hit: {}",
            screen::join_some(points, MAX_LISTED)
        ));
    }
}

/// Reports the number of failures at each place with more than one; for strings, the sum.
pub(super) fn report_totals(counts: &[FailureCount], text: &ScriptText) {
    for FailureCount {
        kind, span, count, ..
    } in counts.iter().filter(|it| it.count > 1)
    {
        if let Some(what) = often(*kind) {
            note(&format!("{}: {count} {what}", text.place(*span).shown()));
        }
    }
    let sum = |kind| {
        counts
            .iter()
            .filter(|it| it.kind == kind)
            .map(|it| it.count)
            .sum()
    };
    note_count(sum(FailureKind::TextCut), "string", TEXT_CUT);
    note_count(sum(FailureKind::TextUnreadable), "string", TEXT_UNREADABLE);
}

/// Reports a number of something, if it is not 0.
pub(super) fn note_count(count: u64, noun: &str, what: &str) {
    if count > 0 {
        note(&format!(
            "{count} {noun}{} {what}",
            if count == 1 { "" } else { "s" }
        ));
    }
}

/// Returns the words for repeated failures at a place. `None` for a failure that is reported for
/// the whole script.
fn often(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::MapFull => "values were not stored: the map was full",
        FailureKind::Helper(MAP_UPDATE) => "values were not stored, though the map was not full",
        FailureKind::LoopCut => "loops were cut",
        FailureKind::Helper("map_lookup_elem" | "map_lookup_percpu_elem") => {
            "lookups found no such key"
        }
        FailureKind::Helper(_) => "calls of the helper failed",
        FailureKind::DivisionByZero => "divisions were by 0",
        FailureKind::OutOfBounds => "indices were out of bounds",
        FailureKind::KernelStack => "kernel stacks could not be read, and are empty",
        FailureKind::UserStack => "user stacks could not be read, and are empty",
        _ => return None,
    })
}
