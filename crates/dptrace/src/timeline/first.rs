//! The first pass: what is usual, how the times are spread, and from when on a request is one of the slowest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::RandomState;
use timeline::{Consumer, Lengths, Request, StageKind, Survey};

use super::pass::Kept;
use super::source::Source;

/// What a table is about: objects that one tracepoint creates, of one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) group: Vec<Option<Box<str>>>,
    pub(super) prefix: char,
    /// The tracepoint that creates it.
    pub(super) first: u16,
    /// Whether it belongs to another object.
    pub(super) is_part: bool,
}

impl Subject {
    pub(super) fn of(request: &Request<Kept>) -> Self {
        Self {
            group: request.kept.group.clone(),
            prefix: request.name.prefix,
            first: request.first(),
            is_part: request.related.is_some(),
        }
    }
}

/// The times of one subject.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) whole: Lengths,
    pub(super) stages: HashMap<StageKind, Lengths, RandomState>,
}

/// The consumer of the first pass.
pub(super) struct First<'a> {
    source: &'a Source,
    pub(super) survey: Survey,
    pub(super) times: HashMap<Subject, Times, RandomState>,
    /// The lengths of the longest requests, the shortest on top.
    longest: BinaryHeap<Reverse<u64>>,
    most: usize,
    /// Requests that began before the kernel's events did.
    pub(super) early: u64,
}

impl<'a> First<'a> {
    /// Looks for that number of slowest requests.
    pub(super) fn new(source: &'a Source, most: usize) -> Self {
        Self {
            source,
            survey: Survey::default(),
            times: HashMap::default(),
            longest: BinaryHeap::new(),
            most,
            early: 0,
        }
    }

    /// The length of the shortest of the slowest; of fewer, 0.
    pub(super) fn slowest_from(&self) -> u64 {
        let shortest = self.longest.peek().map_or(0, |Reverse(length)| *length);
        if self.longest.len() < self.most { 0 } else { shortest }
    }
}

/// Whether a request is whole: it ended, and began when the kernel's events had begun, if there are any.
pub(super) fn counts(request: &Request<Kept>, source: &Source) -> bool {
    !request.unfinished && request.records.len() > 1 && !is_early(request, source)
}

/// Whether a request began before the kernel's events did: whatever delayed it is not known. Rings hold such requests when a
/// capture begins.
fn is_early(request: &Request<Kept>, source: &Source) -> bool {
    source.kernel.as_ref().is_some_and(|kernel| request.begin() < kernel.start)
}

impl Consumer<Kept> for First<'_> {
    fn request(&mut self, request: &Request<Kept>) {
        if !counts(request, self.source) {
            self.early += u64::from(request.related.is_none() && is_early(request, self.source));
            return;
        }
        let times = self.times.entry(Subject::of(request)).or_default();
        times.whole.add(request.length());
        for stage in &request.stages {
            self.survey.stage(stage);
            times.stages.entry((stage.from, stage.to)).or_default().add(stage.length());
        }
        if request.related.is_none() && self.most > 0 {
            self.longest.push(Reverse(request.length()));
            if self.longest.len() > self.most {
                self.longest.pop();
            }
        }
    }
}
