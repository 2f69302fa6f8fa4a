//! The second pass: the losses of slow requests by culprit, and the slowest requests in full
//! detail.

mod blame;
mod groups;
mod slow;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use foldhash::fast::RandomState;
use ordering::Order as _;
use scene::{AbsenceTimes, Consumer, Request, StageEnd, StageKind};
use stats::Histogram;

use super::away;
use super::first::{FirstPass, Subject, Times, counts};
use super::pass::RequestLabels;
use super::source::Source;
use super::wakers::Wakers;

pub use blame::{
    BlamedTime, Culprit, blamed, kernel_of_stage, kernel_time, kernel_took, rest_of_stage, unknown,
};
pub use groups::{CauseGroup, CauseGroups, MainCause, Rest};
pub use slow::SlowRequests;

/// Bands of requests, by their lengths.
pub const BANDS: [Band; 3] = [
    Band {
        name: "p50",
        from: 0.4,
        to: Some(0.6),
        part: 0.5,
    },
    Band {
        name: "p99",
        from: 0.99,
        to: None,
        part: 0.99,
    },
    Band {
        name: "p99.9",
        from: 0.999,
        to: None,
        part: 0.999,
    },
];

/// Band of requests from one quantile up to another.
pub struct Band {
    /// Name of the band.
    pub name: &'static str,
    from: f64,
    to: Option<f64>,
    /// Quantile that it stands for.
    pub part: f64,
}

/// Losses of the requests of one band.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// Number of requests.
    pub requests: u64,
    /// Total length in nanoseconds.
    pub length: u64,
    /// Time that the kernel took.
    pub kernel: BlamedTime,
    /// Nanoseconds that no event explains.
    pub unknown: u64,
    /// Number of requests that the kernel explains: it took at least half of their excess over the
    /// median.
    pub explained: u64,
    /// Number of requests that the kernel possibly explains, by its upper bound.
    pub perhaps: u64,
    /// Losses by culprit's name.
    pub by: HashMap<String, (Culprit, BlamedTime), RandomState>,
    /// Groups of requests, by their main cause.
    pub main: CauseGroups,
    /// Nanoseconds of each stage.
    pub stages: BTreeMap<StageKind, u64>,
    /// Nanoseconds of each stage that the kernel's events attribute to nobody, by whether the
    /// thread's own work ends it.
    pub rest: BTreeMap<(StageKind, bool), u64>,
}

impl Sum {
    /// Returns the culprits by upper bound, largest first; equal ones by lower bound.
    pub fn culprits(&self) -> Vec<&(Culprit, BlamedTime)> {
        let mut by: Vec<_> = self.by.values().collect();
        by.order_by_key(|(culprit, blamed)| {
            (
                Reverse((blamed.at_most, blamed.at_least)),
                culprit.name.clone(),
            )
        });
        by
    }
}

/// Losses of a subject's requests.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    median: u64,
    /// Shortest and longest length in each band.
    limits: [(u64, u64); BANDS.len()],
    /// Sums of whole requests, by band.
    pub whole: [Sum; BANDS.len()],
    /// Losses of each stage.
    pub stages: HashMap<StageKind, StageLoss, RandomState>,
    /// Slow requests by connection.
    pub slow: SlowRequests,
}

/// Losses of a stage, in each band of its own lengths.
#[derive(Clone, Debug, Default)]
pub struct StageLoss {
    /// Median of its lengths.
    usual: u64,
    /// Value of each band's quantile.
    values: [u64; BANDS.len()],
    /// Losses at each quantile.
    bands: [NearestStage; BANDS.len()],
}

/// Stage whose length is the nearest to a quantile. A share of the loss of all longer stages would
/// be wrong where some are a hundred times as long: stages at the quantile may have lost nothing.
#[derive(Clone, Copy, Debug, Default)]
struct NearestStage {
    /// Difference of its length from the quantile; `None` if no stage came yet.
    distance: Option<u64>,
    /// Time that the kernel took of it, at least and at most.
    took: (u64, u64),
}

impl StageLoss {
    fn add(&mut self, length: u64, took: (u64, u64)) {
        for (band, value) in self.bands.iter_mut().zip(self.values) {
            let distance = value.abs_diff(length);
            if band.distance.is_none_or(|known| distance < known) {
                // The quantile of a histogram is rounded.
                let took = (took.0.min(value), took.1.min(value));
                *band = NearestStage {
                    distance: Some(distance),
                    took,
                };
            }
        }
    }

    /// Returns the time that the kernel took of the stage at each band's quantile, at least and at
    /// most.
    pub fn taken(&self) -> [(u64, u64); BANDS.len()] {
        self.bands.map(|band| band.took)
    }
}

impl Loss {
    fn from_times(times: &Times) -> Self {
        let limits = |lengths: &Histogram| {
            BANDS.map(|band| {
                (
                    lengths.quantile_from(band.from),
                    band.to.map_or(u64::MAX, |to| lengths.quantile(to)),
                )
            })
        };
        let stage = |(kind, lengths): (&StageKind, &Histogram)| {
            (
                *kind,
                StageLoss {
                    usual: lengths.quantile(0.5),
                    values: BANDS.map(|band| lengths.quantile(band.part)),
                    ..StageLoss::default()
                },
            )
        };
        let median = times.whole.quantile(0.5);
        let stages = times.stages.iter().map(stage).collect();
        Self {
            median,
            limits: limits(&times.whole),
            whole: Default::default(),
            stages,
            slow: SlowRequests::new(times),
        }
    }

    fn add(&mut self, request: &Request<RequestLabels>, source: &Source) {
        self.slow.add(request);
        let length = request.length();
        let in_band = |(from, to): &(u64, u64)| (*from..=*to).contains(&length);
        let by = if self.limits.iter().any(in_band) {
            blamed(request, source)
        } else {
            Vec::new()
        };
        let kernel = kernel_time(&by);
        let mut whole = std::mem::take(&mut self.whole);
        for (sum, limits) in whole.iter_mut().zip(self.limits) {
            if !in_band(&limits) {
                continue;
            }
            let late = length.saturating_sub(self.median);
            sum.requests += 1;
            sum.length = sum.length.saturating_add(length);
            sum.kernel.add(kernel.0, kernel.1);
            if kernel.1 > 0 {
                sum.kernel.count(length);
            }
            sum.explained += u64::from(late > 0 && kernel.0.saturating_mul(2) >= late);
            sum.perhaps += u64::from(late > 0 && kernel.1.saturating_mul(2) >= late);
            sum.unknown = sum.unknown.saturating_add(unknown(request));
            let usual = (self.median, |kind| self.usual(kind));
            groups::add(&mut sum.main, usual, request, (&by, source));
            for (culprit, blamed) in &by {
                let new = || Culprit {
                    wakers: Wakers::default(),
                    ..culprit.clone()
                };
                let (known, all) = sum
                    .by
                    .entry(culprit.name.clone())
                    .or_insert_with(|| (new(), BlamedTime::default()));
                known.wakers.merge(&culprit.wakers);
                all.count(length);
                all.add(blamed.at_least, blamed.at_most);
            }
            for stage in &request.stages {
                let kind = (stage.from, stage.to);
                let all = sum.stages.entry(kind).or_default();
                *all = all.saturating_add(stage.length());
                let rest = sum
                    .rest
                    .entry((kind, stage.ends == StageEnd::OwnWork))
                    .or_default();
                *rest = rest.saturating_add(rest_of_stage(stage));
            }
        }
        self.whole = whole;
        for stage in &request.stages {
            if let Some(loss) = self.stages.get_mut(&(stage.from, stage.to)) {
                loss.add(stage.length(), kernel_of_stage(stage));
            }
        }
    }
}

/// Consumer of the second pass.
pub struct SecondPass<'a> {
    source: &'a Source,
    /// Losses by subject.
    pub losses: HashMap<Subject, Loss, RandomState>,
    slowest: BinaryHeap<SlowRequest>,
    most: usize,
    over: u64,
    /// Number of requests longer than the threshold.
    pub beyond: u64,
    /// Times in which threads were away, with the requests that they hit.
    pub away: AbsenceTimes,
}

struct SlowRequest(Request<RequestLabels>);

impl SlowRequest {
    fn key(&self) -> (Reverse<u64>, u64, spdk_trace::ObjectName) {
        (Reverse(self.0.length()), self.0.begin().0, self.0.name)
    }
}
impl PartialEq for SlowRequest {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for SlowRequest {}
impl PartialOrd for SlowRequest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SlowRequest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<'a> SecondPass<'a> {
    /// Continues after the first pass, and takes over its times away. Keeps at most `most` of the
    /// slowest requests that take longer than `over` nanoseconds.
    pub fn new(first: &mut FirstPass<'a>, most: usize, over: u64) -> Self {
        let losses = first
            .times
            .iter()
            .map(|(subject, times)| (subject.clone(), Loss::from_times(times)))
            .collect();
        let (source, away) = (first.source, first.take_away());
        Self {
            source,
            losses,
            slowest: BinaryHeap::new(),
            most,
            over,
            beyond: 0,
            away,
        }
    }

    /// Takes the slowest requests, slowest first.
    pub fn take_slowest(&mut self) -> Vec<Request<RequestLabels>> {
        std::mem::take(&mut self.slowest)
            .into_sorted_vec()
            .into_iter()
            .map(|slow| slow.0)
            .collect()
    }
}

impl Consumer<RequestLabels> for SecondPass<'_> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        away::count(&mut self.away, self.source, request);
        if !counts(request, self.source) {
            return;
        }
        if let Some(loss) = self.losses.get_mut(&Subject::from_request(request)) {
            loss.add(request, self.source);
        }
        let length = request.length();
        if request.related.is_some() || (self.over > 0 && length <= self.over) {
            return;
        }
        self.beyond += 1;
        let is_longer = self
            .slowest
            .peek()
            .is_none_or(|SlowRequest(shortest)| shortest.length() < length);
        if self.most > 0 && (self.slowest.len() < self.most || is_longer) {
            self.slowest.push(SlowRequest(request.clone()));
            if self.slowest.len() > self.most {
                self.slowest.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests;
