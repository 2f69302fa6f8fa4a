//! Main cause of each slow request. Requests are grouped by it, so that one stall that delayed many
//! requests does not hide causes that recur, and a sum over both hides neither.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use ordering::Order as _;
use scene::{Request, StageEnd, StageKind, StageOfRequest};

use super::{BlamedTime, Culprit, Loss, Sum, kernel_time, unknown};
use crate::pass::RequestLabels;
use crate::source::Source;
use crate::stalls::{Stall, StallCount};
use crate::wakers::Wakers;
use crate::words;

/// Main cause of a request's excess over the median.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MainCause {
    /// Name of the culprit that took half of the excess or more, alone or with others; without its
    /// CPU.
    Culprit(String),
    /// Stage with the largest excess, and whose time that was; nobody took half of the excess.
    Stage(StageKind, Rest),
}

/// Owner of the time that no culprit took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rest {
    /// The code of the thread that serves the request.
    OwnCode,
    /// A device or a peer, or the thread's own code: it is unknown which.
    DeviceOrOwnCode,
    /// Nobody knows: no event explains the time.
    Unknown,
}

/// Requests with one main cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CauseGroup {
    /// Number of requests.
    pub requests: u64,
    /// Least and largest time that the cause took of one of them, in nanoseconds: the smallest of
    /// the lower bounds, and the largest of the upper bounds.
    pub took: Option<(u64, u64)>,
    /// Largest time that others than the cause took of one of them, in nanoseconds; 0 if none of
    /// these is considerable.
    pub others_at_most: u64,
    /// Sum of the upper bounds, which orders the groups.
    pub all: u64,
    /// Stalls that delayed them.
    pub stalls: StallCount,
    /// Wakers that ended the waits, if the cause is a call that blocks.
    pub wakers: Wakers,
}

impl CauseGroup {
    fn add(&mut self, (least, most): (u64, u64), stall: Option<Stall>) {
        self.requests += 1;
        let (low, high) = self.took.unwrap_or((least, most));
        self.took = Some((low.min(least), high.max(most)));
        self.all = self.all.saturating_add(most);
        match stall {
            Some(stall) => self.stalls.add(stall),
            None => self.stalls.add_unknown(),
        }
    }

    /// Returns the number of events that delayed them: stalls, or else requests.
    fn events(&self, cause: &MainCause) -> u64 {
        match cause {
            MainCause::Culprit(_) => self.stalls.count(),
            MainCause::Stage(..) => self.requests,
        }
    }
}

/// Groups of a band's requests, by their main cause.
pub type CauseGroups = HashMap<MainCause, CauseGroup, RandomState>;

impl Sum {
    /// Returns the groups of requests with one main cause, the largest sum of time first.
    pub fn groups(&self) -> Vec<(&MainCause, &CauseGroup)> {
        let mut groups: Vec<_> = self.main.iter().collect();
        groups.order_by_key(|(cause, group)| (std::cmp::Reverse(group.all), *cause));
        groups
    }

    /// Returns the number of separate events that delayed these requests: requests that one stall
    /// delayed count as one.
    pub fn events(&self) -> u64 {
        self.main
            .iter()
            .map(|(cause, group)| group.events(cause))
            .sum()
    }
}

/// Adds a request of a band to the group of its main cause.
pub(super) fn add(
    groups: &mut CauseGroups,
    loss: (u64, impl Fn(StageKind) -> u64),
    request: &Request<RequestLabels>,
    (by, source): (&[(Culprit, BlamedTime)], &Source),
) {
    let (median, usual) = loss;
    let late = request.length().saturating_sub(median).max(1);
    let (kernel, is_half) = (kernel_time(by), |taken: u64| {
        taken.saturating_mul(2) >= late
    });
    let largest = by.first().filter(|(_, blamed)| is_half(blamed.at_most));
    let largest = largest.or_else(|| {
        let mut taken = by.iter().filter(|(culprit, _)| culprit.activity.is_taken());
        taken.next().filter(|_| is_half(kernel.1))
    });
    if let Some((culprit, blamed)) = largest {
        let taken = blamed.taken(culprit, kernel);
        let stage = stage_of(request, &culprit.name, source);
        let stall = stage.and_then(|stage| Stall::of_stage(stage, culprit.activity));
        let group = groups
            .entry(MainCause::Culprit(culprit.name_without_cpu()))
            .or_default();
        group.add(taken.own, stall);
        group.wakers.merge(&culprit.wakers);
        let (_, others) = taken.others.unwrap_or_default();
        group.others_at_most = group.others_at_most.max(others);
        return;
    }
    let excess = |stage: &&StageOfRequest| {
        let usual = usual((stage.from, stage.to));
        stage.length().saturating_sub(usual)
    };
    let Some(stage) = request.stages.iter().max_by_key(excess) else {
        return;
    };
    let rest = if is_half(unknown(request)) {
        Rest::Unknown
    } else if stage.ends == StageEnd::OwnWork {
        Rest::OwnCode
    } else {
        Rest::DeviceOrOwnCode
    };
    let group = groups
        .entry(MainCause::Stage((stage.from, stage.to), rest))
        .or_default();
    group.add((stage.length(), stage.length()), None);
    group.others_at_most = group.others_at_most.max(kernel.1);
}

/// Returns the stage of which a culprit took most.
fn stage_of<'a>(
    request: &'a Request<RequestLabels>,
    name: &str,
    source: &Source,
) -> Option<&'a StageOfRequest> {
    let taken = |stage: &&StageOfRequest| -> u64 {
        let shares = stage
            .shares
            .iter()
            .filter(|share| words::culprit(source, share.activity, stage.cpu, stage.end) == name);
        shares.map(|share| share.at_most).sum()
    };
    request.stages.iter().max_by_key(taken)
}

impl Loss {
    /// Returns the usual length of a stage: its median.
    pub(crate) fn usual(&self, kind: StageKind) -> u64 {
        self.stages.get(&kind).map_or(0, |stage| stage.usual)
    }
}
