//! Activity of each thread at each time: intervals without gaps, from the kernel's events.

mod doubts;
mod interval;
#[cfg(test)]
pub(crate) mod samples;
mod standing;
mod stops;
mod sums;
mod thread;
mod wakes;

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use crate::BootNanos;
use crate::activity::thread::{State, Thread};
use crate::kernel::{Cpu, EventKind, Interrupt, KernelContext, KernelEvent, LeaveReason, Tid};
use doubts::HiddenEntry;
pub use interval::{Activity, Interval};
pub use sums::ActivitySum;
pub(crate) use sums::ActivitySums;

/// Limit on the interrupts that a thread is in at one time: no machine nests so deep.
const MAX_NESTED_INTERRUPTS: usize = 16;

/// Tracker of threads through the events of their CPUs.
///
/// Events must come in the order of time. The intervals of each thread follow one another without a
/// gap, from the start to the end. A thread's first event, and the first one after a loss, also
/// show its activity before: had it done something else, an event would have come. If only the end
/// of a call or an interrupt was seen, the time since it may have begun is unknown. Time that no
/// event explains is [`Activity::Unknown`], never quiet. So is the time between a late event and
/// those before which it should have come.
#[derive(Clone, Debug)]
pub struct Activities {
    threads: HashMap<Tid, Thread, RandomState>,
    /// Threads that may wait for a CPU, each once: all that do are among them.
    waiting: Vec<Tid>,
    /// Thread on each CPU, as far as it was seen.
    current: HashMap<Cpu, Tid, RandomState>,
    last: BootNanos,
    /// Limit on the intervals kept of each thread.
    most: usize,
    /// Facts that events showed of the time before them.
    shown: Vec<KernelEvent>,
    /// Limit on `shown`.
    most_shown: usize,
}

impl Activities {
    /// Follows these threads from that time on.
    pub fn new(threads: impl IntoIterator<Item = Tid>, start: BootNanos) -> Self {
        let threads = threads
            .into_iter()
            .map(|tid| (tid, Thread::new(start)))
            .collect();
        Self {
            threads,
            waiting: Vec::new(),
            current: HashMap::default(),
            last: start,
            most: usize::MAX,
            shown: Vec::new(),
            most_shown: 0,
        }
    }

    /// Limits the kept intervals to about this number for all threads together, but at least 1,000
    /// of each. [`Self::settle`] drops the oldest.
    #[must_use]
    pub fn keeping(mut self, intervals: usize) -> Self {
        self.most = (intervals / self.threads.len().max(1)).max(1_000);
        self
    }

    /// Limits the notes of what events show of the time before them to `most`: see
    /// [`crate::Foresight`].
    #[must_use]
    pub(crate) fn noting(mut self, most: usize) -> Self {
        self.most_shown = most;
        self
    }

    /// Returns the notes.
    pub(crate) fn noted(self) -> Vec<KernelEvent> {
        self.shown
    }

    /// Returns events by which all events from now on are lost: for each CPU that a thread has or
    /// waits for, and each that was seen.
    pub(crate) fn all_lost(&self) -> Vec<KernelEvent> {
        let cpus = self
            .threads
            .values()
            .filter_map(|thread| thread.cpu)
            .chain(self.current.keys().copied());
        let cpus: BTreeSet<u32> = cpus.map(|cpu| cpu.0).collect();
        let kind = EventKind::Lost {
            since: self.last,
            count: 0,
        };
        cpus.into_iter()
            .map(|cpu| KernelEvent {
                at: self.last,
                cpu: Cpu(cpu),
                kind,
            })
            .collect()
    }

    /// Returns the intervals of a thread up to that time, in the order of time; empty if the thread
    /// is not followed. Events must have come up to that time.
    pub fn until(&mut self, tid: Tid, to: BootNanos) -> &[Interval] {
        self.last = self.last.max(to);
        self.change(tid, |_| ());
        self.threads.get(&tid).map_or(&[], |thread| &thread.done)
    }

    /// Returns the CPU that a thread has, or whose queue it waits in; `None` if it is not known.
    pub fn cpu(&self, tid: Tid) -> Option<Cpu> {
        self.threads.get(&tid)?.cpu
    }

    /// Hands out the intervals that have ended since the last call, of each thread in the order of
    /// time. Drops the oldest ones if too many are kept.
    pub fn settle(&mut self, mut each: impl FnMut(Tid, Interval)) {
        for (tid, thread) in &mut self.threads {
            // The last one can go on.
            let ended = thread.done.len().saturating_sub(1);
            for interval in thread.done.get(thread.given..ended).unwrap_or_default() {
                each(*tid, *interval);
            }
            thread.given = thread.given.max(ended);
            // Not one at a time: it would move all others.
            if thread.done.len() / 2 > self.most {
                let old = thread.done.len() - self.most;
                thread.done.drain(..old);
                thread.given -= old;
            }
        }
    }

    /// Ends at that time, and hands out all intervals that were not handed out.
    pub fn settle_until(mut self, end: BootNanos, mut each: impl FnMut(Tid, Interval)) {
        for (tid, intervals) in self.ended(end) {
            for interval in intervals {
                each(tid, interval);
            }
        }
    }

    fn begin_interrupt(&mut self, cpu: Cpu, tid: Tid, interrupt: Interrupt) {
        self.left_interrupt(tid, interrupt);
        let now = self.last;
        self.runs(cpu, tid, |thread| {
            // Beyond the limit, the ends of the oldest were not seen.
            if thread.interrupts.len() >= MAX_NESTED_INTERRUPTS {
                thread.interrupts.remove(0);
            }
            thread.interrupts.push((interrupt, now));
        });
    }

    /// Takes the next event. An event that is earlier than the one before it only makes the time
    /// between them unknown.
    pub fn event(&mut self, event: &KernelEvent) {
        if event.at < self.last {
            self.late(event.at);
            return;
        }
        self.last = event.at;
        match event.kind {
            EventKind::Switch { prev, leaves, next } => self.switch(event.cpu, prev, leaves, next),
            EventKind::Wake { tid, on, by } => self.wake(tid, on, by),
            EventKind::Migrate {
                tid,
                to,
                from_behind,
            } => self.migrate(tid, to, from_behind),
            // It may have moved since it was looked at: other events of it are newer.
            EventKind::Found { tid, off_cpu } if self.is_unknown(tid) => {
                self.was(
                    tid,
                    off_cpu.map_or(State::OnCpu, State::from),
                    Some(event.cpu),
                );
            }
            EventKind::Found { .. } => {}
            EventKind::Begin { tid, interrupt } => {
                self.begin_interrupt(event.cpu, tid, interrupt);
            }
            EventKind::End { tid, interrupt } => {
                self.leaves(event.cpu, tid, KernelContext::Interrupt, |thread| {
                    let place = thread.interrupts.iter().rposition(|it| it.0 == interrupt);
                    place.map(|place| thread.interrupts.remove(place)).is_some()
                });
            }
            EventKind::CallEnter { tid, number } => {
                self.left_call(tid);
                let now = self.last;
                self.runs(event.cpu, tid, |thread| {
                    (thread.call, thread.call_since, thread.hidden_call) =
                        (Some(number), now, HiddenEntry::since(now));
                });
            }
            EventKind::CallExit { tid } => {
                let now = self.last;
                self.leaves(event.cpu, tid, KernelContext::Call, |thread| {
                    let is_known = thread.call.take().is_some();
                    if is_known {
                        thread.hidden_call = HiddenEntry::since(now);
                    }
                    is_known
                });
            }
            EventKind::StopSignal { by, .. } => self.stop_signal(by),
            EventKind::Lost { since, .. } => self.lost(event.cpu, since),
            EventKind::Unseen { tid, since } => self.forget(tid, since),
            EventKind::Inside { tid, what } => {
                self.change(tid, |thread| thread.hidden(what).is_inside = true);
            }
        }
    }

    /// Ends at that time. Returns the intervals of each thread that were not handed out, in the
    /// order of time.
    pub fn finish(mut self, end: BootNanos) -> HashMap<Tid, Vec<Interval>> {
        self.ended(end)
    }

    fn ended(&mut self, end: BootNanos) -> HashMap<Tid, Vec<Interval>> {
        self.last = self.last.max(end);
        let tids: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in tids {
            self.change(tid, |_| ());
        }
        let rest = |(tid, mut thread): (Tid, Thread)| (tid, thread.done.split_off(thread.given));
        self.threads.drain().map(rest).collect()
    }

    fn switch(&mut self, cpu: Cpu, prev: Tid, leaves: LeaveReason, next: Tid) {
        // The thread that has the CPU has left it, or the next one has left another one, without an
        // event.
        let other = self
            .current
            .get(&cpu)
            .copied()
            .filter(|other| *other != prev);
        for tid in other.into_iter().chain(Some(next)) {
            self.unless(tid, |state| state != State::OnCpu);
        }
        let now = self.last;
        self.runs(cpu, prev, |thread| {
            thread.state = leaves.into();
            thread.begins_stop(now);
            // Interrupts end before a switch.
            thread.interrupts.clear();
            thread.hidden_interrupt = HiddenEntry::since(now);
        });
        // A thread that waits for this CPU has waited for the one that had it up to now.
        for tid in self.waiting_for(cpu) {
            self.change(tid, |_| ());
        }
        self.change(next, |thread| {
            if matches!(thread.state, State::Blocked | State::Woken) {
                thread.call_since = now;
            }
            thread.continues();
            (thread.state, thread.cpu) = (State::OnCpu, Some(cpu));
            thread.hidden_interrupt = HiddenEntry::since(now);
        });
        self.current.insert(cpu, next);
    }

    /// Returns the threads that wait for a CPU.
    fn waiting_for(&mut self, cpu: Cpu) -> Vec<Tid> {
        let threads = &self.threads;
        let mut found = Vec::new();
        self.waiting.retain(|tid| {
            let thread = threads.get(tid).filter(|thread| thread.waits());
            if thread.is_some_and(|thread| thread.cpu == Some(cpu)) {
                found.push(*tid);
            }
            thread.is_some()
        });
        found
    }

    fn is_unknown(&self, tid: Tid) -> bool {
        self.threads
            .get(&tid)
            .is_some_and(|thread| thread.state == State::Unknown)
    }

    /// Changes a thread that has this CPU.
    fn runs(&mut self, cpu: Cpu, tid: Tid, change: impl FnOnce(&mut Thread)) {
        self.unless(tid, |state| matches!(state, State::OnCpu | State::Unknown));
        self.was(tid, State::OnCpu, Some(cpu));
        self.change(tid, change);
    }

    /// Sets the state that a thread had up to now, if it was unknown.
    fn was(&mut self, tid: Tid, state: State, cpu: Option<Cpu>) {
        // A thread that has just left it has it no longer, even if events of the same nanosecond
        // come.
        let can_have = |thread: &Thread| matches!(thread.state, State::OnCpu | State::Unknown);
        if let Some(cpu) = cpu
            && state == State::OnCpu
            && self.threads.get(&tid).is_none_or(can_have)
        {
            self.current.insert(cpu, tid);
        }
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.state == State::Unknown
        {
            (thread.state, thread.cpu) = (state, cpu.or(thread.cpu));
            if thread.waits() && !self.waiting.contains(&tid) {
                self.waiting.push(tid);
            }
            if state == State::Stopped {
                // It may have been stopped before the signal that was seen.
                thread.stopper = None;
            }
            if let Some(cpu) = thread.cpu
                && self.shown.len() < self.most_shown
            {
                let kind = EventKind::Found {
                    tid,
                    off_cpu: state.leaves(),
                };
                self.shown.push(KernelEvent {
                    at: thread.unknown_since,
                    cpu,
                    kind,
                });
            }
        }
    }

    /// Ends the thread's present interval, then applies the change.
    fn change(&mut self, tid: Tid, change: impl FnOnce(&mut Thread)) {
        let (last, current) = (self.last, &self.current);
        if let Some(thread) = self.threads.get_mut(&tid) {
            let preemptor = thread.cpu.and_then(|cpu| current.get(&cpu)).copied();
            thread.close(last, preemptor);
            let before = (thread.state, thread.cpu);
            change(thread);
            if (thread.state, thread.cpu) != before {
                thread.unseen_since = None;
            }
            if thread.waits() && !self.waiting.contains(&tid) {
                self.waiting.push(tid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
