//! Finds slow requests that the same stall delayed: a thread that loses its CPU delays all its
//! requests in flight.

use std::collections::VecDeque;

use scene::{BootNanos, Interval, Request, StageOfRequest, Tid};

/// Longest time that was taken from a thread at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    thread: Tid,
    from: BootNanos,
    to: BootNanos,
}

impl Stall {
    /// Returns the longest stall of a request. `None` if it is less than a quarter of the request,
    /// which it does not explain.
    fn longest_in<K>(request: &Request<K>) -> Option<Self> {
        let length = |it: &Self| it.to.0.saturating_sub(it.from.0);
        let of_stage = |stage: &StageOfRequest| {
            let thread = stage.tid?;
            let taken = stage
                .intervals
                .iter()
                .filter(|interval| interval.activity.is_taken());
            taken
                .map(|&Interval { from, to, .. }| Self { thread, from, to })
                .max_by_key(length)
        };
        let longest = request
            .stages
            .iter()
            .filter_map(of_stage)
            .max_by_key(length)?;
        (length(&longest).saturating_mul(4) >= request.length()).then_some(longest)
    }

    /// Returns the time of the last absence in a stage if that is at least half of it, otherwise the
    /// whole stage. `None` if its thread is unknown.
    pub(crate) fn of_stage(stage: &StageOfRequest) -> Option<Self> {
        let thread = stage.tid?;
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
        self.thread == other.thread && self.from < other.to && other.from < self.to
    }
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

/// Returns for each request the first one of the list that the same stall delayed, if it is an
/// earlier one.
pub(crate) fn first_of_each<K>(requests: &[Request<K>]) -> Vec<Option<usize>> {
    let stalls: Vec<Option<Stall>> = requests.iter().map(Stall::longest_in).collect();
    let first = |at: usize| {
        let stall = stalls[at]?;
        stalls[..at]
            .iter()
            .position(|it| it.is_some_and(|it| it.is(&stall)))
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
            thread: Tid(thread),
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
}
