//! Division of a thread's time.

use ordering::Order as _;

use crate::layout::{
    Bucket, SLOT_FAULT, SLOT_NONE, SLOT_OTHER, SLOT_RECLAIM, SLOT_UNKNOWN, SLOTS, first, slot_of,
};

use crate::sample::{ProcFallback, Window};
use crate::snapshot::Snapshot;

/// Time in a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallTime {
    /// Number of the call, or one of the slots that stand for others.
    pub slot: u32,
    /// Nanoseconds on the CPU.
    pub cpu: u64,
    /// Nanoseconds blocked.
    pub blocked: u64,
}

/// Division of a thread's time, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// Part of the window in which the thread lived.
    pub window: u64,
    /// Nanoseconds in its own code; with its page faults, if these are not seen
    /// ([`AttachedPrograms::unseen_faults`](crate::live::AttachedPrograms::unseen_faults)).
    pub user: u64,
    /// System calls that took time, longest first.
    pub calls: Vec<CallTime>,
    /// Nanoseconds on the CPU in page faults of its own code.
    pub fault_cpu: u64,
    /// Nanoseconds blocked in these faults, waiting for a device or for memory of others.
    pub fault_blocked: u64,
    /// Nanoseconds on the CPU in reclaim of memory, in a call or in a page fault: memory was short,
    /// or the control group's limit was reached.
    pub reclaim_cpu: u64,
    /// Nanoseconds blocked in reclaim.
    pub reclaim_blocked: u64,
    /// Nanoseconds blocked elsewhere: on the way back from a call, an interrupt or a signal to its
    /// own code.
    pub blocked_elsewhere: u64,
    /// Nanoseconds frozen with its control group.
    pub frozen: u64,
    /// Nanoseconds waiting for a CPU.
    pub ready: u64,
    /// Nanoseconds in hard interrupts.
    pub hard: u64,
    /// Nanoseconds in soft interrupts.
    pub soft: u64,
    /// Nanoseconds stopped by a signal or a debugger.
    pub stopped: u64,
    /// Nanoseconds in our own programs, if events are sent: reading stacks and writing events.
    pub traced: u64,
}

impl Budget {
    /// Returns the time on the CPU in system calls.
    pub fn in_calls(&self) -> u64 {
        self.calls.iter().map(|call| call.cpu).sum()
    }

    /// Returns the time on the CPU for itself: in its own code, in calls, in page faults, in
    /// reclaim.
    pub fn on_cpu(&self) -> u64 {
        self.user + self.in_calls() + self.fault_cpu + self.reclaim_cpu
    }

    /// Returns the time spent waiting for something other than a CPU.
    pub fn blocked(&self) -> u64 {
        let calls: u64 = self.calls.iter().map(|call| call.blocked).sum();
        calls + self.fault_blocked + self.reclaim_blocked + self.blocked_elsewhere
    }

    /// Returns the sum of all parts. It equals the window, except for the difference of two CPUs'
    /// clocks and an event at the very edge.
    pub fn sum(&self) -> u64 {
        self.on_cpu()
            + self.blocked()
            + self.ready
            + self.hard
            + self.soft
            + self.stopped
            + self.frozen
            + self.traced
    }

    /// Compares two snapshots of a thread's value; `fallback` has the data from `/proc` for a
    /// thread without an event.
    pub(crate) fn between(
        before: &Snapshot,
        after: &Snapshot,
        fallback: &ProcFallback,
        window: &Window,
    ) -> Self {
        let mut raw = RawBudget::between(before, after);
        raw.close(after, window);
        raw.settle(after, fallback, window);
        let nobodys = after.thread.nobody.wrapping_sub(before.thread.nobody);
        raw.into_budget(lifetime(after, window).saturating_sub(nobodys))
    }
}

/// Returns the part of the window in which the thread lived.
fn lifetime(after: &Snapshot, window: &Window) -> u64 {
    let ended = after.thread.end_time;
    let stop = if ended == 0 {
        window.stop
    } else {
        window.stop.min(ended)
    };
    stop.saturating_sub(window.start.max(after.thread.start_time))
}

/// Sums before the nature of some of them is known.
pub(crate) struct RawBudget {
    /// Time on the CPU and time blocked, by slot.
    calls: Vec<(u64, u64)>,
    unsure: u64,
    ready: u64,
    stopped: u64,
    hard: u64,
    soft: u64,
    frozen: u64,
    traced: u64,
}

impl RawBudget {
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let call = |slot| {
            let (before, after) = (before.call(slot), after.call(slot));
            (
                after.cpu.wrapping_sub(before.cpu),
                after.blocked.wrapping_sub(before.blocked),
            )
        };
        let (before, after) = (&before.thread, &after.thread);
        Self {
            calls: (0..SLOTS).map(call).collect(),
            unsure: after.unsure.wrapping_sub(before.unsure),
            ready: after.ready.wrapping_sub(before.ready),
            stopped: after.stopped.wrapping_sub(before.stopped),
            hard: after.hard.wrapping_sub(before.hard),
            soft: after.soft.wrapping_sub(before.soft),
            frozen: after.frozen.wrapping_sub(before.frozen),
            traced: after.traced.wrapping_sub(before.traced),
        }
    }

    /// Adds the time from the last event to the window's end to the bucket of that time.
    pub(crate) fn close(&mut self, after: &Snapshot, window: &Window) {
        if after.is_dead() {
            return;
        }
        let open = window.stop.saturating_sub(after.mark().max(window.start));
        // If time belongs to nobody, or is lost, the budget lacks it, which its sum shows.
        if let Some(sum) = self.sum_of(after) {
            *sum += open;
        }
    }

    /// Takes back the time that [`Self::close`] added when the first of the two snapshots was the
    /// second one, with the window's end at that time. `None` if the sum is smaller: the snapshots
    /// do not belong together.
    pub(crate) fn take_back(&mut self, before: &Snapshot, window: &Window) -> Option<()> {
        if before.is_dead() {
            return Some(());
        }
        let open = window.stop.saturating_sub(before.mark().max(window.start));
        let Some(sum) = self.sum_of(before) else {
            return Some(());
        };
        *sum = sum.checked_sub(open)?;
        Some(())
    }

    /// Returns the sum to which a thread's time goes at present; `None` if time belongs to nobody.
    fn sum_of(&mut self, thread: &Snapshot) -> Option<&mut u64> {
        // A bucket's slot is one of ours: `Bucket::at` has checked that.
        Some(match Bucket::at(thread.thread.bucket)? {
            Bucket::OnCpu(slot) => &mut self.calls[slot as usize].0,
            Bucket::Blocked(slot) => &mut self.calls[slot as usize].1,
            Bucket::Unsure => &mut self.unsure,
            Bucket::Ready => &mut self.ready,
            Bucket::Stopped => &mut self.stopped,
            Bucket::Hard => &mut self.hard,
            Bucket::Soft => &mut self.soft,
            Bucket::Frozen => &mut self.frozen,
            Bucket::Traced => &mut self.traced,
        })
    }

    /// Assigns the time before the first event, and the time of the unknown first call.
    pub(crate) fn settle(&mut self, after: &Snapshot, fallback: &ProcFallback, window: &Window) {
        let unsure = std::mem::take(&mut self.unsure);
        let unknown = SLOT_UNKNOWN as usize;
        let mostly_ran = fallback.ran >= window.length() / 2;
        match (after.thread.first, fallback.state) {
            (first::RUNNING, _) => self.calls[unknown].0 += unsure,
            (first::READY, _) => self.ready += unsure,
            (_, 'T' | 't') => self.stopped += unsure,
            (first::NONE | first::ASLEEP, _) if fallback.is_frozen => self.frozen += unsure,
            (first::NONE, 'R') if mostly_ran => self.calls[unknown].0 += unsure,
            (first::NONE, 'R') => self.ready += unsure,
            _ => self.calls[unknown].1 += unsure,
        }
        let (cpu, blocked) = std::mem::take(&mut self.calls[unknown]);
        let (on_cpu, off_cpu) = match (after.thread.resolved, fallback.call) {
            (0, Some(call)) => (call, call),
            (0, None) if fallback.system > fallback.user => (SLOT_OTHER, SLOT_UNKNOWN),
            (0, None) => (SLOT_NONE, SLOT_UNKNOWN),
            (entry, _) => (slot_of(entry), slot_of(entry)),
        };
        self.calls[(on_cpu as usize).min(unknown)].0 += cpu;
        self.calls[(off_cpu as usize).min(unknown)].1 += blocked;
    }

    pub(crate) fn into_budget(mut self, window: u64) -> Budget {
        let mut take = |slot: u32| std::mem::take(&mut self.calls[slot as usize]);
        let (user, blocked_elsewhere) = take(SLOT_NONE);
        let (fault_cpu, fault_blocked) = take(SLOT_FAULT);
        let (reclaim_cpu, reclaim_blocked) = take(SLOT_RECLAIM);
        let calls = (0..).zip(&self.calls).filter(|(_, time)| **time != (0, 0));
        let mut calls: Vec<CallTime> = calls
            .map(|(slot, &(cpu, blocked))| CallTime { slot, cpu, blocked })
            .collect();
        calls.order_by_key(|call| std::cmp::Reverse(call.cpu + call.blocked));
        let Self {
            ready,
            stopped,
            hard,
            soft,
            frozen,
            traced,
            ..
        } = self;
        Budget {
            window,
            user,
            calls,
            fault_cpu,
            fault_blocked,
            reclaim_cpu,
            reclaim_blocked,
            blocked_elsewhere,
            frozen,
            ready,
            hard,
            soft,
            stopped,
            traced,
        }
    }
}

#[cfg(test)]
mod tests;
