//! Explains slow stretches by the kernel's intervals of the thread.
//!
//! A line of the history ends with the first iteration that ends in a later millisecond. So a line
//! of n milliseconds holds an iteration of more than n - 1, which has to be explained. If anything
//! kept the thread from its own code for at least half of that, the largest part is the cause;
//! otherwise it was the thread's own work.

use std::collections::HashMap;

use ordering::Order as _;
use scene::{Activity, BootNanos, Interrupt, Interval, Tid};

use crate::history::Stretch;

const MILLISECOND: u64 = 1_000_000;

/// Reason that kept a thread from its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Wait for its CPU.
    Waited,
    /// Stop by a signal or a debugger.
    Stopped,
    /// Interrupt on its CPU.
    Interrupted,
    /// Wait for something else.
    Blocked,
    /// System call, on its CPU.
    InCall,
    /// Unknown: events of the kernel were lost, or none has come yet.
    Unknown,
    /// No reason: its own work.
    OwnWork,
}

/// Reason with the thread, interrupt or system call responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Wait for a CPU held by this thread.
    Waited(Tid),
    /// Stop by a signal or a debugger.
    Stopped,
    /// This interrupt.
    Interrupted(Interrupt),
    /// Wait in the system call of this number, if in one.
    Blocked(Option<u32>),
    /// System call of this number.
    InCall(u32),
    /// Unknown.
    Unknown,
    /// Own work of the thread.
    OwnWork,
}

impl Cause {
    /// Converts an activity; `None` if the thread runs its own code.
    fn from_activity(activity: Activity) -> Option<Self> {
        match activity {
            Activity::Runs => None,
            Activity::Calls(number) => Some(Self::InCall(number)),
            Activity::Interrupted(interrupt) => Some(Self::Interrupted(interrupt)),
            Activity::Waits(by) | Activity::Woken(by) => Some(Self::Waited(by)),
            Activity::Blocked { call: number, .. } => Some(Self::Blocked(number)),
            Activity::Stopped(_) => Some(Self::Stopped),
            Activity::Ended | Activity::Unknown => Some(Self::Unknown),
        }
    }

    /// Returns the reason without the culprit.
    pub fn reason(self) -> Reason {
        match self {
            Self::Waited(_) => Reason::Waited,
            Self::Stopped => Reason::Stopped,
            Self::Interrupted(_) => Reason::Interrupted,
            Self::Blocked(_) => Reason::Blocked,
            Self::InCall(_) => Reason::InCall,
            Self::Unknown => Reason::Unknown,
            Self::OwnWork => Reason::OwnWork,
        }
    }
}

/// Causes with their durations in nanoseconds, longest first.
pub type Shares = Vec<(Cause, u64)>;

/// Slow stretch with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedStretch {
    /// Stretch.
    pub stretch: Stretch,
    /// Main cause.
    pub cause: Cause,
    /// All causes within it.
    pub shares: Shares,
}

/// Explains a stretch by the intervals of its thread, which are in the order of time. `offset` is
/// the difference in nanoseconds from `CLOCK_MONOTONIC` to `CLOCK_BOOTTIME`, the intervals' clock.
/// Threads with equal `name` count as one: a compiler has many.
pub fn explain(
    stretch: &Stretch,
    intervals: &[Interval],
    offset: u64,
    name: impl Fn(Tid) -> String,
) -> ExplainedStretch {
    let at = |ms: u64| BootNanos(ms.saturating_mul(MILLISECOND).saturating_add(offset));
    let (from, to) = (at(stretch.from), at(stretch.to));
    let mut shares = Shares::new();
    for interval in beginning_in(intervals, from, to, stretch.goes_on) {
        if let Some(cause) = Cause::from_activity(interval.activity) {
            add(&mut shares, cause, interval.length());
        }
    }
    shares.order_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    // The iteration to be explained took longer than this.
    let excess = stretch
        .length()
        .saturating_sub(1)
        .saturating_mul(MILLISECOND);
    let cause = main_cause(&shares, excess / 2, name);
    ExplainedStretch {
        stretch: *stretch,
        cause,
        shares,
    }
}

/// Returns the intervals that begin in a stretch. The next line began when the thread was back, up
/// to a millisecond after its timestamp, so an interval beyond the stretch still belongs to it. A
/// stretch that goes on is cut at its end.
fn beginning_in(
    intervals: &[Interval],
    from: BootNanos,
    to: BootNanos,
    goes_on: bool,
) -> impl Iterator<Item = Interval> + '_ {
    let first = intervals.partition_point(|interval| interval.from < from);
    // An unknown interval may have begun long before.
    let unknown = intervals[..first]
        .last()
        .filter(|before| before.activity == Activity::Unknown && before.to > from);
    let unknown = unknown.map(|before| Interval { from, ..*before });
    let latest = if goes_on {
        to
    } else {
        BootNanos(to.0.saturating_add(MILLISECOND))
    };
    let within = intervals[first..]
        .iter()
        .take_while(move |interval| interval.from < to)
        .copied();
    let cut = move |interval: Interval| Interval {
        to: interval.to.min(latest.max(interval.from)),
        ..interval
    };
    unknown.into_iter().chain(within).map(cut)
}

/// Returns the main cause, if the shares are long enough: within the longest reason, the name with
/// the longest total, and of its threads the one with the longest share.
fn main_cause(shares: &Shares, at_least: u64, name: impl Fn(Tid) -> String) -> Cause {
    let all: u64 = shares.iter().map(|(_, nanos)| *nanos).sum();
    if all == 0 || all < at_least {
        return Cause::OwnWork;
    }
    let mut reasons: HashMap<Reason, u64> = HashMap::new();
    let mut names: HashMap<String, u64> = HashMap::new();
    let name_of = |cause: Cause| {
        if let Cause::Waited(tid) = cause {
            Some(name(tid))
        } else {
            None
        }
    };
    for &(cause, nanos) in shares {
        *reasons.entry(cause.reason()).or_default() += nanos;
        if let Some(name) = name_of(cause) {
            *names.entry(name).or_default() += nanos;
        }
    }
    // Of equal ones, the first wins.
    let longest = shares.iter().rev().max_by_key(|(cause, nanos)| {
        let of_name = name_of(*cause)
            .and_then(|name| names.get(&name))
            .unwrap_or(nanos);
        (reasons.get(&cause.reason()), *of_name, *nanos)
    });
    longest.map_or(Cause::OwnWork, |(cause, _)| *cause)
}

fn add(shares: &mut Shares, cause: Cause, nanos: u64) {
    match shares.iter_mut().find(|(known, _)| *known == cause) {
        Some((_, all)) => *all += nanos,
        None => shares.push((cause, nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSET: u64 = 7_000_000_000;

    fn interval(from_us: u64, to_us: u64, activity: Activity) -> Interval {
        let at = |us: u64| BootNanos(us * 1000 + OFFSET);
        Interval {
            from: at(from_us),
            to: at(to_us),
            activity,
        }
    }

    fn name(tid: Tid) -> String {
        format!("t{}", tid.0)
    }

    fn cause(from: u64, to: u64, intervals: &[Interval]) -> Cause {
        explain(
            &Stretch {
                from,
                to,
                ..Stretch::default()
            },
            intervals,
            OFFSET,
            name,
        )
        .cause
    }

    #[test]
    fn the_largest_share_is_the_cause() {
        let (waits, tick) = (
            Activity::Waits(Tid(5)),
            Activity::Interrupted(Interrupt::Tick),
        );
        let intervals = [
            interval(9_900, 10_200, Activity::Runs),
            interval(10_200, 10_210, tick),
            interval(10_210, 14_300, waits),
            interval(14_300, 20_100, Activity::Runs),
            interval(20_100, 20_110, tick),
            interval(20_110, 24_000, Activity::Runs),
            interval(24_000, 144_000, Activity::Stopped(None)),
        ];
        assert_eq!(cause(10, 14, &intervals), Cause::Waited(Tid(5)));
        // The thread ran for all but 10 us.
        assert_eq!(cause(20, 24, &intervals), Cause::OwnWork);
        assert_eq!(cause(24, 144, &intervals), Cause::Stopped);
        // Intervals of the stretch before explain nothing in the next one.
        assert_eq!(cause(14, 18, &intervals), Cause::OwnWork);
        assert_eq!(cause(200, 204, &intervals), Cause::OwnWork);
    }

    #[test]
    fn several_of_one_reason_are_one() {
        let waits = |tid| Activity::Waits(Tid(tid));
        let intervals = [
            interval(10_000, 12_000, Activity::Stopped(None)),
            interval(12_000, 13_500, waits(1)),
            interval(13_500, 14_600, waits(2)),
        ];
        let explained = explain(
            &Stretch {
                from: 10,
                to: 14,
                ..Stretch::default()
            },
            &intervals,
            OFFSET,
            name,
        );
        assert_eq!(explained.cause, Cause::Waited(Tid(1)));
        // The list has one row for threads of one name, and the longest row is the cause.
        let of = |tid: u32| {
            interval(
                12_000 + 600 * u64::from(tid),
                12_600 + 600 * u64::from(tid),
                waits(tid),
            )
        };
        let intervals = [interval(11_000, 12_000, waits(9)), of(0), of(1)];
        let same = |tid: Tid| {
            if tid == Tid(9) {
                "cat".to_owned()
            } else {
                "rustc".to_owned()
            }
        };
        let stretch = Stretch {
            from: 10,
            to: 14,
            ..Stretch::default()
        };
        assert_eq!(
            explain(&stretch, &intervals, OFFSET, same).cause,
            Cause::Waited(Tid(0))
        );
        assert_eq!(
            explain(&stretch, &intervals, OFFSET, name).cause,
            Cause::Waited(Tid(9))
        );
        let nanos: Vec<u64> = explained.shares.iter().map(|(_, nanos)| *nanos).collect();
        assert_eq!(nanos, [2_000_000, 1_500_000, 1_100_000]);
    }

    #[test]
    fn losses_are_no_own_work() {
        let intervals = [interval(1_000, 30_000, Activity::Unknown)];
        assert_eq!(cause(10, 14, &intervals), Cause::Unknown);
    }

    #[test]
    fn a_stretch_that_goes_on_is_cut_at_its_end() {
        let stretch = Stretch {
            from: 10,
            to: 50,
            goes_on: true,
            ..Stretch::default()
        };
        let explained = explain(
            &stretch,
            &[interval(10_500, 90_000, Activity::Stopped(None))],
            OFFSET,
            name,
        );
        assert_eq!(explained.shares, [(Cause::Stopped, 39_500_000)]);
    }
}
