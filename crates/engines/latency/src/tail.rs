//! What the longest lives of a group spent their time on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use spdk_trace::TickRate;

use super::stages::{Life, length};

/// Lives of a group that are kept: all beyond the 99th percentile of 25,600, and the longest of them where there are more.
const MOST: usize = 256;
/// Lives of a group that are kept in any case.
const FEWEST: usize = 4;

/// The stages of the longest lives, which are beyond the 99th percentile. Each has the place of the records that it was made
/// of, so that all together take no more than the trace.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// The shortest on top.
    lives: BinaryHeap<(Reverse<u64>, Stages)>,
}

/// The tracepoints between which each stage lies, and the nanoseconds that it took.
type Stages = Box<[((u16, u16), u64)]>;

/// The stage on which most of a time was spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Largest {
    /// The tracepoints between which it lies.
    pub stage: (u16, u16),
    /// Its part of the time of all stages, 0 to 1.
    pub share: f64,
}

impl Tail {
    /// Adds a life; no more are kept than that number.
    pub fn add(&mut self, life: &Life, rate: TickRate, most: usize) {
        let length = length(life, rate);
        if self.lives.len() >= most && self.lives.peek().is_some_and(|(Reverse(shortest), _)| *shortest >= length) {
            return;
        }
        self.lives.push((Reverse(length), life.stages(rate).collect()));
        self.shorten(most);
    }

    /// Keeps no more than that number.
    pub fn shorten(&mut self, most: usize) {
        while self.lives.len() > most {
            self.lives.pop();
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// How many are kept of a group of `count`; where memory is scarce fewer, and yet all beyond its 99th percentile if that does not
    /// fall much later on.
    pub fn most(count: u64, is_scarce: bool) -> usize {
        if is_scarce { usize::try_from(count / 25).unwrap_or(MOST).clamp(FEWEST, MOST) } else { MOST }
    }

    /// The stage on which the lives of at least `nanos` spent most, and the longest life in any case.
    pub fn largest(&self, nanos: u64) -> Option<Largest> {
        // A percentile of many is right to three digits, and may be above all of them.
        let longest = self.lives.iter().map(|(Reverse(length), _)| *length).max()?;
        let beyond = self.lives.iter().filter(|(Reverse(length), _)| *length >= nanos.min(longest));
        largest(beyond.flat_map(|(_, stages)| stages.iter().copied()))
    }
}

/// The stage on which most was spent; of two equal ones the first.
pub(crate) fn largest(stages: impl Iterator<Item = ((u16, u16), u64)>) -> Option<Largest> {
    let mut sums: BTreeMap<(u16, u16), u128> = BTreeMap::new();
    for (stage, nanos) in stages {
        *sums.entry(stage).or_default() += u128::from(nanos);
    }
    let all: u128 = sums.values().sum();
    let (stage, sum) = sums.into_iter().max_by_key(|&(stage, sum)| (sum, Reverse(stage)))?;
    Some(Largest { stage, share: if all == 0 { 0.0 } else { sum as f64 / all as f64 } })
}
