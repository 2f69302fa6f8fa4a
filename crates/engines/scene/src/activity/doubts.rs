//! Doubts about what events seemed to show: others were lost, came late, or contradict them.
//!
//! A call or an interrupt can begin where events were lost, or before the first one. Until an event
//! shows its end, the thread seems to run its own code. From then on that time is unknown, since
//! the thread may have been inside all the time.

use super::{Activities, Activity, Interval, Thread};
use crate::BootNanos;
use crate::activity::thread::State;
use crate::kernel::{Cpu, EventKind, Interrupt, KernelContext, KernelEvent, Tid};

/// Call or interrupt that a thread may be in without an event of its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct HiddenEntry {
    /// Earliest time at which it can have begun.
    since: BootNanos,
    /// True if the thread is in it: an event ends it later ([`crate::Foresight`]).
    pub(super) is_inside: bool,
}

impl HiddenEntry {
    /// Creates one that can have begun since then, but is not known to have begun.
    pub(super) fn since(since: BootNanos) -> Self {
        Self {
            since,
            is_inside: false,
        }
    }
}

impl Activities {
    /// Forgets what this thread did since its last event if `can_be` rejects its state: then the
    /// kernel has not reported a switch. Linux 6.18 was seen to leave out one of thousands under
    /// load, for all tracers.
    pub(super) fn unless(&mut self, tid: Tid, can_be: impl FnOnce(State) -> bool) {
        if let Some(thread) = self
            .threads
            .get(&tid)
            .filter(|thread| !can_be(thread.state))
        {
            self.unseen(tid, thread.since);
        }
    }

    /// Checks a thread that enters a call. If it seems to be in one, that one ended without an
    /// event, at an unknown time.
    pub(super) fn left_call(&mut self, tid: Tid) {
        if let Some(thread) = self
            .threads
            .get(&tid)
            .filter(|thread| thread.call.is_some())
        {
            self.unseen(tid, thread.call_since);
        }
    }

    /// Checks a thread that is interrupted. If it seems to be in that interrupt already, the
    /// earlier one ended without an event.
    pub(super) fn left_interrupt(&mut self, tid: Tid, interrupt: Interrupt) {
        let inside = |thread: &Thread| {
            thread
                .interrupts
                .iter()
                .find(|it| it.0 == interrupt)
                .map(|it| it.1)
        };
        if let Some(since) = self.threads.get(&tid).and_then(inside) {
            self.unseen(tid, since);
        }
    }

    /// Handles an event of the thread that was not reported, at some time since then.
    fn unseen(&mut self, tid: Tid, since: BootNanos) {
        let Some(thread) = self.threads.get(&tid).filter(|_| since < self.last) else {
            return;
        };
        let (cpu, kind) = (
            thread.cpu.unwrap_or_default(),
            EventKind::Unseen { tid, since },
        );
        if self.shown.len() < self.most_shown {
            // The hole begins at its time, and ends before this event, which shows what is known
            // again.
            let ends = BootNanos(self.last.0 - 1);
            self.shown
                .extend([since, ends].map(|at| KernelEvent { at, cpu, kind }));
        }
        self.forget(tid, since);
    }

    /// Forgets what events after that time seemed to show: an event of that time has come only now.
    pub(super) fn late(&mut self, at: BootNanos) {
        self.current.clear();
        for thread in self.threads.values_mut() {
            thread.close(self.last, None);
            // A thread's activity is also concluded from the event after it: for the whole
            // interval.
            let hit = thread.done.partition_point(|interval| interval.to <= at);
            let since = thread.done.get(hit).map_or(at, |interval| interval.from);
            thread.forget(since, self.last, None);
        }
    }

    /// Forgets what a thread did since then.
    pub(super) fn forget(&mut self, tid: Tid, since: BootNanos) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let preemptor = thread.cpu.and_then(|cpu| self.current.get(&cpu)).copied();
        // For threads that wait for its CPU it is unknown for whom they wait.
        self.current.retain(|_, has| *has != tid);
        thread.forget(since, self.last, preemptor);
    }

    /// Forgets everything since then that depends on this CPU.
    pub(super) fn lost(&mut self, cpu: Cpu, since: BootNanos) {
        let preemptor = self.current.remove(&cpu);
        if self.shown.len() < self.most_shown {
            self.shown.push(KernelEvent {
                at: since,
                cpu,
                kind: EventKind::Lost { since, count: 0 },
            });
        }
        // A signal may be lost, whatever CPU its receivers have.
        for thread in self.threads.values_mut() {
            thread.doubt_stopper(since, self.last);
        }
        // A thread that no event has shown yet can be anywhere.
        for thread in self
            .threads
            .values_mut()
            .filter(|thread| thread.cpu.is_none_or(|its| its == cpu))
        {
            thread.forget(since, self.last, preemptor);
        }
    }

    /// Handles the thread, which has this CPU, leaving a call or an interrupt. `leave` returns true
    /// if the thread was seen to be in it; if not, it may have been in it since the hole. Intervals
    /// that were handed out remain.
    pub(super) fn leaves(
        &mut self,
        cpu: Cpu,
        tid: Tid,
        what: KernelContext,
        leave: impl FnOnce(&mut Thread) -> bool,
    ) {
        let (now, mut since) = (self.last, None);
        self.runs(cpu, tid, |thread| {
            if !leave(thread) {
                let hidden = std::mem::replace(thread.hidden(what), HiddenEntry::since(now));
                thread.doubt(hidden.since, what);
                since = Some(hidden.since).filter(|since| *since < now);
            }
        });
        if let Some(at) = since.filter(|_| self.shown.len() < self.most_shown) {
            self.shown.push(KernelEvent {
                at,
                cpu,
                kind: EventKind::Inside { tid, what },
            });
        }
    }
}

impl Thread {
    /// Returns the call or the interrupt that it may be in.
    pub(super) fn hidden(&mut self, what: KernelContext) -> &mut HiddenEntry {
        match what {
            KernelContext::Call => &mut self.hidden_call,
            KernelContext::Interrupt => &mut self.hidden_interrupt,
        }
    }

    /// Makes the time since then unknown in which it seemed to be in nothing of that kind.
    fn doubt(&mut self, since: BootNanos, what: KernelContext) {
        let first = self
            .done
            .partition_point(|interval| interval.to <= since)
            .max(self.given);
        let rest = if first < self.done.len() {
            self.done.split_off(first)
        } else {
            Vec::new()
        };
        for interval in rest {
            let is_doubtful = match interval.activity {
                Activity::Runs => true,
                Activity::Calls(_) => what == KernelContext::Interrupt,
                _ => false,
            };
            if is_doubtful {
                let middle = since.clamp(interval.from, interval.to);
                self.add(Interval {
                    to: middle,
                    ..interval
                });
                self.add(Interval {
                    from: middle,
                    to: interval.to,
                    activity: Activity::Unknown,
                });
            } else {
                self.add(interval);
            }
        }
    }
}
