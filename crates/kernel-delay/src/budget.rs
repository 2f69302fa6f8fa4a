//! Where a thread's time went.

use bpf_codegen::delay::layout::{SLOT_NONE, SLOT_OTHER, SLOT_UNKNOWN, SLOTS, call, first, slot_of, state, value};

use crate::sample::{Hint, Window};
use crate::snapshot::Snapshot;

/// Time in a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallTime {
    /// Its number, or one of the slots that stand for others.
    pub slot: u32,
    /// Nanoseconds on the CPU.
    pub cpu: u64,
    /// Nanoseconds blocked.
    pub blocked: u64,
}

/// Where a thread's time went, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// The part of the window in which the thread lived.
    pub window: u64,
    /// Its own code, with what the kernel does for that unasked (page faults, the timer's ticks).
    pub user: u64,
    /// System calls that took time, the one with the most first.
    pub calls: Vec<CallTime>,
    /// Blocked outside of system calls: page faults that wait for a disk.
    pub blocked_in_faults: u64,
    /// Waiting for a CPU.
    pub ready: u64,
    /// Hard interrupts.
    pub hard: u64,
    /// Soft interrupts.
    pub soft: u64,
    /// Stopped by a signal or a debugger.
    pub stopped: u64,
}

impl Budget {
    /// On the CPU in system calls.
    pub fn in_calls(&self) -> u64 {
        self.calls.iter().map(|call| call.cpu).sum()
    }

    /// Waiting for something other than a CPU.
    pub fn blocked(&self) -> u64 {
        self.blocked_in_faults + self.calls.iter().map(|call| call.blocked).sum::<u64>()
    }

    /// All of it: the window, but for what two CPUs' clocks and an event at the very edge can make of it.
    pub fn sum(&self) -> u64 {
        self.user + self.in_calls() + self.blocked() + self.ready + self.hard + self.soft + self.stopped
    }

    /// From two looks at a thread's value, with what `/proc` says for a thread that had no event.
    pub(crate) fn of(before: &Snapshot, after: &Snapshot, hint: &Hint, window: &Window) -> Self {
        let mut raw = Raw::of(before, after);
        raw.close(after, window);
        raw.settle(after, hint, window);
        let nobodys = after.wide(value::NOBODY).wrapping_sub(before.wide(value::NOBODY));
        raw.into_budget(lifetime(after, window).saturating_sub(nobodys))
    }
}

/// The part of the window in which the thread lived.
fn lifetime(after: &Snapshot, window: &Window) -> u64 {
    let died = after.wide(value::DIED);
    let stop = if died == 0 { window.stop } else { window.stop.min(died) };
    stop.saturating_sub(window.start.max(after.wide(value::BORN)))
}

/// Sums before it is known what some of them mean.
struct Raw {
    /// By slot: on the CPU, blocked.
    calls: Vec<(u64, u64)>,
    unsure: u64,
    ready: u64,
    stopped: u64,
    hard: u64,
    soft: u64,
}

impl Raw {
    fn of(before: &Snapshot, after: &Snapshot) -> Self {
        let wide = |at| after.wide(at).wrapping_sub(before.wide(at));
        let call = |slot, part| after.call(slot, part).wrapping_sub(before.call(slot, part));
        Self {
            calls: (0..SLOTS).map(|slot| (call(slot, call::CPU), call(slot, call::BLOCKED))).collect(),
            unsure: wide(value::UNSURE),
            ready: wide(value::READY),
            stopped: wide(value::STOPPED),
            hard: wide(value::HARD),
            soft: wide(value::SOFT),
        }
    }

    /// Gives the time from the last event to the window's end to the bucket of that time.
    fn close(&mut self, after: &Snapshot, window: &Window) {
        if after.narrow(value::STATE) == state::DEAD {
            return;
        }
        let open = window.stop.saturating_sub(after.mark().max(window.start));
        let bucket = after.narrow(value::BUCKET);
        if let Some((slot, part)) = Snapshot::call_of_bucket(bucket) {
            if let Some((cpu, blocked)) = self.calls.get_mut(slot as usize) {
                *(if part == call::CPU { cpu } else { blocked }) += open;
            }
            return;
        }
        let simple = [
            (value::UNSURE, &mut self.unsure),
            (value::READY, &mut self.ready),
            (value::STOPPED, &mut self.stopped),
            (value::HARD, &mut self.hard),
            (value::SOFT, &mut self.soft),
        ];
        if let Some((_, sum)) = simple.into_iter().find(|(at, _)| u32::from(at.cast_unsigned()) == bucket) {
            *sum += open;
        }
    }

    /// Says what the time before the first event was, and which call the first one was.
    fn settle(&mut self, after: &Snapshot, hint: &Hint, window: &Window) {
        let unsure = std::mem::take(&mut self.unsure);
        let unknown = SLOT_UNKNOWN as usize;
        let mostly_ran = hint.ran >= window.length() / 2;
        match (after.narrow(value::FIRST), hint.state) {
            (first::RUNNING, _) => self.calls[unknown].0 += unsure,
            (first::READY, _) => self.ready += unsure,
            (_, 'T' | 't') => self.stopped += unsure,
            (first::NONE, 'R') if mostly_ran => self.calls[unknown].0 += unsure,
            (first::NONE, 'R') => self.ready += unsure,
            _ => self.calls[unknown].1 += unsure,
        }
        let (cpu, blocked) = std::mem::take(&mut self.calls[unknown]);
        let (on_cpu, off_cpu) = match (after.narrow(value::RESOLVED), hint.call) {
            (0, Some(call)) => (call, call),
            (0, None) if hint.system > hint.user => (SLOT_OTHER, SLOT_UNKNOWN),
            (0, None) => (SLOT_NONE, SLOT_UNKNOWN),
            (entry, _) => (slot_of(entry), slot_of(entry)),
        };
        self.calls[(on_cpu as usize).min(unknown)].0 += cpu;
        self.calls[(off_cpu as usize).min(unknown)].1 += blocked;
    }

    fn into_budget(mut self, window: u64) -> Budget {
        let (user, blocked_in_faults) = std::mem::take(&mut self.calls[SLOT_NONE as usize]);
        let calls = (0..).zip(&self.calls).filter(|(_, time)| **time != (0, 0));
        let mut calls: Vec<CallTime> = calls.map(|(slot, &(cpu, blocked))| CallTime { slot, cpu, blocked }).collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.cpu + call.blocked));
        let Self { ready, stopped, hard, soft, .. } = self;
        Budget { window, user, calls, blocked_in_faults, ready, hard, soft, stopped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpf_codegen::delay::found_thread;
    use bpf_codegen::delay::layout::entry_of;

    const WINDOW: Window = Window { start: 1000, stop: 2000, number: 1 };

    /// A thread's value with these numbers in it.
    fn value(narrow: &[(i16, u32)], wide: &[(usize, u64)]) -> Snapshot {
        let mut bytes = found_thread(b"");
        for &(at, number) in narrow {
            bytes[usize::from(at.cast_unsigned())..][..4].copy_from_slice(&number.to_le_bytes());
        }
        for &(at, number) in wide {
            bytes[at..][..8].copy_from_slice(&number.to_le_bytes());
        }
        Snapshot::new(&bytes)
    }

    fn budget(after: &Snapshot, hint: Hint) -> Budget {
        let budget = Budget::of(&Snapshot::new(&found_thread(b"")), after, &hint, &WINDOW);
        assert_eq!(budget.sum(), budget.window, "{budget:?}");
        budget
    }

    /// Nothing happened in the whole window: it is what `/proc` says.
    #[test]
    fn a_thread_without_events_has_a_whole_budget() {
        let silent = value(&[], &[]);
        let of = |state, call, ran, user, system| budget(&silent, Hint { state, call, user, system, ran });
        assert_eq!(of('R', None, 990, 5, 0).user, 1000);
        assert_eq!(of('R', None, 990, 0, 5).in_calls(), 1000);
        assert_eq!(of('R', None, 10, 0, 0).ready, 1000);
        assert_eq!(of('T', None, 0, 0, 0).stopped, 1000);
        let call = |slot| vec![CallTime { slot, cpu: 0, blocked: 1000 }];
        assert_eq!(of('S', Some(7), 0, 0, 0).calls, call(7));
        assert_eq!(of('S', None, 0, 0, 0).calls, call(SLOT_UNKNOWN));
        assert_eq!(of('D', Some(SLOT_NONE), 0, 0, 0).blocked_in_faults, 1000);
    }

    /// What no window can be has no time, and is no mistake of ours.
    #[test]
    fn a_window_that_ends_before_it_begins_is_empty() {
        let window = Window { start: 2000, stop: 1000, number: 1 };
        let budget =
            Budget::of(&Snapshot::default(), &value(&[], &[]), &Hint { state: 'R', ..Hint::default() }, &window);
        assert_eq!((budget.window, budget.sum()), (0, 0));
    }

    /// The first event tells what the time before it was, and the first call's event which call it was.
    #[test]
    fn the_first_event_tells_of_the_time_before_it() {
        let running = state::RUNNING;
        let own = entry_of(SLOT_NONE) + u32::from(call::CPU.cast_unsigned());
        let seen = |told: u32, resolved: u32| {
            let narrow =
                [(value::FIRST, told), (value::RESOLVED, resolved), (value::STATE, running), (value::BUCKET, own)];
            value(&narrow, &[(value::MARK as usize, 1400), (value::UNSURE as usize, 400)])
        };
        let hint = Hint { state: 'S', ..Hint::default() };
        assert_eq!(budget(&seen(first::RUNNING, entry_of(SLOT_NONE)), hint).user, 1000);
        let in_call = budget(&seen(first::RUNNING, entry_of(3)), hint);
        assert_eq!((in_call.user, in_call.in_calls()), (600, 400));
        let late = budget(&seen(first::READY, 0), hint);
        assert_eq!((late.user, late.ready), (600, 400));
        let woken = budget(&seen(first::ASLEEP, entry_of(202)), hint);
        assert_eq!(woken.calls, [CallTime { slot: 202, cpu: 0, blocked: 400 }]);
        assert_eq!(budget(&seen(first::ASLEEP, 0), Hint { state: 'T', ..hint }).stopped, 400);
    }

    /// Sums only grow: a second window is the difference. A thread that ended or was born has a window of its own.
    #[test]
    fn a_window_is_the_difference_of_two_looks() {
        let narrow = [(value::STATE, state::DEAD), (value::FIRST, first::RUNNING)];
        let user = entry_of(SLOT_NONE) as usize + call::CPU as usize;
        let died = [(value::MARK as usize, 1700), (value::DIED as usize, 1700)];
        let before = value(&narrow, &[(user, 5000)]);
        let after = value(&narrow, &[&[(user, 5300), (value::READY as usize, 200)], died.as_slice()].concat());
        let budget = Budget::of(&before, &after, &Hint::default(), &WINDOW);
        assert_eq!((budget.window, budget.user, budget.ready), (700, 300, 200));
        let nobodys = value(&narrow, &[&[(value::NOBODY as usize, 100), (user, 500)], died.as_slice()].concat());
        let budget = Budget::of(&Snapshot::default(), &nobodys, &Hint::default(), &WINDOW);
        assert_eq!((budget.window, budget.sum()), (600, 500));
        let born = value(&narrow, &[&[(value::BORN as usize, 1500)], died.as_slice()].concat());
        assert_eq!(Budget::of(&Snapshot::default(), &born, &Hint::default(), &WINDOW).window, 200);
    }
}
