//! Finds slow requests that the same stall delayed: a thread that loses its CPU delays all its
//! requests in flight.

use std::collections::VecDeque;

use scene::{Activity, BootNanos, Interval, Request, StageOfRequest, Tid};

/// Time in which one cause delayed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    /// Delayed thread; `None` for a stop, which halts all threads of the process at once.
    thread: Option<Tid>,
    from: BootNanos,
    to: BootNanos,
}

impl Stall {
    /// Returns the time of the last absence in a stage if that is at least half of it, otherwise the
    /// whole stage. `None` if its thread is unknown.
    pub(crate) fn of_stage(stage: &StageOfRequest, activity: Activity) -> Option<Self> {
        let thread = delayed(stage.tid?, activity);
        let whole = (stage.begin, stage.end);
        let (from, to) = match stage.returned {
            Some((absence, ran)) if absence.saturating_mul(2) >= stage.length() => {
                let to = stage.end.0.saturating_sub(ran);
                (BootNanos(to.saturating_sub(absence)), BootNanos(to))
            }
            _ => whole,
        };
        Some(Self { thread, from, to })
    }

    /// Returns whether both are one stall: each is cut at the borders of its request's stages.
    fn is(&self, other: &Self) -> bool {
        self.common(other) > 0
    }

    /// Returns the nanoseconds that both have in common.
    fn common(&self, other: &Self) -> u64 {
        let to = self.to.0.min(other.to.0);
        let common = to.saturating_sub(self.from.0.max(other.from.0));
        if self.thread == other.thread {
            common
        } else {
            0
        }
    }
}

/// Returns the thread that an activity of this thread delays; `None` if it delays all of them.
fn delayed(thread: Tid, activity: Activity) -> Option<Tid> {
    (!matches!(activity, Activity::Stopped(_))).then_some(thread)
}

/// Number of stalls of which a counter remembers the time: requests come in the order of their ends,
/// so the same stall does not come again much later.
const MAX_REMEMBERED: usize = 64;

/// Count of separate stalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StallCount {
    count: u64,
    /// The last ones, in the order in which they came.
    recent: VecDeque<Stall>,
}

impl StallCount {
    /// Counts a stall, unless it came before.
    pub(crate) fn add(&mut self, stall: Stall) {
        if self.recent.iter().any(|it| it.is(&stall)) {
            return;
        }
        self.count += 1;
        if self.recent.len() == MAX_REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(stall);
    }

    /// Counts a stall of an unknown time.
    pub(crate) fn add_unknown(&mut self) {
        self.count += 1;
    }

    /// Returns the number of stalls.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// All times that were taken of a request, in the order of time: compilers that share a CPU take
/// many short ones, of which none stands for all.
struct LostTimes {
    stalls: Vec<Stall>,
    sum: u64,
}

impl LostTimes {
    /// Collects the times for which a request's stages blame somebody. `None` if they are less than
    /// a quarter of the request, which they do not explain.
    fn from_request<K>(request: &Request<K>) -> Option<Self> {
        let of_stage = |stage: &StageOfRequest| {
            let is_blamed =
                |it: &&Interval| stage.shares.iter().any(|by| by.activity == it.activity);
            let thread = stage.tid?;
            let stall = move |it: &Interval| Stall {
                thread: delayed(thread, it.activity),
                from: it.from,
                to: it.to,
            };
            let blamed = stage.intervals.iter().filter(is_blamed);
            Some(blamed.map(stall).collect::<Vec<_>>())
        };
        let stalls: Vec<Stall> = request
            .stages
            .iter()
            .filter_map(of_stage)
            .flatten()
            .collect();
        let sum = stalls.iter().map(|it| it.common(it)).sum::<u64>();
        (sum > 0 && sum.saturating_mul(4) >= request.length()).then_some(Self { stalls, sum })
    }

    /// Returns whether another request lost at least half of this time, too.
    fn is_part_of(&self, other: &Self) -> bool {
        let mut common: u64 = 0;
        let mut theirs = other.stalls.iter().peekable();
        for mine in &self.stalls {
            while let Some(their) = theirs.peek() {
                common += mine.common(their);
                if their.to > mine.to {
                    break;
                }
                theirs.next();
            }
        }
        common.saturating_mul(2) >= self.sum
    }
}

/// Returns for each request the first one of the list that the same stall delayed, if it is an
/// earlier one: one that lost at least half of the same time.
pub(crate) fn first_of_each<K>(requests: &[Request<K>]) -> Vec<Option<usize>> {
    let lost: Vec<_> = requests.iter().map(LostTimes::from_request).collect();
    let first = |at: usize| {
        let mine = lost[at].as_ref()?;
        lost[..at]
            .iter()
            .position(|it| it.as_ref().is_some_and(|it| mine.is_part_of(it)))
    };
    // The first one may have an earlier one itself, which does not overlap this one.
    let mut firsts: Vec<Option<usize>> = Vec::with_capacity(requests.len());
    for at in 0..requests.len() {
        let found = first(at).map(|found| firsts[found].unwrap_or(found));
        firsts.push(found);
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stall_is_of_one_thread_at_one_time() {
        let stall = |thread, from, to| Stall {
            thread: Some(Tid(thread)),
            from: BootNanos(from),
            to: BootNanos(to),
        };
        assert!(
            stall(1, 100, 200).is(&stall(1, 150, 200))
                && stall(1, 150, 160).is(&stall(1, 100, 200))
        );
        assert!(
            !stall(1, 100, 200).is(&stall(1, 200, 300))
                && !stall(1, 100, 200).is(&stall(2, 100, 200))
        );
        let mut count = StallCount::default();
        for (thread, from, to) in [(1, 100, 200), (2, 150, 160), (1, 190, 200), (1, 300, 400)] {
            count.add(stall(thread, from, to));
        }
        assert_eq!(count.count(), 3);
        for nth in 0..1_000 {
            count.add(stall(3, 10 * nth, 10 * nth + 5));
        }
        assert_eq!((count.count(), count.recent.len()), (1_003, MAX_REMEMBERED));
    }
    /// Returns whether the second of two requests is delayed by the stall of the first, with the
    /// times that others took of a thread of each.
    fn is_same(
        first: (u32, &[(Activity, u64, u64)]),
        second: (u32, &[(Activity, u64, u64)]),
    ) -> bool {
        let lost = |(thread, spans): (u32, &[(Activity, u64, u64)])| {
            let stall = |&(activity, from, to): &(Activity, u64, u64)| Stall {
                thread: delayed(Tid(thread), activity),
                from: BootNanos(from),
                to: BootNanos(to),
            };
            let stalls: Vec<Stall> = spans.iter().map(stall).collect();
            let sum = stalls.iter().map(|it| it.common(it)).sum();
            LostTimes { stalls, sum }
        };
        lost(second).is_part_of(&lost(first))
    }

    #[test]
    fn requests_that_lost_the_same_time_have_one_stall() {
        let (stop, rustc, cc1) = (
            Activity::Stopped(None),
            Activity::Waits(Tid(8)),
            Activity::Woken(Tid(9)),
        );
        // A stop halts all threads of the process. What one thread loses to another does not.
        assert!(is_same((1, &[(stop, 100, 200)]), (2, &[(stop, 110, 200)])));
        assert!(!is_same(
            (1, &[(rustc, 100, 200)]),
            (2, &[(rustc, 100, 200)])
        ));
        // Two compilers take turns: none of their times is long.
        let turns = [
            (rustc, 0, 10),
            (cc1, 10, 20),
            (rustc, 25, 35),
            (cc1, 35, 45),
        ];
        assert!(is_same((1, &turns), (1, &turns[1..])) && is_same((1, &turns), (1, &turns)));
        assert!(is_same(
            (1, &turns),
            (1, &[(rustc, 26, 40), (rustc, 60, 70)])
        ));
        assert!(!is_same(
            (1, &turns),
            (1, &[(rustc, 40, 45), (rustc, 60, 70)])
        ));
        // The second one's delay is only a part of the first one's, but all of its own.
        assert!(is_same(
            (1, &[(stop, 0, 300), (rustc, 300, 400)]),
            (1, &[(rustc, 310, 400)])
        ));
    }
}
