//! Figures of a capture in words.

use screen::counted;

use crate::meta::{CaptureSummary, ClockOff, FastestHits, JoinError};

/// Describes the error of the clock; `None` if it is unknown.
pub fn clock(end: &CaptureSummary) -> Option<String> {
    let ClockOff {
        readings,
        p50,
        p99,
        max,
    } = end.clock?;
    let readings = counted(readings, "reading");
    Some(format!(
        "to within {p99} ns (p99 of {readings}; {p50} ns at p50, {max} ns at most)"
    ))
}

/// Describes the error at hits of probes, which includes their own cost.
pub fn join(end: &CaptureSummary) -> Option<String> {
    let JoinError {
        hits,
        p50,
        p99,
        max,
    } = end.join?;
    let all = format!(
        "by {p50} ns at p50, {p99} ns at p99, {max} ns at most, of {}",
        counted(hits, "hit")
    );
    let Some(FastestHits {
        intervals,
        least,
        p99,
        ..
    }) = end.join_fastest
    else {
        return Some(all);
    };
    Some(format!(
        "{all}; the fastest of each 100 ms by {least} ns, and at most {p99} ns more (p99 of {intervals})"
    ))
}
