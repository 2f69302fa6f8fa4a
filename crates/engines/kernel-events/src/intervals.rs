//! What threads did, interval by interval, while a recording goes on: what a command needs that explains times by what the kernel
//! did meanwhile. Memory is bounded: sums are kept of all intervals, and single ones of those that are no work of the thread's own.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use scene::{Activities, Activity, BootNanos, Interval, Tid};
use sched_programs::{Facts, SchedError};

use crate::recorder::{Recorded, Recorder, Totals};

/// Names that are remembered at most.
const NAMES: usize = 1 << 20;

/// Which intervals are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Those of at least this many nanoseconds.
    pub at_least: u64,
    /// The newest ones, of each thread at most this many.
    pub most: usize,
}

/// Threads that are followed, and the recording of the events that show what they do.
pub struct Intervals {
    recorder: Recorder,
    activities: Activities,
    kept: Kept,
    tids: Vec<Tid>,
    names: HashMap<Tid, [u8; 16]>,
}

/// What a thread did.
#[derive(Clone, Debug, Default)]
pub struct ThreadIntervals {
    /// How long it did what, in nanoseconds.
    pub sums: HashMap<Activity, u64>,
    /// The single intervals, in the order of time: all but [`Activity::Runs`].
    pub intervals: VecDeque<Interval>,
    /// How many of these were dropped, since there were too many.
    pub dropped: u64,
}

/// What came of it.
pub struct Found {
    /// When it began, and when it ended.
    pub from: BootNanos,
    /// When it ended.
    pub to: BootNanos,
    /// What each thread did in between.
    pub threads: BTreeMap<Tid, ThreadIntervals>,
    /// The names of threads that events mention, as they were last: untrusted text that ends with the first 0.
    pub names: HashMap<Tid, [u8; 16]>,
    /// Events and losses.
    pub totals: Totals,
}

struct Kept {
    keep: Keep,
    threads: BTreeMap<Tid, ThreadIntervals>,
}

impl Intervals {
    /// Begins to follow these threads of a process, with a ring of that many bytes: a power of two, and a multiple of the page
    /// size.
    ///
    /// # Errors
    ///
    /// The kernel does not take the programs: it is too old, or the rights are missing.
    pub fn start(facts: &Facts, tgid: u32, tids: &[Tid], ring_bytes: u32, keep: Keep) -> Result<Self, SchedError> {
        let recorder = Recorder::start(facts, tgid, ring_bytes)?;
        let activities = Activities::new(tids.iter().copied(), recorder.started()).keeping(0);
        let threads = tids.iter().map(|tid| (*tid, ThreadIntervals::default())).collect();
        Ok(Self { recorder, activities, kept: Kept { keep, threads }, tids: tids.to_vec(), names: HashMap::new() })
    }

    /// From when on nothing is missing.
    pub fn started(&self) -> BootNanos {
        self.recorder.started()
    }

    /// Takes what has come; waits for more at most this long.
    ///
    /// # Errors
    ///
    /// An event that no program sends.
    pub fn next(&mut self, at_most: Duration) -> Result<(), SchedError> {
        let events = self.recorder.next(at_most)?;
        self.take(&events);
        let kept = &mut self.kept;
        self.activities.settle(|tid, interval| kept.add(tid, interval));
        Ok(())
    }

    /// Detaches the programs, and gives what the threads did up to that time.
    ///
    /// # Errors
    ///
    /// An event that no program sends, or the count of losses can't be read.
    pub fn finish(mut self, to: BootNanos) -> Result<Found, SchedError> {
        let from = self.recorder.started();
        let (recorder, rest) = (self.recorder, &mut self.activities);
        let (events, totals) = recorder.finish()?;
        for Recorded { event, name } in events.into_iter().filter(|recorded| recorded.event.at <= to) {
            rest.event(&event);
            self.names.extend(name);
        }
        let mut kept = self.kept;
        self.activities.settle_until(to, |tid, interval| kept.add(tid, interval));
        kept.threads.retain(|tid, _| self.tids.contains(tid));
        Ok(Found { from, to, threads: kept.threads, names: self.names, totals })
    }

    fn take(&mut self, events: &[Recorded]) {
        for Recorded { event, name } in events {
            self.activities.event(event);
            if let Some((tid, name)) = *name
                && (self.names.len() < NAMES || self.names.contains_key(&tid))
            {
                self.names.insert(tid, name);
            }
        }
    }
}

impl Kept {
    fn add(&mut self, tid: Tid, interval: Interval) {
        let length = interval.length();
        let thread = self.threads.entry(tid).or_default();
        *thread.sums.entry(interval.activity).or_default() += length;
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
        let keep = Keep { at_least: 10, most: 2 };
        let mut kept = Kept { keep, threads: BTreeMap::new() };
        for (from, to, activity) in [
            (0, 100, Activity::Runs),
            (100, 120, Activity::Stopped),
            (120, 125, Activity::Stopped),
            (125, 150, Activity::Waits(Tid(2))),
            (150, 170, Activity::Stopped),
        ] {
            kept.add(Tid(1), Interval { from: BootNanos(from), to: BootNanos(to), activity });
        }
        let thread = &kept.threads[&Tid(1)];
        assert_eq!(thread.intervals.iter().map(|interval| interval.from.0).collect::<Vec<_>>(), [125, 150]);
        assert_eq!((thread.dropped, thread.sums[&Activity::Stopped], thread.sums[&Activity::Runs]), (1, 45, 100));
    }
}
