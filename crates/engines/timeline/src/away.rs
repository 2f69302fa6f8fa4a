//! Threads that were away, in words and as JSON. Requests that arrive meanwhile have no record
//! until the thread is back.

use std::fmt::{self, Write as _};

use ordering::Order as _;
use scene::{
    Absence, AbsenceTimes, AbsenceTracker, Activity, ActivitySum, BootNanos, Request,
    ThreadAbsences, Tid,
};
use screen::counted;

use super::json::activity;
use super::pass::RequestLabels;
use super::source::{Source, calls_of_pollers};
use super::wakers::Wakers;
use super::words;
use text::json::quoted;

/// Limit on the threads that have a sentence.
const MAX_NAMED: usize = 4;
/// Limit on the times away of one thread in JSON; the longest are kept.
const MAX_LISTED: usize = 100;

/// Returns a tracker for the threads of a source that write rings.
pub(crate) fn tracker(source: &Source) -> AbsenceTracker {
    let calls = if source.calls_have_names {
        calls_of_pollers()
    } else {
        Vec::new()
    };
    AbsenceTracker::new(source.lcores.values().copied(), calls)
}

/// Counts a request in the times away of the thread that wrote its first record, unless it works
/// for another request or waits by design.
pub(crate) fn count(times: &mut AbsenceTimes, source: &Source, request: &Request<RequestLabels>) {
    let lcore = request
        .records
        .first()
        .and_then(|mark| source.lcores.get(&mark.lcore));
    if let Some(tid) = lcore.filter(|_| request.related.is_none() && request.excluded.is_none()) {
        times.request(*tid, request.begin(), request.end());
    }
}

/// Sums up what kept a thread away, by name, the longest first.
fn takers(source: &Source, times: &[Absence]) -> Vec<(String, u64)> {
    let mut by: Vec<(String, Wakers, u64)> = Vec::new();
    for away in times {
        for &ActivitySum {
            activity, nanos, ..
        } in &away.by
        {
            let name = match activity {
                Activity::Waits(tid) | Activity::Woken(tid) if tid != Tid(0) => {
                    source.taker(tid, away.to)
                }
                other => words::culprit(source, other, None, away.to),
            };
            let place = by.iter().position(|(known, ..)| *known == name);
            let place = place.unwrap_or_else(|| {
                by.push((name, Wakers::default(), 0));
                by.len() - 1
            });
            let (_, wakers, sum) = &mut by[place];
            wakers.add(activity, away.to, nanos);
            *sum = sum.saturating_add(nanos);
        }
    }
    by.order_by_key(|(.., nanos)| std::cmp::Reverse(*nanos));
    by.into_iter()
        .map(|(name, wakers, nanos)| (name + &wakers.until(source), nanos))
        .collect()
}

/// Sentence on how often a thread was away.
#[derive(Clone, Debug)]
pub struct AbsenceSentence {
    /// Thread, times, and main reason: "reactor_0 was away once for 52.9 ms".
    pub fact: String,
    /// Consequence for requests; empty if the fact has none.
    pub consequence: String,
}

impl fmt::Display for AbsenceSentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)?;
        match &*self.consequence {
            "" => Ok(()),
            consequence => write!(f, ": {consequence}"),
        }
    }
}

/// Returns a sentence for each thread on how often it was away, with the longest sum first. No
/// record shows these times.
pub(crate) fn sentences(source: &Source, times: &AbsenceTimes) -> Vec<AbsenceSentence> {
    let mut threads: Vec<_> = times.threads().collect();
    threads.order_by_key(|(_, found)| std::cmp::Reverse(length(&found.times)));
    let others = threads.split_off(threads.len().min(MAX_NAMED));
    let mut sentences: Vec<AbsenceSentence> = threads
        .into_iter()
        .map(|(tid, found)| sentence(source, tid, found))
        .collect();
    if !others.is_empty() {
        let were = if others.len() == 1 { "was" } else { "were" };
        let others = counted(others.len() as u64, "other thread");
        sentences.push(AbsenceSentence {
            fact: format!("{others} {were} away for less time: dptrace report --json lists all"),
            consequence: String::new(),
        });
    }
    sentences
}

/// Returns the sum of these times in nanoseconds.
fn length(times: &[Absence]) -> u64 {
    times.iter().map(Absence::length).sum()
}

fn sentence(
    source: &Source,
    tid: Tid,
    ThreadAbsences { times, left_out }: &ThreadAbsences,
) -> AbsenceSentence {
    let all = length(times);
    let longest = times.iter().map(Absence::length).max().unwrap_or_default();
    let lasted = words::lasted(times.len() as u64, all, longest);
    let by = takers(source, times);
    let mainly = by.first().map_or_else(String::new, |(name, nanos)| {
        let how = if words::is_most(*nanos, all) {
            "mainly"
        } else {
            "the largest part of it"
        };
        format!(", {how} because of {name}")
    });
    let name = source.thread(tid, times.first().map_or(BootNanos(0), |away| away.from));
    let missed = times.iter().filter(|away| away.in_flight == 0).count();
    let missed = match missed {
        0 => String::new(),
        _ if times.len() == 1 => "; no request was in flight".to_owned(),
        missed => format!("; {missed} of these hit no request in flight"),
    };
    let after = times.iter().map(|away| away.began_after).sum();
    let began = match after {
        0 => String::new(),
        after => format!(
            " ({} began within 1 ms after that)",
            counted(after, "request")
        ),
    };
    let more = match left_out {
        0 => String::new(),
        more => format!(
            "; there was no room for {} later",
            counted(*more, "more time")
        ),
    };
    AbsenceSentence {
        fact: format!("{name} was away {lasted}{mainly}{missed}"),
        consequence: format!("{}{began}{more}", words::UNREAD),
    }
}

/// Returns a JSON object for each thread, with its longest times away in time order.
pub(crate) fn json(source: &Source, times: &AbsenceTimes, begin: BootNanos) -> Vec<String> {
    times
        .threads()
        .map(|(tid, found)| thread_json(source, tid, found, begin))
        .collect()
}

fn thread_json(
    source: &Source,
    tid: Tid,
    ThreadAbsences { times, left_out }: &ThreadAbsences,
    begin: BootNanos,
) -> String {
    let (mut text, all) = (String::new(), length(times));
    let name = quoted(&source.thread(tid, times.first().map_or(begin, |away| away.from)));
    let (tid, count) = (tid.0, times.len());
    let envelope = text::json::begin("timeline.away");
    let _ = write!(
        text,
        "{envelope},\"away\":{name},\"tid\":{tid},\"count\":{count},\"ns\":{all},\"times\":["
    );
    let mut listed: Vec<&Absence> = times.iter().collect();
    listed.order_by_key(|away| std::cmp::Reverse(away.length()));
    listed.truncate(MAX_LISTED);
    listed.order_by_key(|away| away.from);
    for (index, away) in listed.into_iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let (at, length) = (away.from.0.saturating_sub(begin.0), away.length());
        let _ = write!(
            text,
            "{comma}{{\"at_ns\":{at},\"boot_ns\":{},\"length_ns\":{length}",
            away.from.0
        );
        let (flight, after) = (away.in_flight, away.began_after);
        let _ = write!(
            text,
            ",\"in_flight\":{flight},\"began_after\":{after},\"by\":["
        );
        for (
            index,
            ActivitySum {
                activity: what,
                nanos,
                ..
            },
        ) in away.by.iter().take(8).enumerate()
        {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(
                text,
                "{comma}{{{},\"ns\":{nanos}}}",
                activity(source, *what, away.to)
            );
        }
        text.push_str("]}");
    }
    let _ = write!(text, "],\"left_out\":{left_out}}}");
    text
}
