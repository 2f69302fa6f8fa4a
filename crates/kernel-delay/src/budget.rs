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
        raw.into_budget(lifetime(after, window))
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
        let mostly_ran = hint.ran >= (window.stop - window.start) / 2;
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
            (0, None) if hint.system > hint.user => (SLOT_OTHER, SLOT_OTHER),
            (0, None) => (SLOT_NONE, SLOT_NONE),
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
