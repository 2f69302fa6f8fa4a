//! What comes of both passes, for text and JSON.

use std::cmp::Reverse;

use scene::{BootNanos, Request, Usual};
use screen::Screen;

use super::away;
use super::first::First;
use super::pass::{Kept, Passed};
use super::second::Second;
use super::source::Source;
use super::verdict::Verdict;

/// All that is to be printed.
pub struct Report<'a> {
    /// The source of both passes.
    pub source: &'a Source,
    /// The time of the first record, from which times are counted.
    pub begin: BootNanos,
    /// Terminal that the text is for.
    pub screen: Screen,
    /// The fields that requests are grouped by, as typed.
    pub by: &'a [String],
    /// Those of whole requests first, the slowest first.
    pub verdicts: Vec<Verdict<'a>>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<Request<Kept>>,
    /// Whether the text has the stages of all of them.
    pub all: bool,
    /// Requests that took longer than asked for, and that length in nanoseconds.
    pub beyond: u64,
    /// That length in nanoseconds.
    pub over: u64,
    /// Usual lengths of stages.
    pub usual: Usual,
    /// Sentences before the verdicts ([`unseen`]).
    pub sentences: Vec<String>,
    /// Sentences behind them: which requests are left out.
    pub left_out: Vec<String>,
    /// Lines of JSON with what the sentences before them say.
    pub lines: String,
}

/// Says what no figure shows: requests that had not ended, and times away in which requests waited unread.
pub fn unseen(first: &First<'_>, second: &Second<'_>, passed: &Passed) -> Vec<String> {
    let open = first.still_open.sentence(first.source, passed.end);
    open.into_iter().chain(away::sentences(first.source, &second.away)).collect()
}

/// The verdict of each group and object; the order is that of the times in their sentences.
pub fn verdicts<'a>(first: &'a First<'_>, second: &'a Second<'_>, by: &'a [String]) -> Vec<Verdict<'a>> {
    let of = |(subject, times)| Some(Verdict::of(by, subject, times, second.losses.get(subject)?));
    let mut verdicts: Vec<_> = first.times.iter().filter_map(of).collect();
    verdicts.sort_by_key(|it| (it.subject.is_part, Reverse(it.value()), it.subject));
    verdicts
}
