//! Stages of the longest lives of a group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use spdk_trace::{TickRate, Ticks};

use super::stages::{TracedObject, length};

/// Limit on the lives kept of a group: all beyond the 99th percentile of 25,600, or the longest of
/// them if there are more.
const MAX_OBJECTS: usize = 256;
/// Number of lives of a group that are always kept.
const MIN_KEPT: usize = 4;

/// Stages of the longest lives, which are beyond the 99th percentile. Each takes no more memory
/// than its records, so that all together take no more than the trace.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// Lives with their lengths, stages and ends, the shortest on top.
    lives: BinaryHeap<(Reverse<u64>, Stages, Ticks)>,
}

/// Tracepoints that begin and end each stage, and its nanoseconds.
type Stages = Box<[((u16, u16), u64)]>;

/// Stage with the largest part of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargestStage {
    /// Tracepoints that begin and end it.
    pub stage: (u16, u16),
    /// Part of the time of all stages, 0 to 1.
    pub share: f64,
}

impl Tail {
    /// Adds a life, and keeps at most `most` of them.
    pub fn add(&mut self, life: &TracedObject, rate: TickRate, most: usize) {
        let length = length(life, rate);
        if self.lives.len() >= most
            && self
                .lives
                .peek()
                .is_some_and(|(Reverse(shortest), ..)| *shortest >= length)
        {
            return;
        }
        let end = life.records.last().map_or(Ticks(0), |(_, at)| *at);
        let stages = life.stages(rate).collect();
        self.lives.push((Reverse(length), stages, end));
        self.shorten(most);
    }

    /// Drops the shortest lives beyond `most`.
    pub fn shorten(&mut self, most: usize) {
        while self.lives.len() > most {
            self.lives.pop();
        }
    }

    /// Returns the number of lives.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// Iterates over the ends of the lives that are longer than `nanos`.
    pub fn ends_beyond(&self, nanos: u64) -> impl Iterator<Item = Ticks> {
        let beyond = self.lives.iter();
        beyond
            .filter(move |(Reverse(length), ..)| *length > nanos)
            .map(|(_, _, end)| *end)
    }

    /// Returns the limit for a group of `count` lives. If memory is scarce it is lower, but keeps
    /// all beyond the 99th percentile unless that falls a lot later on.
    pub fn most(count: u64, is_scarce: bool) -> usize {
        if is_scarce {
            usize::try_from(count / 25)
                .unwrap_or(MAX_OBJECTS)
                .clamp(MIN_KEPT, MAX_OBJECTS)
        } else {
            MAX_OBJECTS
        }
    }

    /// Returns the stage with the largest part of the lives of at least `nanos`, or at least of the
    /// longest one. `None` if there are no lives.
    pub fn largest(&self, nanos: u64) -> Option<LargestStage> {
        // A percentile of many is accurate to three digits, and may exceed all of them.
        let longest = self
            .lives
            .iter()
            .map(|(Reverse(length), ..)| *length)
            .max()?;
        let beyond = self
            .lives
            .iter()
            .filter(|(Reverse(length), ..)| *length >= nanos.min(longest));
        largest(beyond.flat_map(|(_, stages, _)| stages.iter().copied()))
    }
}

/// Returns the stage with the largest sum; of equal ones the first.
pub(crate) fn largest(stages: impl Iterator<Item = ((u16, u16), u64)>) -> Option<LargestStage> {
    let mut sums: BTreeMap<(u16, u16), u128> = BTreeMap::new();
    for (stage, nanos) in stages {
        *sums.entry(stage).or_default() += u128::from(nanos);
    }
    let all: u128 = sums.values().sum();
    let (stage, sum) = sums
        .into_iter()
        .max_by_key(|&(stage, sum)| (sum, Reverse(stage)))?;
    Some(LargestStage {
        stage,
        share: if all == 0 {
            0.0
        } else {
            sum as f64 / all as f64
        },
    })
}
