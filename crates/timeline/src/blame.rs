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
//!   Had it been done before the end of (1), the polls after (1) would have found it: (1) took nothing. Only absences after
//!   which the thread ran for less than a turn of its poll loop can have taken something: at most their whole length. If the
//!   device was as fast as it is in undisturbed stages at their slowest (`usual`), then what lies later than `usual` after the
//!   begin was taken at least. Without that assumption the lower bound is 0: the device may have been done just as the thread
//!   came back.

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

/// What ends a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The thread's own work.
    OwnWork,
    /// The thread finds that something is done.
    Found {
        /// The longest that this took in stages without an absence, in nanoseconds; `None` if there were none.
        usual: Option<u64>,
        /// How long the thread needs at most from its return until its record, in nanoseconds: a turn of its poll loop.
        turn: u64,
    },
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
/// thread, in the order of time, without gaps. Time of which nothing is known is not blamed on anybody: see [`unknown`].
pub fn blame(stage: &Stage, intervals: &[Interval]) -> Vec<Share> {
    let mut shares = Vec::new();
    match stage.ends {
        Ends::OwnWork => {
            for absence in absences(intervals, stage.begin, stage.end) {
                let took = absence.to.0 - absence.from.0;
                add(&mut shares, Share { activity: absence.activity, at_least: took, at_most: took });
            }
        }
        Ends::Found { usual, turn } => {
            // Done by then; if that is not known, perhaps only as it was found.
            let done = usual.map_or(stage.end.0, |usual| stage.begin.0.saturating_add(usual));
            for absence in last_absences(stage, intervals, turn) {
                let at_least = absence.to.0.saturating_sub(absence.from.0.max(done));
                let at_most = absence.to.0 - absence.from.0;
                add(&mut shares, Share { activity: absence.activity, at_least, at_most });
            }
        }
    }
    shares
}

/// How much of a stage its thread's events do not explain, in nanoseconds.
pub fn unknown(stage: &Stage, intervals: &[Interval]) -> u64 {
    let within = clipped(intervals, stage.begin, stage.end);
    let seen: u64 = within.clone().map(|interval| interval.to.0 - interval.from.0).sum();
    let holes = within.filter(|interval| interval.activity == Activity::Unknown);
    let holes: u64 = holes.map(|interval| interval.to.0 - interval.from.0).sum();
    stage.end.0.saturating_sub(stage.begin.0) - seen + holes
}

/// The intervals between two times, cut at these.
fn clipped(intervals: &[Interval], begin: BootNanos, end: BootNanos) -> impl Iterator<Item = Interval> + Clone + '_ {
    let first = intervals.partition_point(|interval| interval.to <= begin);
    let within = intervals[first..].iter().take_while(move |interval| interval.from < end);
    within.map(move |interval| Interval { from: interval.from.max(begin), to: interval.to.min(end), ..*interval })
}

/// When the thread was kept from its work between two times.
fn absences(intervals: &[Interval], begin: BootNanos, end: BootNanos) -> impl Iterator<Item = Interval> + '_ {
    clipped(intervals, begin, end).filter(|interval| interval.activity.is_taken())
}

/// The absences after which the thread ran for no longer than a turn of its poll loop until the stage's end: of what was done
/// during these the thread could not know earlier. In the order of time.
fn last_absences(stage: &Stage, intervals: &[Interval], turn: u64) -> Vec<Interval> {
    let within: Vec<Interval> = clipped(intervals, stage.begin, stage.end).collect();
    let (mut last, mut present) = (Vec::new(), 0);
    for interval in within.into_iter().rev() {
        if interval.activity.is_taken() {
            last.push(interval);
        } else {
            present += interval.to.0 - interval.from.0;
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::Tid;

    const RIVAL: Activity = Activity::Waits(Tid(7));

    /// Presence and absence by turns, in nanoseconds, from 0 on.
    fn by_turns(lengths: &[u64]) -> Vec<Interval> {
        let mut at = 0;
        let interval = |(n, &length): (usize, &u64)| {
            let from = BootNanos(at);
            at += length;
            Interval { from, to: BootNanos(at), activity: if n % 2 == 0 { Activity::Runs } else { RIVAL } }
        };
        lengths.iter().enumerate().map(interval).filter(|interval| interval.from < interval.to).collect()
    }

    fn bounds(stage: &Stage, intervals: &[Interval]) -> (u64, u64) {
        let shares = blame(stage, intervals);
        assert!(shares.len() <= 1 && shares.iter().all(|share| share.activity == RIVAL));
        shares.first().map_or((0, 0), |share| (share.at_least, share.at_most))
    }

    fn stage(begin: u64, end: u64, ends: Ends) -> Stage {
        Stage { begin: BootNanos(begin), end: BootNanos(end), ends }
    }

    #[test]
    fn own_work_is_late_by_all_absences_in_it() {
        let intervals = by_turns(&[100, 50, 100, 30, 100]);
        assert_eq!(bounds(&stage(120, 300, Ends::OwnWork), &intervals), (60, 60));
        assert_eq!(bounds(&stage(0, 100, Ends::OwnWork), &intervals), (0, 0));
    }

    #[test]
    fn what_is_found_is_late_by_the_last_absence_at_most() {
        let intervals = by_turns(&[100, 500, 100, 300, 100]);
        let found = |usual| Ends::Found { usual, turn: 10 };
        // Polls between both absences would have found it.
        assert_eq!(bounds(&stage(50, 1_005, found(None)), &intervals), (0, 300));
        // Done by 800 at the latest.
        assert_eq!(bounds(&stage(50, 1_005, found(Some(750))), &intervals), (200, 300));
        // Polls after both: it was not done before.
        assert_eq!(bounds(&stage(50, 1_050, found(Some(750))), &intervals), (0, 0));
    }

    #[test]
    fn what_is_not_known_is_blamed_on_nobody() {
        let mut intervals = by_turns(&[100, 50, 100]);
        intervals[1].activity = Activity::Unknown;
        assert_eq!(blame(&stage(0, 400, Ends::OwnWork), &intervals), []);
        assert_eq!(unknown(&stage(50, 400, Ends::OwnWork), &intervals), 50 + 150);
    }

    /// When a thread that follows these turns of presence and absence has run for `work` nanoseconds.
    fn after_work(lengths: &[u64], work: u64) -> u64 {
        let (mut at, mut left) = (0, work);
        for (n, &length) in lengths.iter().enumerate() {
            if n % 2 == 0 {
                if left <= length {
                    return at + left;
                }
                left -= length;
            }
            at += length;
        }
        at + left
    }

    /// How long it has run at that time.
    fn worked(lengths: &[u64], until: u64) -> u64 {
        let (mut at, mut work) = (0, 0);
        for (n, &length) in lengths.iter().enumerate() {
            let within = until.saturating_sub(at).min(length);
            work += if n % 2 == 0 { within } else { 0 };
            at += length;
        }
        work + until.saturating_sub(at)
    }

    proptest! {
        /// A poller that looks every `turn` nanoseconds of its own time, and a device that takes as long as it takes: the true
        /// delay lies within the bounds, to a turn.
        #[test]
        fn the_truth_lies_within_the_bounds(
            mut lengths in prop::collection::vec(0u64..3_000, 1..12),
            device in 0u64..20_000,
            turn in 1u64..200,
            phase in 0.0..1.0f64,
            slack in 0u64..500,
        ) {
            lengths.push(1 << 20);
            lengths.truncate(lengths.len() / 2 * 2 + 1);
            lengths.extend([0, 1 << 20]);
            // Its polls are at these amounts of its own time.
            let first_poll = (phase * turn as f64) as u64;
            let poll_after = |work: u64| first_poll + work.saturating_sub(first_poll).div_ceil(turn) * turn;
            let end = after_work(&lengths, poll_after(worked(&lengths, device)));
            let undisturbed = poll_after(device);
            prop_assume!(end > 0);
            let loss = end.saturating_sub(undisturbed);
            let found = Ends::Found { usual: Some(device + slack), turn };
            let (at_least, at_most) = bounds(&stage(0, end, found), &by_turns(&lengths));
            prop_assert!(at_least <= loss + turn, "at least {at_least}, lost {loss}");
            prop_assert!(loss <= at_most + turn, "at most {at_most}, lost {loss}");
        }

        #[test]
        fn own_work_loses_exactly_its_absences(lengths in prop::collection::vec(0u64..3_000, 1..12), work in 1u64..20_000) {
            let end = after_work(&lengths, work);
            let (at_least, at_most) = bounds(&stage(0, end, Ends::OwnWork), &by_turns(&lengths));
            prop_assert_eq!((at_least, at_most), (end - work, end - work));
        }
    }
}
