//! Sums read from the maps at the end of the window, without names.

use std::collections::HashMap;

use crate::audit::layout::{
    CLASSES, FIRST_CLASS, Key, Level, QueuedWork, State, Tally, WaitingThread, detail, kind,
};

/// Sums of one CPU.
#[derive(Clone, Debug)]
pub struct CpuSums {
    /// Number of the CPU.
    pub cpu: u32,
    /// State, with no open level if the audit was stopped.
    pub state: State,
}

/// Sums of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Sums by CPU.
    pub cpus: Vec<CpuSums>,
    /// Sums of what ran and what waited, by key.
    pub tallies: HashMap<Key, Tally>,
    /// Threads that still wait.
    pub waiting: Vec<(u32, WaitingThread)>,
    /// Work items that are still queued, by their address.
    pub queued: Vec<(u64, QueuedWork)>,
    /// Stacks that queued work, by number.
    pub stacks: HashMap<u64, Vec<u64>>,
    /// Number of times that the kernel skipped a program because it was already running on that
    /// CPU.
    pub skipped: u64,
}

impl Sums {
    /// Ends the levels that were open when the CPU's window ended. The interrupt that ended it is
    /// not counted; its time so far stays in the sums of its kind.
    pub(crate) fn close(&mut self, cpu: u32, mut state: State) {
        let depth = (state.depth as usize).min(state.levels.len() - 1);
        for level in &mut state.levels[..=depth] {
            let open = std::mem::take(level);
            let counts = u64::from(open.detail & detail::RESUMED == 0 && !is_call(open.kind));
            if let Some(total) = state.totals.get_mut(open.kind as usize) {
                total.count += counts;
                total.total += open.own;
                total.longest = total.longest.max(open.own);
            }
            if !is_call(open.kind) {
                let tally = self.tallies.entry(key_of(cpu, &open)).or_default();
                add(tally, &open, counts);
            }
        }
        self.cpus.push(CpuSums { cpu, state });
    }
}

/// Returns the state of a window that ended with a turn, from the states at its end and, if it was
/// not the first, at its start.
pub(crate) fn since(now: &State, before: Option<&State>) -> State {
    let none = State {
        stop: now.start,
        ..State::default()
    };
    let before = before.unwrap_or(&none);
    let mut totals = now.turned;
    for (total, was) in totals.iter_mut().zip(&before.turned) {
        total.count = total.count.saturating_sub(was.count);
        total.total = total.total.saturating_sub(was.total);
    }
    State {
        start: before.stop,
        totals,
        lost: now.lost.saturating_sub(before.lost),
        unsent: now.unsent.saturating_sub(before.unsent),
        too_deep: now.too_deep.saturating_sub(before.too_deep),
        unpaired: now.unpaired.saturating_sub(before.unpaired),
        unseen: now.unseen.saturating_sub(before.unseen),
        ..*now
    }
}

/// Returns whether the kind is part of another CPU's call.
fn is_call(kind: u32) -> bool {
    matches!(kind, kind::CALL | kind::CALLS | kind::FUNCTION | kind::IPI)
}

fn key_of(cpu: u32, level: &Level) -> Key {
    Key {
        cpu,
        kind: level.kind,
        id: level.id,
        by: level.by,
        by_kind: level.by_kind,
        unused: 0,
    }
}

/// Adds a level to its tally, as the programs do.
fn add(tally: &mut Tally, level: &Level, counts: u64) {
    tally.count += counts;
    tally.total += level.own;
    if level.own >= tally.longest {
        (tally.longest, tally.longest_at) = (level.own, level.began);
    }
    (tally.name, tally.tgid, tally.detail) = (level.name, level.tgid, level.detail);
    tally.classes[class(level.own)] += 1;
}

/// Returns the class of a length.
fn class(nanos: u64) -> usize {
    let log = nanos.max(1).ilog2();
    ((log + 1).saturating_sub(FIRST_CLASS) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::layout::Total;

    #[test]
    fn classes_begin_at_powers_of_two() {
        assert_eq!([0, 1, 511, 512, 1023, 1024].map(class), [0, 0, 0, 1, 1, 2]);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn a_window_between_turns_has_the_differences() {
        let state = |start, stop, total, longest| {
            let mut state = State {
                start,
                stop,
                lost: total,
                ..State::default()
            };
            state.turned[kind::SOFT as usize] = Total {
                count: total / 10,
                total,
                longest,
                ..Total::default()
            };
            // Sums since the turn.
            state.totals[kind::SOFT as usize] = Total {
                count: 99,
                total: 9999,
                ..Total::default()
            };
            state
        };
        let (first, second) = (state(5, 100, 50, 7), state(5, 200, 80, 3));
        let window = |state: State| {
            (
                state.start,
                state.stop,
                state.totals[kind::SOFT as usize],
                state.lost,
            )
        };
        let total = |count, total, longest| Total {
            count,
            total,
            longest,
            ..Total::default()
        };
        assert_eq!(window(since(&first, None)), (5, 100, total(5, 50, 7), 50));
        assert_eq!(
            window(since(&second, Some(&first))),
            (100, 200, total(3, 30, 3), 30)
        );
    }

    #[test]
    fn open_levels_are_ended_and_the_interrupt_that_ends_them_does_not_count() {
        let mut state = State {
            depth: 1,
            ..State::default()
        };
        state.levels[0] = Level {
            kind: kind::THREAD,
            id: 7,
            own: 900,
            ..Level::default()
        };
        state.levels[1] = Level {
            kind: kind::CALL,
            own: 100,
            ..Level::default()
        };
        let mut sums = Sums::default();
        sums.close(3, state);
        let totals = sums.cpus[0].state.totals;
        let of = |kind: u32| (totals[kind as usize].count, totals[kind as usize].total);
        assert_eq!((of(kind::THREAD), of(kind::CALL)), ((1, 900), (0, 100)));
        assert_eq!(sums.tallies.len(), 1);
        assert_eq!(
            sums.tallies[&Key {
                cpu: 3,
                kind: kind::THREAD,
                id: 7,
                ..Key::default()
            }]
                .longest,
            900
        );
    }
}
