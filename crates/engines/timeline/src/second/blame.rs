//! Time that others took of requests, by culprit.

use std::cmp::Reverse;

use ordering::Order as _;
use scene::{Activity, Cpu, Request, StageOfRequest};

use crate::pass::RequestLabels;
use crate::source::Source;
use crate::wakers::Wakers;
use crate::words::{self, Taken};

/// Taker of a request's time. Threads with one name on one CPU count as one: a compiler has many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Name, as the subject of a sentence.
    pub name: String,
    /// Activity of the thread, without the cause of a wake-up.
    pub activity: Activity,
    /// Wakers that ended its waits, if it was blocked.
    pub wakers: Wakers,
    /// CPU on which the time was taken, if known.
    pub cpu: Option<Cpu>,
}

impl Culprit {
    /// Returns the name with who ended most of its waits, if that is known.
    pub fn full_name(&self, source: &Source) -> String {
        self.name.clone() + &self.wakers.until(source)
    }

    /// Returns the name without the CPU: the same name on several CPUs is one cause.
    pub fn name_without_cpu(&self) -> String {
        match self.cpu {
            Some(cpu) => self.name.replacen(&format!(" on CPU {}", cpu.0), "", 1),
            None => self.name.clone(),
        }
    }
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
    pub(super) fn add(&mut self, at_least: u64, at_most: u64) {
        self.at_least = self.at_least.saturating_add(at_least);
        self.at_most = self.at_most.saturating_add(at_most);
    }

    /// Counts a request of that length.
    pub(super) fn count(&mut self, length: u64) {
        self.requests += 1;
        self.length = self.length.saturating_add(length);
    }

    /// Compares the time of the largest taker with all that others took.
    pub fn taken(&self, culprit: &Culprit, all: (u64, u64)) -> Taken {
        let own = (self.at_least, self.at_most);
        Taken::new(culprit.activity.is_taken(), own, all)
    }

    /// Returns the mean over `of` requests, at least and at most.
    pub fn mean(&self, of: u64) -> (u64, u64) {
        (self.at_least / of.max(1), self.at_most / of.max(1))
    }
}

/// Returns what the kernel took of these shares in total, at least and at most.
pub fn kernel_took(of: impl Iterator<Item = (Activity, u64, u64)>) -> (u64, u64) {
    let taken = of.filter(|(activity, ..)| activity.is_taken());
    taken.fold((0, 0), |sum: (u64, u64), (_, least, most)| {
        (sum.0.saturating_add(least), sum.1.saturating_add(most))
    })
}

/// Returns the same for the result of [`blamed`].
pub fn kernel_time(by: &[(Culprit, BlamedTime)]) -> (u64, u64) {
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

/// Returns the nanoseconds of a stage that the kernel's events attribute to nobody.
pub fn rest_of_stage(stage: &StageOfRequest) -> u64 {
    let taken = stage.shares.iter().fold(stage.unknown, |all, share| {
        all.saturating_add(share.at_most)
    });
    stage.length().saturating_sub(taken)
}

/// Returns the nanoseconds of a request that no event explains.
pub fn unknown(request: &Request<RequestLabels>) -> u64 {
    request
        .stages
        .iter()
        .fold(0, |sum: u64, stage| sum.saturating_add(stage.unknown))
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
                        activity: activity.without_waker(),
                        wakers: Wakers::default(),
                        cpu,
                    },
                    BlamedTime::default(),
                ));
            }
            let (culprit, blamed) = &mut by[place];
            culprit.wakers.add(activity, stage.end, share.at_most);
            blamed.add(share.at_least, share.at_most);
        }
    }
    by.order_by_key(|(_, blamed)| Reverse((blamed.at_most, blamed.at_least)));
    by
}
