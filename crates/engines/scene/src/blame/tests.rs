use proptest::prelude::*;

use super::*;
use crate::kernel::Tid;

const PREEMPTOR: Activity = Activity::Waits(Tid(7));

/// Returns intervals of presence and absence by turns, with these lengths in nanoseconds, from 0
/// on.
fn by_turns(lengths: &[u64]) -> Vec<Interval> {
    let mut at = 0;
    let interval = |(n, &length): (usize, &u64)| {
        let from = BootNanos(at);
        at += length;
        Interval {
            from,
            to: BootNanos(at),
            activity: if n % 2 == 0 {
                Activity::Runs
            } else {
                PREEMPTOR
            },
        }
    };
    lengths
        .iter()
        .enumerate()
        .map(interval)
        .filter(|interval| interval.from < interval.to)
        .collect()
}

fn bounds(stage: &Stage, intervals: &[Interval]) -> (u64, u64) {
    let shares = blame(stage, intervals, &[]);
    assert!(shares.len() <= 1 && shares.iter().all(|share| share.activity == PREEMPTOR));
    shares
        .first()
        .map_or((0, 0), |share| (share.at_least, share.at_most))
}

fn stage(begin: u64, end: u64, ends: StageEnd) -> Stage {
    Stage {
        begin: BootNanos(begin),
        end: BootNanos(end),
        ends,
    }
}

#[test]
fn own_work_is_late_by_all_absences_in_it() {
    let intervals = by_turns(&[100, 50, 100, 30, 100]);
    assert_eq!(
        bounds(&stage(120, 300, StageEnd::OwnWork), &intervals),
        (60, 60)
    );
    assert_eq!(
        bounds(&stage(0, 100, StageEnd::OwnWork), &intervals),
        (0, 0)
    );
}

#[test]
fn a_found_delay_lies_between_the_last_and_all_absences() {
    let intervals = by_turns(&[100, 500, 100, 300, 100]);
    let found = |usual| StageEnd::Found { usual, turn: 10 };
    // Between both absences the thread may have polled, or not.
    assert_eq!(bounds(&stage(50, 1_005, found(None)), &intervals), (0, 800));
    // Done by 800 at the latest.
    assert_eq!(
        bounds(&stage(50, 1_005, found(Some(750))), &intervals),
        (200, 800)
    );
    // If it polled after both, it was not done before.
    assert_eq!(
        bounds(&stage(50, 1_050, found(Some(750))), &intervals),
        (0, 800)
    );
}

#[test]
fn unknown_time_is_blamed_on_nobody() {
    let mut intervals = by_turns(&[100, 50, 100]);
    intervals[1].activity = Activity::Unknown;
    assert_eq!(
        blame(&stage(0, 400, StageEnd::OwnWork), &intervals, &[]),
        []
    );
    assert_eq!(
        unknown(&stage(50, 400, StageEnd::OwnWork), &intervals),
        50 + 150
    );
}

/// Returns the time at which a thread with these turns of presence and absence has run for `work`
/// nanoseconds.
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

/// Returns the time that it has run until then.
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
    /// Checks that the true delay lies within the bounds, to a turn, for a poller that looks every
    /// `turn` nanoseconds of its own time and a device of any speed.
    #[test]
    fn the_truth_lies_within_the_bounds(
        mut lengths in prop::collection::vec(0u64..3_000, 1..12),
        device in 0u64..20_000,
        turn in 1u64..200,
        phase in 0.0..1.0f64,
        slack in 0u64..500,
        // Long piece of its own code, once, longer than a turn.
        spin in (0u64..20_000, prop::sample::select(vec![0u64, 0, 5_000])),
    ) {
        lengths.push(1 << 20);
        lengths.truncate(lengths.len() / 2 * 2 + 1);
        lengths.extend([0, 1 << 20]);
        // Its polls are at these amounts of its own time.
        let first_poll = (phase * turn as f64) as u64;
        let regular = |work: u64| first_poll + work.saturating_sub(first_poll).div_ceil(turn) * turn;
        let poll_after = |work: u64| {
            let poll = regular(work);
            if (spin.0..spin.0 + spin.1).contains(&poll) { regular(spin.0 + spin.1) } else { poll }
        };
        let end = after_work(&lengths, poll_after(worked(&lengths, device)));
        let undisturbed = poll_after(device);
        prop_assume!(end > 0);
        let loss = end.saturating_sub(undisturbed);
        // The slowest of the undisturbed stages took such a spin, too.
        let usual = if spin.1 > 0 { undisturbed.max(device) } else { device };
        let found = StageEnd::Found { usual: Some(usual + slack), turn };
        let (at_least, at_most) = bounds(&stage(0, end, found), &by_turns(&lengths));
        prop_assert!(at_least <= loss + turn, "at least {at_least}, lost {loss}");
        prop_assert!(loss <= at_most + turn, "at most {at_most}, lost {loss}");
    }

    #[test]
    fn own_work_loses_exactly_its_absences(lengths in prop::collection::vec(0u64..3_000, 1..12), work in 1u64..20_000) {
        let end = after_work(&lengths, work);
        let (at_least, at_most) = bounds(&stage(0, end, StageEnd::OwnWork), &by_turns(&lengths));
        prop_assert_eq!((at_least, at_most), (end - work, end - work));
    }
}
