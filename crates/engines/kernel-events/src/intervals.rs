//! Intervals of threads while a recording runs, for commands that explain times by the kernel's
//! activity. Memory is bounded: sums cover all intervals, and only intervals other than the
//! thread's own work are kept individually.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use scene::{Activities, Activity, BootNanos, Interval, Tid};
use sched_programs::{Facts, ProcessSet, SchedError};

use crate::messages::RecordedEvent;
use crate::recorder::{Recorder, Totals};

/// Limit on remembered thread names.
const MAX_NAMES: usize = 1 << 20;

/// Limits on the kept intervals.
#[derive(Clone, Copy, Debug)]
pub struct IntervalLimits {
    /// Shortest interval to keep, in nanoseconds.
    pub at_least: u64,
    /// Limit on kept intervals per thread; the newest stay.
    pub most: usize,
}

/// Followed threads, and the recording of the events that show their activity.
pub struct Intervals {
    recorder: Recorder,
    activities: Activities,
    kept: KeptIntervals,
    tids: Vec<Tid>,
    names: HashMap<Tid, [u8; 16]>,
}

/// Activity of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadIntervals {
    /// Nanoseconds by activity.
    pub sums: HashMap<Activity, u64>,
    /// Individual intervals in the order of time, except [`Activity::Runs`].
    pub intervals: VecDeque<Interval>,
    /// Number of intervals that were dropped because there were too many.
    pub dropped: u64,
}

/// Results of a recording.
pub struct RecordedIntervals {
    /// Start of the recording.
    pub from: BootNanos,
    /// End of the recording.
    pub to: BootNanos,
    /// Activity of each thread in between.
    pub threads: BTreeMap<Tid, ThreadIntervals>,
    /// Last known names of threads that events mention: untrusted text that ends with the first 0.
    pub names: HashMap<Tid, [u8; 16]>,
    /// Number of events and of losses.
    pub totals: Totals,
}

struct KeptIntervals {
    keep: IntervalLimits,
    threads: BTreeMap<Tid, ThreadIntervals>,
}

impl Intervals {
    /// Begins to follow these threads of a process, with a ring of `ring_bytes` bytes: a power of
    /// two, and a multiple of the page size.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel rejects the programs, because it is too old or privileges are
    /// missing.
    pub fn start(
        facts: &Facts,
        tgid: u32,
        tids: &[Tid],
        ring_bytes: u32,
        keep: IntervalLimits,
    ) -> Result<Self, SchedError> {
        let recorder = Recorder::start(facts, &ProcessSet::one(tgid), ring_bytes)?;
        let activities = Activities::new(tids.iter().copied(), recorder.started()).keeping(0);
        let threads = tids
            .iter()
            .map(|tid| (*tid, ThreadIntervals::default()))
            .collect();
        Ok(Self {
            recorder,
            activities,
            kept: KeptIntervals { keep, threads },
            tids: tids.to_vec(),
            names: HashMap::new(),
        })
    }

    /// Returns the time from which nothing is missing.
    pub fn started(&self) -> BootNanos {
        self.recorder.started()
    }

    /// Takes the events of the next moment; waits at most `at_most` for them.
    ///
    /// # Errors
    ///
    /// Returns an error for an event that no program sends.
    pub fn next(&mut self, at_most: Duration) -> Result<(), SchedError> {
        let events = self.recorder.next(at_most)?;
        self.take(&events);
        let kept = &mut self.kept;
        self.activities
            .settle(|tid, interval| kept.add(tid, interval));
        Ok(())
    }

    /// Detaches the programs, and returns the activity of the threads up to that time.
    ///
    /// # Errors
    ///
    /// Returns an error for an event that no program sends, or if the count of losses can't be
    /// read.
    pub fn finish(mut self, to: BootNanos) -> Result<RecordedIntervals, SchedError> {
        let from = self.recorder.started();
        let (recorder, rest) = (self.recorder, &mut self.activities);
        let (events, totals) = recorder.finish()?;
        for RecordedEvent { event, name, .. } in events
            .into_iter()
            .filter(|recorded| recorded.event.at <= to)
        {
            rest.event(&event);
            self.names.extend(name);
        }
        let mut kept = self.kept;
        self.activities
            .settle_until(to, |tid, interval| kept.add(tid, interval));
        kept.threads.retain(|tid, _| self.tids.contains(tid));
        Ok(RecordedIntervals {
            from,
            to,
            threads: kept.threads,
            names: self.names,
            totals,
        })
    }

    fn take(&mut self, events: &[RecordedEvent]) {
        for RecordedEvent { event, name, .. } in events {
            self.activities.event(event);
            if let Some((tid, name)) = *name
                && (self.names.len() < MAX_NAMES || self.names.contains_key(&tid))
            {
                self.names.insert(tid, name);
            }
        }
    }
}

impl KeptIntervals {
    fn add(&mut self, tid: Tid, interval: Interval) {
        let length = interval.length();
        let thread = self.threads.entry(tid).or_default();
        *thread
            .sums
            .entry(interval.activity.without_waker())
            .or_default() += length;
        if interval.activity == Activity::Runs || length < self.keep.at_least {
            return;
        }
        if thread.intervals.len() >= self.keep.most {
            thread.intervals.pop_front();
            thread.dropped += 1;
        }
        thread.intervals.push_back(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_all_are_summed() {
        let keep = IntervalLimits {
            at_least: 10,
            most: 2,
        };
        let mut kept = KeptIntervals {
            keep,
            threads: BTreeMap::new(),
        };
        for (from, to, activity) in [
            (0, 100, Activity::Runs),
            (100, 120, Activity::Stopped(None)),
            (120, 125, Activity::Stopped(None)),
            (125, 150, Activity::Waits(Tid(2))),
            (150, 170, Activity::Stopped(None)),
        ] {
            kept.add(
                Tid(1),
                Interval {
                    from: BootNanos(from),
                    to: BootNanos(to),
                    activity,
                },
            );
        }
        let thread = &kept.threads[&Tid(1)];
        assert_eq!(
            thread
                .intervals
                .iter()
                .map(|interval| interval.from.0)
                .collect::<Vec<_>>(),
            [125, 150]
        );
        assert_eq!(
            (
                thread.dropped,
                thread.sums[&Activity::Stopped(None)],
                thread.sums[&Activity::Runs]
            ),
            (1, 45, 100)
        );
    }
}
