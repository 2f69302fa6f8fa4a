//! Share of a stage that its thread's absences took: with bounds, since a device does not report
//! when it was done.
//!
//! A stage is the time between two records of a request. Both are written by the request's thread,
//! a poller. There are two kinds, by what ends them:
//!
//! - The thread's **own work** ends it: without absences it would have been shorter by exactly
//!   these.
//! - The thread **finds** that something is done, by a device or a peer, at its next poll. When it
//!   was done is not known:
//!
//! ```text
//!   begin                                          end
//!     |-- polls --|=== absent ===|-- polls --|== absent ==| found
//!                      (1)                        (2)
//! ```
//!
//!   It lost all absences at most. Had it been done before the end of (1), polls after (1) would
//!   have found it. But no event shows if the thread polled there, or ran something else that took
//!   long. The lower bound assumes that the device was as fast as in the slowest undisturbed stages
//!   (`usual`). Then the stage lost at least the part of the last absences that lies later than
//!   `usual` after the begin. The last absences are those after which the thread ran for less than
//!   a turn of its poll loop. Without that assumption the lower bound is 0: the device may have been
//!   done just as the thread came back.
//!
//! A third kind ([`requests::Ending::Either`]) may be either of the two. It has the bounds of the
//! second, which hold for both: a stage that is late by exactly its absences is late by all of them
//! at most, and by some of them at least.
//!
//! An absence is time in which the thread is kept from its own code: time that the kernel takes
//! ([`Activity::is_taken`]), a system call that blocks, or one that takes longer than any turn of a
//! poll loop should. A thread that waits for work, in `epoll_wait` for example, is not absent:
//! which calls these are is data (`idle`).

use crate::BootNanos;
use crate::activity::{Activity, Interval};

/// Stage of a request, on the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Time of the record that begins it.
    pub begin: BootNanos,
    /// Time of the record that ends it.
    pub end: BootNanos,
    /// Kind of its end.
    pub ends: StageEnd,
}

/// Kind of a stage's end, as far as bounds depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageEnd {
    /// The thread's own work.
    OwnWork,
    /// A poll that finds something done, or possibly so.
    Found {
        /// Longest time of undisturbed stages of this kind, in nanoseconds; `None` if there were
        /// none.
        usual: Option<u64>,
        /// Time in nanoseconds that the thread needs from its return until its record if it does
        /// nothing else: a turn of its poll loop.
        turn: u64,
    },
}

/// Length in nanoseconds above which a system call is an absence. Pollers of sockets make calls in
/// each turn.
const LONG_CALL: u64 = 100_000;

/// Losses of a stage, with its absent and its unknown time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageLosses {
    /// Share of each activity, in the order of time.
    pub shares: Vec<Share>,
    /// Time that the thread was absent in the stage, in nanoseconds.
    pub absent: u64,
    /// Time of the stage that no event explains, in nanoseconds.
    pub unknown: u64,
    /// Length of the last absence in the stage, and time between it and the end that the thread was
    /// there, both in nanoseconds.
    pub returned: Option<(u64, u64)>,
}

/// Returns the shares, the absences and the unknown time of a stage: see [`blame`] and [`unknown`].
pub fn reckon(stage: &Stage, intervals: &[Interval], idle: &[u32]) -> StageLosses {
    // Most stages: the thread ran all the time.
    let first = intervals.partition_point(|interval| interval.to <= stage.begin);
    if let Some(interval) = intervals.get(first)
        && interval.from <= stage.begin
        && interval.to >= stage.end
        && interval.activity == Activity::Runs
    {
        return StageLosses::default();
    }
    let mut reckoning = StageLosses {
        shares: blame(stage, intervals, idle),
        unknown: unknown(stage, intervals),
        ..StageLosses::default()
    };
    let mut present = 0;
    for interval in clipped(intervals, stage.begin, stage.end) {
        let length = interval.length();
        if is_absence(&interval, idle) {
            let before = reckoning
                .returned
                .filter(|_| present == 0)
                .map_or(0, |(absence, _)| absence);
            reckoning.absent += length;
            reckoning.returned = Some((before + length, 0));
            present = 0;
        } else {
            present += length;
            reckoning.returned = reckoning.returned.map(|(absence, _)| (absence, present));
        }
    }
    reckoning
}

/// Returns true if the thread was kept from its own code.
pub(crate) fn is_absence(interval: &Interval, idle: &[u32]) -> bool {
    match interval.activity {
        Activity::Blocked {
            call: Some(call), ..
        } => !idle.contains(&call),
        Activity::Blocked { call: None, .. } => true,
        Activity::Calls(_) => interval.length() >= LONG_CALL,
        other => other.is_taken(),
    }
}

/// Bounds on the time of a stage that one activity took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Activity of the thread instead of its work.
    pub activity: Activity,
    /// Lower bound: without the activity the stage would have been shorter by this at least.
    pub at_least: u64,
    /// Upper bound: it would have been shorter by this at most.
    pub at_most: u64,
}

/// Returns the losses of a stage to its thread's absences: a share for each activity, in the order
/// of time. `intervals` are those of its thread, in the order of time, without gaps. `idle` are the
/// numbers of the system calls in which it waits for work. Unknown time is not blamed on anybody:
/// see [`unknown`].
pub fn blame(stage: &Stage, intervals: &[Interval], idle: &[u32]) -> Vec<Share> {
    let mut shares = Vec::new();
    let at_least = |took| {
        if stage.ends == StageEnd::OwnWork {
            took
        } else {
            0
        }
    };
    for absence in absences(intervals, stage.begin, stage.end, idle) {
        let took = absence.length();
        add(
            &mut shares,
            Share {
                activity: absence.activity,
                at_least: at_least(took),
                at_most: took,
            },
        );
    }
    if let StageEnd::Found { usual, turn } = stage.ends {
        // Latest time at which it was done; the stage's end if nothing is usual.
        let done = usual.map_or(stage.end.0, |usual| stage.begin.0.saturating_add(usual));
        for absence in last_absences(stage, intervals, turn, idle) {
            let at_least = absence.to.0.saturating_sub(absence.from.0.max(done));
            // `at_most` is counted above.
            add(
                &mut shares,
                Share {
                    activity: absence.activity,
                    at_least,
                    at_most: 0,
                },
            );
        }
    }
    shares
}

/// Returns the time of a stage that its thread's events do not explain, in nanoseconds.
pub fn unknown(stage: &Stage, intervals: &[Interval]) -> u64 {
    let within = clipped(intervals, stage.begin, stage.end);
    let seen: u64 = within.clone().map(|interval| interval.length()).sum();
    let holes = within.filter(|interval| interval.activity == Activity::Unknown);
    let holes: u64 = holes.map(|interval| interval.length()).sum();
    stage.end.0.saturating_sub(stage.begin.0) - seen + holes
}

/// Returns the intervals between two times, cut at these.
pub(crate) fn clipped(
    intervals: &[Interval],
    begin: BootNanos,
    end: BootNanos,
) -> impl Iterator<Item = Interval> + Clone + '_ {
    let first = intervals.partition_point(|interval| interval.to <= begin);
    let within = intervals[first..]
        .iter()
        .take_while(move |interval| interval.from < end);
    within.map(move |interval| Interval {
        from: interval.from.max(begin),
        to: interval.to.min(end),
        ..*interval
    })
}

/// Returns the intervals between two times in which the thread was kept from its work.
fn absences<'a>(
    intervals: &'a [Interval],
    begin: BootNanos,
    end: BootNanos,
    idle: &'a [u32],
) -> impl Iterator<Item = Interval> + 'a {
    clipped(intervals, begin, end).filter(|interval| is_absence(interval, idle))
}

/// Returns the absences after which the thread ran for no longer than a turn of its poll loop until
/// the stage's end, in the order of time. It could not find earlier what was done during these.
fn last_absences(stage: &Stage, intervals: &[Interval], turn: u64, idle: &[u32]) -> Vec<Interval> {
    let within: Vec<Interval> = clipped(intervals, stage.begin, stage.end).collect();
    let (mut last, mut present) = (Vec::new(), 0);
    for interval in within.into_iter().rev() {
        if is_absence(&interval, idle) {
            last.push(interval);
        } else {
            present += interval.length();
        }
        if present > turn {
            break;
        }
    }
    last.reverse();
    last
}

/// Adds a share to that of the same activity.
fn add(shares: &mut Vec<Share>, share: Share) {
    match shares
        .iter_mut()
        .find(|before| before.activity == share.activity)
    {
        Some(before) => {
            before.at_least += share.at_least;
            before.at_most += share.at_most;
        }
        None => shares.push(share),
    }
}

#[cfg(test)]
mod tests;
