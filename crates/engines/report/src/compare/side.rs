//! One of two captures to compare: the times of its requests, and who took them.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use page::ComparedSide;
use scene::{Consumer, Request, Setting, StageEnd, StageKind};
use stats::{BATCHES, Batch, Histogram, Interval, mean_interval, quantile_interval};
use timeline::first::{FirstPass, Subject, Times, counts, survey};
use timeline::inputs::Inputs;
use timeline::pass::RequestLabels;
use timeline::second::{blamed, rest_of_stage, unknown};
use timeline::source::Source;
use timeline::verdict::{DEVICE_OR_OWN_CODE, OWN_CODE, UNKNOWN};
use timeline::words;

use crate::build::Axis;

/// Limit on the takers of one kind that are distinguished.
const MAX_CAUSES: usize = 1_024;
/// Name of the takers beyond a limit.
pub(super) const OTHERS: &str = "others";
/// Compared quantiles.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// Requests of one capture.
pub(super) struct Side {
    pub(super) about: ComparedSide,
    pub(super) kinds: BTreeMap<KindKey, Kind>,
}

/// Identity of a kind in both captures. Numbers of tracepoints may differ, so it has names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindKey {
    pub(super) is_part: bool,
    group: Vec<Option<Box<str>>>,
    first: String,
}

/// Requests of one kind.
pub(super) struct Kind {
    /// Name for a sentence.
    pub(super) name: String,
    pub(super) whole: Measured,
    /// Stages by the names of their tracepoints.
    pub(super) stages: BTreeMap<(String, String), Stage>,
    /// What each taker took of all requests.
    pub(super) causes: BTreeMap<String, Taken>,
    /// Number of requests of each batch.
    requests: [u64; BATCHES],
}

/// Sums of each batch.
pub(super) type Taken = [u64; BATCHES];

impl Kind {
    /// Returns what a taker took of a request in the mean, by what it took of all.
    pub(super) fn mean(&self, taken: Taken) -> Figure {
        mean(taken, self.requests)
    }
}

/// A stage, and its place among the others.
pub(super) struct Stage {
    pub(super) place: StageKind,
    pub(super) times: Measured,
}

/// Figures of times.
pub(super) struct Measured {
    pub(super) count: u64,
    /// The median and the 99th percentile.
    pub(super) quantiles: [Figure; 2],
    /// Time per request of the kind.
    pub(super) mean: Figure,
}

/// A figure with its interval.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) value: u64,
    pub(super) interval: Interval,
}

/// Passes over the requests of a capture twice: first for their lengths, then for the spread of
/// these over the capture's time.
pub(super) fn measure(inputs: &Inputs, title: String) -> Side {
    let source = &inputs.source;
    let (mut first, passed) = survey(inputs, 0);
    let setting = Setting {
        usual: std::mem::take(&mut first.survey).finish(),
        ..source.setting()
    };
    let mut spread = SpreadPass::new(&first, Axis::from_pass(&passed));
    inputs.pass("second of two passes", setting, &mut spread);
    let axis = spread.axis;
    let kind = |(subject, sums): (Subject, KindSums)| {
        let first_name = source.tpoint(subject.first).to_owned();
        let name = words::requests(&inputs.by, &subject.group, &first_name);
        let kind = sums.finish(name, first.times.get(&subject)?, source);
        let key = KindKey {
            is_part: subject.is_part,
            group: subject.group,
            first: first_name,
        };
        Some((key, kind))
    };
    Side {
        kinds: spread.kinds.into_iter().filter_map(kind).collect(),
        about: ComparedSide {
            title,
            span: axis.span(),
            has_kernel: source.kernel.is_some(),
        },
    }
}

/// Consumer of the second pass.
struct SpreadPass<'a> {
    source: &'a Source,
    axis: Axis,
    kinds: HashMap<Subject, KindSums, RandomState>,
}

/// Sums of one kind, by batch.
struct KindSums {
    whole: TimeSums,
    stages: HashMap<StageKind, TimeSums, RandomState>,
    causes: HashMap<String, Taken, RandomState>,
}

/// Sums of times, by batch.
struct TimeSums {
    limits: [u64; 2],
    mean: [Batch; BATCHES],
    /// Numbers of times up to each limit.
    shares: [[Batch; BATCHES]; 2],
}

impl<'a> SpreadPass<'a> {
    fn new(first: &FirstPass<'a>, axis: Axis) -> Self {
        let kind = |(subject, times): (&Subject, &Times)| {
            let stages = times.stages.iter();
            let sums = KindSums {
                whole: TimeSums::new(&times.whole),
                stages: stages
                    .map(|(kind, all)| (*kind, TimeSums::new(all)))
                    .collect(),
                causes: HashMap::default(),
            };
            (subject.clone(), sums)
        };
        Self {
            source: first.source,
            axis,
            kinds: first.times.iter().map(kind).collect(),
        }
    }

    /// Returns the batch of a request.
    fn batch(&self, request: &Request<RequestLabels>) -> usize {
        let at = u128::from(self.axis.at(request.end())) * BATCHES as u128;
        let nth = at / u128::from(self.axis.span().max(1));
        (nth as usize).min(BATCHES - 1)
    }
}

impl Consumer<RequestLabels> for SpreadPass<'_> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        if !counts(request, self.source) {
            return;
        }
        let (batch, source) = (self.batch(request), self.source);
        if let Some(sums) = self.kinds.get_mut(&Subject::from_request(request)) {
            sums.add(request, batch, source);
        }
    }
}

impl KindSums {
    fn add(&mut self, request: &Request<RequestLabels>, batch: usize, source: &Source) {
        self.whole.add(batch, request.length());
        for stage in &request.stages {
            if let Some(sums) = self.stages.get_mut(&(stage.from, stage.to)) {
                sums.add(batch, stage.length());
            }
        }
        if source.kernel.is_none() {
            return;
        }
        for (culprit, took) in blamed(request, source) {
            self.blame(&culprit.name_without_cpu(), batch, took.at_most);
        }
        for stage in &request.stages {
            let name = if stage.ends == StageEnd::OwnWork {
                OWN_CODE
            } else {
                DEVICE_OR_OWN_CODE
            };
            self.blame(name, batch, rest_of_stage(stage));
        }
        self.blame(UNKNOWN, batch, unknown(request));
    }

    fn blame(&mut self, name: &str, batch: usize, nanos: u64) {
        if nanos == 0 {
            return;
        }
        let is_known = self.causes.len() < MAX_CAUSES || self.causes.contains_key(name);
        let name = if is_known { name } else { OTHERS };
        if !self.causes.contains_key(name) {
            self.causes.insert(name.to_owned(), [0; BATCHES]);
        }
        if let Some(sums) = self.causes.get_mut(name) {
            sums[batch] = sums[batch].saturating_add(nanos);
        }
    }

    fn finish(self, name: String, times: &Times, source: &Source) -> Kind {
        let requests = self.whole.mean.map(|it| it.count);
        let stage = |(place, sums): (StageKind, TimeSums)| {
            let names = (
                source.tpoint(place.0).to_owned(),
                source.tpoint(place.1).to_owned(),
            );
            let times = sums.finish(times.stages.get(&place)?, requests);
            Some((names, Stage { place, times }))
        };
        Kind {
            name,
            whole: self.whole.finish(&times.whole, requests),
            stages: self.stages.into_iter().filter_map(stage).collect(),
            causes: self.causes.into_iter().collect(),
            requests,
        }
    }
}

impl TimeSums {
    fn new(all: &Histogram) -> Self {
        Self {
            limits: all.quantiles(&QUANTILES),
            mean: [Batch::default(); BATCHES],
            shares: [[Batch::default(); BATCHES]; 2],
        }
    }

    fn add(&mut self, batch: usize, length: u64) {
        self.mean[batch].add(length);
        for (share, limit) in self.shares.iter_mut().zip(self.limits) {
            share[batch].add(u64::from(length <= limit));
        }
    }

    fn finish(&self, all: &Histogram, requests: [u64; BATCHES]) -> Measured {
        let figure = |nth: usize| Figure {
            value: self.limits[nth],
            interval: quantile_interval(all, QUANTILES[nth], &self.shares[nth]),
        };
        Measured {
            count: all.count(),
            quantiles: [figure(0), figure(1)],
            mean: mean(self.mean.map(|it| it.sum), requests),
        }
    }
}

/// Returns the mean of these sums over the requests of each batch.
fn mean(sums: [u64; BATCHES], requests: [u64; BATCHES]) -> Figure {
    let batches = std::array::from_fn(|nth| Batch {
        count: requests[nth],
        sum: sums[nth],
    });
    let all = |of: &[u64]| of.iter().fold(0_u64, |all, it| all.saturating_add(*it));
    Figure {
        value: all(&sums) / all(&requests).max(1),
        interval: mean_interval(&batches),
    }
}
