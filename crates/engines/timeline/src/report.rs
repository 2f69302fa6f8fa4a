//! The outcome of both passes, for text and JSON.

use std::cmp::Reverse;

use ordering::Order as _;
use scene::{BootNanos, Request, UsualTimes};
use screen::Screen;

use super::away;
use super::first::FirstPass;
use super::pass::{PassStats, RequestLabels};
use super::second::SecondPass;
use super::source::Source;
use super::verdict::Verdict;

/// Everything to print.
pub struct Report<'a> {
    /// Source of both passes.
    pub source: &'a Source,
    /// Time of the first record, from which JSON counts times.
    pub begin: BootNanos,
    /// Origin of the times in the text.
    pub start: BootNanos,
    /// Terminal that the text is for.
    pub screen: Screen,
    /// Fields that requests are grouped by, as typed.
    pub by: &'a [String],
    /// Verdicts: those of whole requests first, the slowest first.
    pub verdicts: Vec<Verdict<'a>>,
    /// Slowest requests, slowest first.
    pub slowest: Vec<Request<RequestLabels>>,
    /// True if the text has the stages of all of them.
    pub all: bool,
    /// True if the text also lists requests that are not slow.
    pub lists_fast: bool,
    /// Number of requests that took longer than `over`.
    pub beyond: u64,
    /// Threshold for listed requests in nanoseconds; 0 if there is none.
    pub over: u64,
    /// Usual lengths of stages.
    pub usual: UsualTimes,
    /// Sentence before the verdicts, on requests that had not ended.
    pub still_open: Option<String>,
    /// Sentences after the verdicts, on times away.
    pub absences: Vec<String>,
    /// Sentences after the verdicts, on requests that are left out.
    pub left_out: Vec<String>,
    /// Lines of JSON with the content of `still_open` and `absences`.
    pub lines: String,
}

impl<'a> Report<'a> {
    /// Returns the verdicts on whole requests, the slowest first.
    pub fn whole_verdicts(&self) -> impl Iterator<Item = &Verdict<'a>> + Clone {
        self.verdicts.iter().filter(|it| !it.subject.is_part)
    }
}

/// Returns a sentence on requests that had not ended, if there are any.
pub fn still_open(first: &FirstPass<'_>, passed: &PassStats) -> Option<String> {
    first.still_open.sentence(first.source, passed.end)
}

/// Returns sentences on times away in which requests waited unread, which no figure shows.
pub fn absences(source: &Source, second: &SecondPass<'_>) -> Vec<String> {
    let sentences = away::sentences(source, &second.away);
    sentences.iter().map(ToString::to_string).collect()
}

/// Returns the verdict of each group and object, that with the slowest request first: a percentile
/// of many requests does not compare with the slowest of a few.
pub fn verdicts<'a>(
    first: &'a FirstPass<'_>,
    second: &'a SecondPass<'_>,
    by: &'a [String],
) -> Vec<Verdict<'a>> {
    let of = |(subject, times)| {
        Some(Verdict::new(
            by,
            subject,
            times,
            second.losses.get(subject)?,
        ))
    };
    let mut verdicts: Vec<_> = first.times.iter().filter_map(of).collect();
    verdicts.order_by_key(|it| {
        (
            it.subject.is_part,
            Reverse(it.times.whole.max()),
            it.subject,
        )
    });
    verdicts
}
