//! What is usual for the stages of a trace, from those that nothing disturbed: found out in a first pass.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::blame::Ends;
use crate::ends::Ending;
use crate::request::{Consumer, Request, StageOfRequest};

/// The tracepoints between which a stage lies.
pub type StageKind = (u16, u16);

/// A stage is undisturbed if its thread was absent for less than this part of it: a timer's tick is short.
const DISTURBED: u64 = 20;
/// Beyond this number of stages the usual length is not the longest, but what 999 of 1,000 do not exceed.
const MANY: u64 = 1_000;
/// Kinds of stages that are looked at, and returns that are kept of each: they take at most 6 KiB and 64 KiB.
const MOST_KINDS: usize = 1_024;
const MOST_RETURNS: usize = 4_096;
/// A turn of a poll loop, in nanoseconds: if nothing shows how long it is, at least, and at most.
const TURN: u64 = 50_000;
const LEAST_TURN: u64 = 20_000;
const MOST_TURN: u64 = 1_000_000;

/// What is usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    stages: HashMap<StageKind, u64, RandomState>,
    /// How long a thread needs from its return until it has found what was done, in nanoseconds.
    pub turn: u64,
}

impl Default for Usual {
    fn default() -> Self {
        Self { stages: HashMap::default(), turn: TURN }
    }
}

impl Usual {
    /// The longest that an undisturbed stage between these tracepoints took, in nanoseconds; of 1,000 or more, what 999 of
    /// 1,000 did not exceed. `None` if there was none.
    pub fn of(&self, kind: StageKind) -> Option<u64> {
        self.stages.get(&kind).copied()
    }

    /// What ends a stage, with what is usual for it.
    pub(crate) fn ends(&self, kind: StageKind, ending: Ending) -> Ends {
        let (usual, turn) = (self.of(kind), self.turn);
        match ending {
            Ending::OwnWork => Ends::OwnWork,
            Ending::Found => Ends::Found { usual, turn },
            Ending::Either => Ends::Either { usual, turn },
        }
    }
}

/// The first pass: finds out what is usual.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    kinds: HashMap<StageKind, Kind, RandomState>,
}

#[derive(Clone, Debug, Default)]
struct Kind {
    undisturbed: Lengths,
    /// Absences, and how long the thread was there after them until the stage ended.
    returns: Vec<(u64, u64)>,
    next: usize,
}

impl Survey {
    /// Takes a stage.
    pub fn stage(&mut self, stage: &StageOfRequest) {
        let kind = (stage.from, stage.to);
        if self.kinds.len() >= MOST_KINDS && !self.kinds.contains_key(&kind) {
            return;
        }
        let length = stage.length();
        // A thread of which nothing is known disturbs nothing that could be known.
        if stage.unknown == length && length > 0 {
            return;
        }
        let seen = self.kinds.entry(kind).or_default();
        if stage.unknown == 0 && stage.absent <= length / DISTURBED {
            seen.undisturbed.add(length);
        }
        if let (Ends::Found { .. }, Some(returned)) = (stage.ends, stage.returned) {
            if seen.returns.len() < MOST_RETURNS {
                seen.returns.push(returned);
            } else {
                seen.returns[seen.next % MOST_RETURNS] = returned;
            }
            seen.next += 1;
        }
    }

    /// What is usual in all that was seen.
    pub fn finish(self) -> Usual {
        let mut returns = Vec::new();
        let mut stages = HashMap::default();
        for (kind, seen) in self.kinds {
            let Some(usual) = seen.undisturbed.usual() else { continue };
            stages.insert(kind, usual);
            // Whatever was waited for was done when the thread came back from an absence that is longer than that: then the
            // first turn found it.
            returns.extend(seen.returns.iter().filter(|(absence, _)| *absence >= usual).map(|(_, present)| *present));
        }
        returns.sort_unstable();
        // A few waited for something that was slow itself.
        let most = returns.get(returns.len().saturating_sub(1) * 95 / 100);
        let turn = most.map_or(TURN, |most| (2 * most).clamp(LEAST_TURN, MOST_TURN));
        Usual { stages, turn }
    }
}

impl<K> Consumer<K> for Survey {
    fn request(&mut self, request: &Request<K>) {
        request.stages.iter().for_each(|stage| self.stage(stage));
    }
}

/// Counts of lengths, each to a sixteenth.
#[derive(Clone, Debug, Default)]
struct Lengths {
    counts: Vec<u32>,
    count: u64,
    longest: u64,
}

impl Lengths {
    fn add(&mut self, length: u64) {
        let bucket = bucket(length);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.count += 1;
        self.longest = self.longest.max(length);
    }

    fn usual(&self) -> Option<u64> {
        if self.count < MANY {
            return (self.count > 0).then_some(self.longest);
        }
        let mut beyond = self.count / MANY;
        let mut bucket = self.counts.len();
        while let Some(below) = bucket.checked_sub(1) {
            let count = u64::from(self.counts[below]);
            if count > beyond {
                return Some(end_of(below).min(self.longest));
            }
            beyond -= count;
            bucket = below;
        }
        Some(self.longest)
    }
}

/// Where a length is counted.
fn bucket(length: u64) -> usize {
    let doublings = (u64::BITS - length.leading_zeros()).saturating_sub(5);
    doublings as usize * 16 + (length >> doublings) as usize
}

/// The longest length that is counted there.
fn end_of(bucket: usize) -> u64 {
    if bucket < 32 {
        return bucket as u64;
    }
    let doublings = bucket / 16 - 1;
    let first = (bucket % 16 + 16) as u64;
    (first << doublings) | ((1 << doublings) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_counted_to_a_sixteenth() {
        let mut before = 0;
        for length in (0..100_000).chain([1 << 40, u64::MAX / 3, u64::MAX]) {
            let bucket = bucket(length);
            let end = end_of(bucket);
            assert!(bucket >= before && end >= length && end - length <= length / 16, "{length}: {bucket}, {end}");
            before = bucket;
        }
    }

    #[test]
    fn of_many_one_in_a_thousand_may_be_longer() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.usual(), None);
        (0..999).for_each(|_| lengths.add(100));
        lengths.add(5_000);
        assert_eq!(lengths.usual(), Some(103));
        let mut few = Lengths::default();
        few.add(100);
        few.add(5_000);
        assert_eq!(few.usual(), Some(5_000));
    }
}
