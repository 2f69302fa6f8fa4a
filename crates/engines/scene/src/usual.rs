//! Usual lengths of the stages of a trace, from undisturbed ones: learnt in a first pass.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use requests::Ending;
use stats::{Histogram, Scale, sorted_quantile};

use crate::blame::StageEnd;
use crate::request::{Consumer, Request, StageOfRequest};

/// Pair of the tracepoints between which a stage lies.
pub type StageKind = (u16, u16);

/// Denominator of the part of an undisturbed stage below which its thread's absence must stay: a
/// timer's tick is short.
const DISTURBED: u64 = 20;
/// Number of stages from which on one in that number may be longer than the usual length.
const MIN_STAGES: u64 = 1_000;
/// Limit on the kinds of stages that are looked at. The lengths of each take at most 30 KiB.
const MAX_KINDS: usize = 512;
/// Limit on the returns that are kept of each kind: 16 KiB.
const MAX_RETURNS: usize = 1_024;
/// Turn of a poll loop, in nanoseconds, if no stage shows it.
const DEFAULT_TURN_NS: u64 = 50_000;
/// Lower limit on the turn, in nanoseconds.
const MIN_TURN_NS: u64 = 50_000;
/// Upper limit on the turn, in nanoseconds.
const MAX_TURN_NS: u64 = 1_000_000;

/// Usual lengths of stages, and of a turn of the poll loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsualTimes {
    stages: HashMap<StageKind, u64, RandomState>,
    /// Time that a thread needs from its return until it has found what was done, in nanoseconds.
    pub turn: u64,
}

impl Default for UsualTimes {
    fn default() -> Self {
        Self {
            stages: HashMap::default(),
            turn: DEFAULT_TURN_NS,
        }
    }
}

impl UsualTimes {
    /// Returns the longest time that an undisturbed stage between these tracepoints took, in
    /// nanoseconds. From 1,000 stages on, one in 1,000 may be longer. `None` if there was none.
    pub fn longest(&self, kind: StageKind) -> Option<u64> {
        self.stages.get(&kind).copied()
    }

    /// Returns the kind of a stage's end, with its usual length.
    pub(crate) fn ends(&self, kind: StageKind, ending: Ending) -> StageEnd {
        match ending {
            Ending::OwnWork => StageEnd::OwnWork,
            Ending::Found | Ending::Either => StageEnd::Found {
                usual: self.longest(kind),
                turn: self.turn,
            },
        }
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            undisturbed: Histogram::new(Scale::MEDIUM),
            returns: Vec::new(),
            next: 0,
        }
    }
}

/// First pass: learns usual lengths.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    kinds: HashMap<StageKind, Kind, RandomState>,
}

#[derive(Clone, Debug)]
struct Kind {
    undisturbed: Histogram,
    /// Absences, each with the time that the thread was there after it until the stage ended.
    returns: Vec<(u64, u64)>,
    next: usize,
}

impl Survey {
    /// Takes a stage.
    pub fn stage(&mut self, stage: &StageOfRequest) {
        let kind = (stage.from, stage.to);
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&kind) {
            return;
        }
        let length = stage.length();
        // A thread of unknown activity gives no usual length.
        if stage.unknown == length && length > 0 {
            return;
        }
        let seen = self.kinds.entry(kind).or_default();
        if stage.unknown == 0 && stage.absent <= length / DISTURBED {
            seen.undisturbed.add(length);
        }
        if let (Ending::Found, Some(returned)) = (stage.ending, stage.returned) {
            if seen.returns.len() < MAX_RETURNS {
                seen.returns.push(returned);
            } else {
                seen.returns[seen.next % MAX_RETURNS] = returned;
            }
            seen.next += 1;
        }
    }

    /// Returns the usual lengths of all stages seen.
    pub fn finish(self) -> UsualTimes {
        self.usual()
    }

    /// Returns the usual lengths of the stages seen so far.
    pub fn usual(&self) -> UsualTimes {
        let mut returns = Vec::new();
        let mut stages = HashMap::default();
        for (kind, seen) in &self.kinds {
            let Some(usual) = usual(&seen.undisturbed) else {
                continue;
            };
            stages.insert(*kind, usual);
            // When the thread came back from an absence longer than that, the work that it waited
            // for was done: then the first turn found it.
            returns.extend(
                seen.returns
                    .iter()
                    .filter(|(absence, _)| *absence >= usual)
                    .map(|(_, present)| *present),
            );
        }
        returns.sort_unstable();
        // A few waited for something that was slow itself.
        let most = sorted_quantile(&returns, 0.95);
        let turn = most.map_or(DEFAULT_TURN_NS, |most| {
            (2 * most).clamp(MIN_TURN_NS, MAX_TURN_NS)
        });
        UsualTimes { stages, turn }
    }
}

/// Returns the longest length, but for one in a thousand; `None` if there is none.
fn usual(lengths: &Histogram) -> Option<u64> {
    (lengths.count() > 0).then(|| lengths.all_but(lengths.count() / MIN_STAGES))
}

/// Usual lengths learnt without end: of each kind of stages the newest count most, so that they
/// follow changes.
#[derive(Clone, Debug, Default)]
pub struct Experience(Survey);

/// Number of undisturbed stages of a kind above which half of them is forgotten.
const HALVING_COUNT: u64 = 1 << 15;

impl Experience {
    /// Takes a stage.
    pub fn stage(&mut self, stage: &StageOfRequest) {
        self.0.stage(stage);
        if let Some(kind) = self.0.kinds.get_mut(&(stage.from, stage.to))
            && kind.undisturbed.count() > HALVING_COUNT
        {
            kind.undisturbed.halve();
        }
    }

    /// Returns the usual lengths at a time whose stages are in `now`. If nine of ten undisturbed
    /// stages in `now` give a longer time than ever, for example because a device is slow, that
    /// time counts.
    pub fn usual(&self, now: &Survey) -> UsualTimes {
        let mut usual = self.0.usual();
        for (kind, seen) in now
            .kinds
            .iter()
            .filter(|(_, seen)| seen.undisturbed.count() > 0)
        {
            let most = seen.undisturbed.quantile(0.9);
            let known = usual.stages.entry(*kind).or_insert(most);
            *known = most.max(*known);
        }
        usual
    }
}

impl<K> Consumer<K> for Experience {
    fn request(&mut self, request: &Request<K>) {
        request.stages.iter().for_each(|stage| self.stage(stage));
    }
}

impl<K> Consumer<K> for Survey {
    fn request(&mut self, request: &Request<K>) {
        request.stages.iter().for_each(|stage| self.stage(stage));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(length: u64) -> StageOfRequest {
        StageOfRequest {
            from: 1,
            to: 2,
            begin: crate::BootNanos(0),
            end: crate::BootNanos(length),
            lcore: spdk_trace::Lcore(0),
            tid: None,
            cpu: None,
            ending: Ending::Found,
            ends: StageEnd::OwnWork,
            intervals: Vec::new(),
            intervals_left_out: 0,
            sums: Vec::new(),
            shares: Vec::new(),
            absent: 0,
            unknown: 0,
            returned: None,
        }
    }

    #[test]
    fn experience_knows_what_a_moment_does_not_show_and_follows_what_changes() {
        let mut experience = Experience::default();
        assert_eq!(experience.usual(&Survey::default()).longest((1, 2)), None);
        (0..100_000).for_each(|_| experience.stage(&stage(1_000)));
        let usual =
            |experience: &Experience, now: &Survey| experience.usual(now).longest((1, 2)).unwrap();
        assert_eq!(usual(&experience, &Survey::default()), 1_000);
        // One in ten of a moment says nothing; a device that is slow does.
        let mut now = Survey::default();
        (0..90).for_each(|_| now.stage(&stage(900)));
        (0..10).for_each(|_| now.stage(&stage(50_000)));
        assert_eq!(usual(&experience, &now), 1_000);
        (0..100).for_each(|_| now.stage(&stage(50_000)));
        assert!(usual(&experience, &now) >= 50_000);
        // It has become slower for good.
        (0..100_000).for_each(|_| experience.stage(&stage(2_000)));
        assert!(usual(&experience, &Survey::default()) >= 2_000);
        (0..1_000_000).for_each(|_| experience.stage(&stage(500)));
        assert!(usual(&experience, &Survey::default()) < 600);
    }

    #[test]
    fn one_of_a_thousand_stages_may_be_longer() {
        let usual_of = |lengths: &[u64]| {
            let mut all = Histogram::new(Scale::MEDIUM);
            for length in lengths {
                all.add(*length);
            }
            usual(&all)
        };
        assert_eq!(usual_of(&[]), None);
        assert_eq!(usual_of(&[100, 5_000]), Some(5_000));
        assert_eq!(usual_of(&[&[100; 999][..], &[5_000]].concat()), Some(100));
        assert_eq!(
            usual_of(&[&[100; 998][..], &[5_000; 2]].concat()),
            Some(5_000)
        );
    }
}
