//! The first pass: usual lengths, the distribution of times, and the threshold of the slowest
//! requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::RandomState;
use scene::{AbsenceTimes, AbsenceTracker, Consumer, Interval, Request, StageKind, Survey, Tid};
use stats::{Histogram, Scale};
use trace_source::warn_problems;

use super::inputs::Inputs;
use super::pass::{PassStats, RequestLabels};
use super::source::Source;
use super::still_open::OpenRequests;
use super::{away, missing};

/// Subject of a table: objects of one group that one tracepoint creates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// Values of the fields that requests are grouped by.
    pub group: Vec<Option<Box<str>>>,
    /// Prefix of the objects' names (SPDK's object types have one letter).
    pub prefix: char,
    /// Tracepoint that creates the objects.
    pub first: u16,
    /// True if the objects belong to other objects.
    pub is_part: bool,
}

impl Subject {
    /// Returns the subject of a request.
    pub fn from_request(request: &Request<RequestLabels>) -> Self {
        Self {
            group: request.data.group.clone(),
            prefix: request.name.prefix,
            first: request.first(),
            is_part: request.related.is_some(),
        }
    }
}

/// Lengths of one subject.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Lengths of whole requests.
    pub whole: Histogram,
    /// Lengths of each stage.
    pub stages: HashMap<StageKind, Histogram, RandomState>,
}

/// Consumer of the first pass.
pub struct FirstPass<'a> {
    /// Source of the pass.
    pub source: &'a Source,
    /// Usual lengths of stages.
    pub survey: Survey,
    /// Lengths by subject.
    pub times: HashMap<Subject, Times, RandomState>,
    /// Lengths of the longest requests, the shortest on top.
    longest: BinaryHeap<Reverse<u64>>,
    most: usize,
    /// Number of histograms in `times`.
    lengths: usize,
    /// Requests that are in no table because there are too many groups.
    pub left_out: u64,
    /// Requests that began before the kernel's events did.
    pub early: u64,
    /// Requests that wait by design.
    pub excluded: u64,
    /// Requests that had not ended.
    pub still_open: OpenRequests,
    away: AbsenceTracker,
}

impl<'a> FirstPass<'a> {
    /// Creates a consumer that looks for the `most` slowest requests.
    fn new(source: &'a Source, most: usize) -> Self {
        Self {
            source,
            survey: Survey::default(),
            times: HashMap::default(),
            longest: BinaryHeap::new(),
            most,
            lengths: 0,
            left_out: 0,
            early: 0,
            excluded: 0,
            still_open: OpenRequests::default(),
            away: away::tracker(source),
        }
    }

    /// Adds the times of a request to its group, if there is room for another one.
    fn add(&mut self, request: &Request<RequestLabels>) {
        let (lengths, most) = (&mut self.lengths, MAX_HISTOGRAMS);
        let subject = Subject::from_request(request);
        if *lengths >= most && !self.times.contains_key(&subject) {
            self.left_out += 1;
            return;
        }
        let times = self.times.entry(subject).or_insert_with(|| {
            *lengths += 1;
            Times {
                whole: Histogram::new(Scale::for_next(*lengths)),
                ..Times::default()
            }
        });
        times.whole.add(request.length());
        for stage in &request.stages {
            let kind = (stage.from, stage.to);
            if *lengths < most || times.stages.contains_key(&kind) {
                let all = times.stages.entry(kind).or_insert_with(|| {
                    *lengths += 1;
                    Histogram::new(Scale::for_next(*lengths))
                });
                all.add(stage.length());
            }
        }
    }

    /// Takes the times in which threads that write rings were away; later calls return none.
    pub fn take_away(&mut self) -> AbsenceTimes {
        std::mem::take(&mut self.away).finish()
    }

    /// Returns the length of the shortest of the slowest requests; 0 if there are fewer than
    /// wanted.
    pub fn slowest_from(&self) -> u64 {
        let shortest = self.longest.peek().map_or(0, |Reverse(length)| *length);
        if self.longest.len() < self.most {
            0
        } else {
            shortest
        }
    }
}

/// Limit on the number of histograms, one for each group and one for each of its stages, of some
/// KiB each.
const MAX_HISTOGRAMS: usize = 8_192;

/// Runs the first pass, which looks for the `most` slowest requests. Reports what is missing.
pub fn survey(inputs: &Inputs, most: usize) -> (FirstPass<'_>, PassStats) {
    let source = &inputs.source;
    let mut first = FirstPass::new(source, most);
    let passed = inputs.pass("first of two passes", source.setting(), &mut first);
    warn_problems(&passed.problems, &inputs.observer);
    missing::report(source, &passed, &inputs.observer);
    (first, passed)
}

/// Returns whether a request counts: it ended, does not wait by design, and began after the
/// kernel's events, if there are any.
pub fn counts(request: &Request<RequestLabels>, source: &Source) -> bool {
    is_measured(request) && request.excluded.is_none() && !is_early(request, source)
}

/// Returns whether a request has a length: it ended, and has more than one record.
pub fn is_measured(request: &Request<RequestLabels>) -> bool {
    !request.unfinished && request.records.len() > 1
}

/// Returns whether a request began before the kernel's events: the cause of its delay is unknown.
/// Rings hold such requests when a capture begins.
pub fn is_early(request: &Request<RequestLabels>, source: &Source) -> bool {
    source.is_early(request.begin())
}

impl Consumer<RequestLabels> for FirstPass<'_> {
    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.away.interval(tid, &interval);
    }

    fn request(&mut self, request: &Request<RequestLabels>) {
        self.still_open.add(request);
        if !counts(request, self.source) {
            let is_whole = request.related.is_none() && is_measured(request);
            let is_early = is_early(request, self.source);
            self.early += u64::from(is_whole && is_early);
            self.excluded += u64::from(is_whole && !is_early && request.excluded.is_some());
            return;
        }
        request
            .stages
            .iter()
            .for_each(|stage| self.survey.stage(stage));
        self.add(request);
        if request.related.is_some() {
            return;
        }
        self.still_open.compare(request);
        if self.most > 0 {
            self.longest.push(Reverse(request.length()));
            if self.longest.len() > self.most {
                self.longest.pop();
            }
        }
    }
}
