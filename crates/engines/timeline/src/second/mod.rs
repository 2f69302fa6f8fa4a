//! The second pass: the losses of slow requests by culprit, and the slowest requests in full
//! detail.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use foldhash::fast::RandomState;
use scene::{AbsenceTimes, Activity, Consumer, Cpu, Request, StageEnd, StageKind, StageOfRequest};
use stats::Histogram;

use super::first::{FirstPass, Subject, Times, counts};
use super::pass::RequestLabels;
use super::source::Source;
use super::{away, words};

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

/// Taker of a request's time. Threads with one name on one CPU count as one: a compiler has many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Name, as the subject of a sentence.
    pub name: String,
    /// Activity of the thread.
    pub activity: Activity,
    /// CPU on which the time was taken, if known.
    pub cpu: Option<Cpu>,
}

/// Time that one taker took of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlamedTime {
    /// Number of requests of which it took time.
    pub requests: u64,
    /// Total length of these requests in nanoseconds.
    pub length: u64,
    /// Total nanoseconds that it took, at least.
    pub at_least: u64,
    /// Total nanoseconds that it took, at most.
    pub at_most: u64,
}

impl BlamedTime {
    fn add(&mut self, at_least: u64, at_most: u64) {
        self.at_least = self.at_least.saturating_add(at_least);
        self.at_most = self.at_most.saturating_add(at_most);
    }

    /// Counts a request of that length.
    fn of(&mut self, length: u64) {
        self.requests += 1;
        self.length = self.length.saturating_add(length);
    }

    /// Returns what it took of a request of that length, at least and at most, at the average share
    /// over the counted requests.
    pub fn of_one(&self, length: u64) -> (u64, u64) {
        (
            scaled(self.at_least, self.length, length),
            scaled(self.at_most, self.length, length),
        )
    }

    /// Returns the mean over `of` requests, at least and at most.
    pub fn mean(&self, of: u64) -> (u64, u64) {
        (self.at_least / of.max(1), self.at_most / of.max(1))
    }
}

/// Scales a part of a sum of lengths to one of these lengths; the result never exceeds that length.
pub fn scaled(part: u64, sum: u64, length: u64) -> u64 {
    let one = u128::from(part) * u128::from(length) / u128::from(sum.max(1));
    u64::try_from(one).map_or(length, |one| one.min(length))
}

/// Returns what the kernel took of these shares in total, at least and at most.
pub fn kernel_took(of: impl Iterator<Item = (Activity, u64, u64)>) -> (u64, u64) {
    let taken = of.filter(|(activity, ..)| activity.is_taken());
    taken.fold((0, 0), |sum: (u64, u64), (_, least, most)| {
        (sum.0.saturating_add(least), sum.1.saturating_add(most))
    })
}

/// Returns the same for the result of [`blamed`].
pub fn kernel_of(by: &[(Culprit, BlamedTime)]) -> (u64, u64) {
    kernel_took(
        by.iter()
            .map(|(culprit, blamed)| (culprit.activity, blamed.at_least, blamed.at_most)),
    )
}

/// Returns the same for a stage.
pub fn kernel_of_stage(stage: &StageOfRequest) -> (u64, u64) {
    kernel_took(
        stage
            .shares
            .iter()
            .map(|share| (share.activity, share.at_least, share.at_most)),
    )
}

/// Returns the nanoseconds of a request that no event explains.
pub fn unknown(request: &Request<RequestLabels>) -> u64 {
    request
        .stages
        .iter()
        .fold(0, |sum: u64, stage| sum.saturating_add(stage.unknown))
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
        by.sort_by_key(|(culprit, blamed)| {
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
}

/// Losses of a stage, in each band of its own lengths.
#[derive(Clone, Debug, Default)]
pub struct StageLoss {
    limits: [(u64, u64); BANDS.len()],
    /// Time that the kernel took, by band.
    pub bands: [BlamedTime; BANDS.len()],
}

impl Loss {
    fn of(times: &Times) -> Self {
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
                    limits: limits(lengths),
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
        }
    }

    fn add(&mut self, request: &Request<RequestLabels>, source: &Source) {
        let length = request.length();
        let in_band = |(from, to): &(u64, u64)| (*from..=*to).contains(&length);
        let by = if self.limits.iter().any(in_band) {
            blamed(request, source)
        } else {
            Vec::new()
        };
        let kernel = kernel_of(&by);
        for (sum, limits) in self.whole.iter_mut().zip(self.limits) {
            if !in_band(&limits) {
                continue;
            }
            let late = length.saturating_sub(self.median);
            sum.requests += 1;
            sum.length = sum.length.saturating_add(length);
            sum.kernel.add(kernel.0, kernel.1);
            if kernel.1 > 0 {
                sum.kernel.of(length);
            }
            sum.explained += u64::from(late > 0 && kernel.0.saturating_mul(2) >= late);
            sum.perhaps += u64::from(late > 0 && kernel.1.saturating_mul(2) >= late);
            sum.unknown = sum.unknown.saturating_add(unknown(request));
            for (culprit, blamed) in &by {
                let (_, all) = sum
                    .by
                    .entry(culprit.name.clone())
                    .or_insert_with(|| (culprit.clone(), BlamedTime::default()));
                all.of(length);
                all.add(blamed.at_least, blamed.at_most);
            }
            for stage in &request.stages {
                let kind = (stage.from, stage.to);
                let all = sum.stages.entry(kind).or_default();
                *all = all.saturating_add(stage.length());
                let taken = stage.shares.iter().fold(stage.unknown, |all, share| {
                    all.saturating_add(share.at_most)
                });
                let rest = sum
                    .rest
                    .entry((kind, stage.ends == StageEnd::OwnWork))
                    .or_default();
                *rest = rest.saturating_add(stage.length().saturating_sub(taken));
            }
        }
        for stage in &request.stages {
            let Some(loss) = self.stages.get_mut(&(stage.from, stage.to)) else {
                continue;
            };
            let (at_least, at_most) = kernel_of_stage(stage);
            for (blamed, (from, to)) in loss.bands.iter_mut().zip(loss.limits) {
                if (from..=to).contains(&stage.length()) {
                    blamed.of(stage.length());
                    blamed.add(at_least, at_most);
                }
            }
        }
    }
}

/// Returns the share of each culprit in one request, largest first.
pub fn blamed(request: &Request<RequestLabels>, source: &Source) -> Vec<(Culprit, BlamedTime)> {
    let mut by: Vec<(Culprit, BlamedTime)> = Vec::new();
    for stage in &request.stages {
        for share in &stage.shares {
            let (activity, cpu) = (share.activity, stage.cpu);
            let name = words::culprit(source, activity, cpu, stage.end);
            let place = by
                .iter()
                .position(|(known, _)| known.name == name)
                .unwrap_or(by.len());
            if place == by.len() {
                by.push((
                    Culprit {
                        name,
                        activity,
                        cpu,
                    },
                    BlamedTime::default(),
                ));
            }
            by[place].1.add(share.at_least, share.at_most);
        }
    }
    by.sort_by_key(|(_, blamed)| Reverse((blamed.at_most, blamed.at_least)));
    by
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
            .map(|(subject, times)| (subject.clone(), Loss::of(times)))
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
        if let Some(loss) = self.losses.get_mut(&Subject::of(request)) {
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
