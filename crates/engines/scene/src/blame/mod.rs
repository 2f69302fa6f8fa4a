//! How much of a stage its thread's absences took: with bounds, since a device does not say when it was done.
//!
//! A stage is the time between two records of a request. Both are written by the request's thread, a poller. There are two
//! kinds, by what ends them:
//!
//! - The thread's **own work** ends it: without absences it would have been shorter by exactly these.
//! - The thread **finds** that something is done, by a device or a peer, at its next poll. When it was done is not known:
//!
//! ```text
//!   begin                                          end
//!     |-- polls --|=== absent ===|-- polls --|== absent ==| found
//!                      (1)                        (2)
//! ```
//!
//!   It lost all absences at most. Had it been done before the end of (1), polls after (1) would have found it; but whether the
//!   thread polled there, or ran something else that took long, no event shows. If the device was as fast as it is in
//!   undisturbed stages at their slowest (`usual`), then what of the last absences lies later than `usual` after the begin was
//!   taken at least: of those after which the thread ran for less than a turn of its poll loop. Without that assumption the
//!   lower bound is 0: the device may have been done just as the thread came back.
//!
//! Of a third kind ([`requests::Ending::Either`]) it is not known which of both it is. It has the bounds of the second, which hold
//! for both: what is late by exactly its absences is late by all of them at most, and by some of them at least.
//!
//! An absence is what keeps the thread from its own code: what the kernel takes ([`Activity::is_taken`]), a system call that
//! blocks, or one that takes longer than any turn of a poll loop should. A thread that waits for work, in `epoll_wait` for
//! example, is not absent: which calls these are is data (`idle`).

use crate::BootNanos;
use crate::activity::{Activity, Interval};

/// A stage of a request, on the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The record that begins it.
    pub begin: BootNanos,
    /// The record that ends it.
    pub end: BootNanos,
    /// What ends it.
    pub ends: Ends,
}

/// What ends a stage, as far as bounds depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The thread's own work.
    OwnWork,
    /// The thread finds that something is done, or it is not known whether it does.
    Found {
        /// The longest that this took in stages without an absence, in nanoseconds; `None` if there were none.
        usual: Option<u64>,
        /// How long the thread needs from its return until its record, in nanoseconds, if it does nothing else: a turn of its poll
        /// loop.
        turn: u64,
    },
}

/// A system call that takes longer than this is an absence, in nanoseconds. Pollers of sockets make calls in each turn.
const LONG_CALL: u64 = 100_000;

/// What a stage lost, and what is to be known of it beside that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reckoning {
    /// A share for each activity, in the order of time.
    pub shares: Vec<Share>,
    /// How long the thread was absent in the stage, in nanoseconds.
    pub absent: u64,
    /// How much of the stage no event explains, in nanoseconds.
    pub unknown: u64,
    /// The last absence in the stage, and how long the thread was there between it and the end, both in nanoseconds.
    pub returned: Option<(u64, u64)>,
}

/// All about a stage: see [`blame`] and [`unknown`].
pub fn reckon(stage: &Stage, intervals: &[Interval], idle: &[u32]) -> Reckoning {
    // Most stages: the thread ran all the time.
    let first = intervals.partition_point(|interval| interval.to <= stage.begin);
    if let Some(interval) = intervals.get(first)
        && interval.from <= stage.begin
        && interval.to >= stage.end
        && interval.activity == Activity::Runs
    {
        return Reckoning::default();
    }
    let mut reckoning =
        Reckoning { shares: blame(stage, intervals, idle), unknown: unknown(stage, intervals), ..Reckoning::default() };
    let mut present = 0;
    for interval in clipped(intervals, stage.begin, stage.end) {
        let length = interval.length();
        if is_absence(&interval, idle) {
            let before = reckoning.returned.filter(|_| present == 0).map_or(0, |(absence, _)| absence);
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

/// Whether the thread was kept from its own code.
pub(crate) fn is_absence(interval: &Interval, idle: &[u32]) -> bool {
    match interval.activity {
        Activity::Blocked(Some(call)) => !idle.contains(&call),
        Activity::Blocked(None) => true,
        Activity::Calls(_) => interval.length() >= LONG_CALL,
        other => other.is_taken(),
    }
}

/// How much of a stage one activity took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What the thread did instead of its work.
    pub activity: Activity,
    /// Without it the stage would have been shorter by this at least.
    pub at_least: u64,
    /// And by this at most.
    pub at_most: u64,
}

/// What a stage lost to its thread's absences: a share for each activity, in the order of time. `intervals` are those of its
/// thread, in the order of time, without gaps; `idle` are the numbers of the system calls in which it waits for work. Time of
/// which nothing is known is not blamed on anybody: see [`unknown`].
pub fn blame(stage: &Stage, intervals: &[Interval], idle: &[u32]) -> Vec<Share> {
    let mut shares = Vec::new();
    let at_least = |took| if stage.ends == Ends::OwnWork { took } else { 0 };
    for absence in absences(intervals, stage.begin, stage.end, idle) {
        let took = absence.length();
        add(&mut shares, Share { activity: absence.activity, at_least: at_least(took), at_most: took });
    }
    if let Ends::Found { usual, turn } = stage.ends {
        // Done by then; if that is not known, perhaps only as it was found.
        let done = usual.map_or(stage.end.0, |usual| stage.begin.0.saturating_add(usual));
        for absence in last_absences(stage, intervals, turn, idle) {
            let at_least = absence.to.0.saturating_sub(absence.from.0.max(done));
            // It is counted above.
            add(&mut shares, Share { activity: absence.activity, at_least, at_most: 0 });
        }
    }
    shares
}

/// How much of a stage its thread's events do not explain, in nanoseconds.
pub fn unknown(stage: &Stage, intervals: &[Interval]) -> u64 {
    let within = clipped(intervals, stage.begin, stage.end);
    let seen: u64 = within.clone().map(|interval| interval.length()).sum();
    let holes = within.filter(|interval| interval.activity == Activity::Unknown);
    let holes: u64 = holes.map(|interval| interval.length()).sum();
    stage.end.0.saturating_sub(stage.begin.0) - seen + holes
}

/// The intervals between two times, cut at these.
pub(crate) fn clipped(
    intervals: &[Interval],
    begin: BootNanos,
    end: BootNanos,
) -> impl Iterator<Item = Interval> + Clone + '_ {
    let first = intervals.partition_point(|interval| interval.to <= begin);
    let within = intervals[first..].iter().take_while(move |interval| interval.from < end);
    within.map(move |interval| Interval { from: interval.from.max(begin), to: interval.to.min(end), ..*interval })
}

/// When the thread was kept from its work between two times.
fn absences<'a>(
    intervals: &'a [Interval],
    begin: BootNanos,
    end: BootNanos,
    idle: &'a [u32],
) -> impl Iterator<Item = Interval> + 'a {
    clipped(intervals, begin, end).filter(|interval| is_absence(interval, idle))
}

/// The absences after which the thread ran for no longer than a turn of its poll loop until the stage's end: what was done during
/// these it could not find earlier. In the order of time.
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

/// Adds a share to those of the same activity.
fn add(shares: &mut Vec<Share>, share: Share) {
    match shares.iter_mut().find(|before| before.activity == share.activity) {
        Some(before) => {
            before.at_least += share.at_least;
            before.at_most += share.at_most;
        }
        None => shares.push(share),
    }
}

#[cfg(test)]
mod tests;
