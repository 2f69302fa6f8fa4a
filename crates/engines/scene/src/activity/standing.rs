//! Present knowledge of threads and CPUs as events, for a record of events that begins in the
//! middle.

use std::collections::BTreeSet;

use super::{Activities, Thread};
use crate::activity::thread::State;
use crate::kernel::{Cpu, EventKind, KernelEvent, LeaveReason, Tid, Waker};

/// Idle task of each CPU.
const IDLE: Tid = Tid(0);

impl Activities {
    /// Follows one more thread from the last event on, if it is not followed yet.
    pub fn follow(&mut self, tid: Tid) {
        let last = self.last;
        self.threads.entry(tid).or_insert_with(|| Thread::new(last));
    }

    /// Stops following all threads but these.
    pub fn only(&mut self, keep: &BTreeSet<Tid>) {
        self.threads.retain(|tid, _| keep.contains(tid));
    }

    /// Returns the thread of each CPU, as far as it was seen.
    pub fn current(&self) -> impl Iterator<Item = (Cpu, Tid)> {
        self.current.iter().map(|(cpu, tid)| (*cpu, *tid))
    }

    /// Returns the followed threads.
    pub fn followed(&self) -> impl Iterator<Item = Tid> {
        self.threads.keys().copied()
    }

    /// Returns events, at the time of the last one, that give [`Activities`] which begin then the
    /// present knowledge: the state of each thread, and the thread of each CPU.
    pub fn standing(&self) -> Vec<KernelEvent> {
        let mut events = Vec::new();
        let mut add = |cpu, kind| {
            events.push(KernelEvent {
                at: self.last,
                cpu,
                kind,
            });
        };
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_unstable_by_key(|(tid, _)| **tid);
        for (&tid, thread) in threads {
            let is_off = !matches!(thread.state, State::OnCpu | State::Unknown);
            if let Some(cpu) = thread.cpu.filter(|_| is_off) {
                thread.stands(tid, cpu, &mut add);
            }
        }
        let mut current: Vec<_> = self.current.iter().collect();
        current.sort_unstable();
        for (&cpu, &tid) in current {
            let Some(thread) = self
                .threads
                .get(&tid)
                .filter(|thread| thread.state == State::OnCpu)
            else {
                // For a thread that is not followed, only a switch to it shows that it has the CPU.
                add(
                    cpu,
                    EventKind::Switch {
                        prev: IDLE,
                        leaves: LeaveReason::Preempted,
                        next: tid,
                    },
                );
                continue;
            };
            add(cpu, EventKind::Found { tid, off_cpu: None });
            if let Some(number) = thread.call {
                add(cpu, EventKind::CallEnter { tid, number });
            }
            for &(interrupt, _) in &thread.interrupts {
                add(cpu, EventKind::Begin { tid, interrupt });
            }
        }
        events
    }
}

impl Thread {
    /// Adds the events for a thread that is off its CPU.
    fn stands(&self, tid: Tid, cpu: Cpu, add: &mut impl FnMut(Cpu, EventKind)) {
        // A woken thread was blocked before.
        let off_cpu = if self.state == State::Woken {
            Some(LeaveReason::Blocked)
        } else {
            self.state.leaves()
        };
        add(cpu, EventKind::Found { tid, off_cpu });
        if let Some(number) = self.call {
            add(cpu, EventKind::CallEnter { tid, number });
        }
        if self.state == State::Woken {
            let by = Waker::Unknown;
            add(cpu, EventKind::Wake { tid, on: cpu, by });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::activity::samples::{OURS, check_known, events, whole_events};
    use crate::{BootNanos, Interval, Lookahead, LookaheadEvents};

    /// Returns what the events show from that time on.
    fn shown(
        events: &[KernelEvent],
        start: BootNanos,
        from: BootNanos,
    ) -> Vec<(Tid, Vec<Interval>)> {
        let mut foresight = Lookahead::new(OURS, start);
        for event in events {
            foresight.event(event);
        }
        let mut activities = Activities::new(OURS, start);
        for event in
            LookaheadEvents::new(events.iter().copied().map(Ok::<_, ()>), &foresight.finish())
        {
            activities.event(&event.unwrap());
        }
        let mut all: Vec<_> = activities
            .finish(BootNanos(1_000_000))
            .into_iter()
            .collect();
        all.sort_by_key(|(tid, _)| *tid);
        for (_, intervals) in &mut all {
            intervals.retain(|interval| interval.to > from);
            if let Some(first) = intervals.first_mut() {
                first.from = first.from.max(from);
            }
        }
        all
    }

    /// Returns what all events show from one of them on, and the same if the standing events
    /// replace those before it.
    fn whole_and_cut(events: &[KernelEvent], at: usize) -> [Vec<(Tid, Vec<Interval>)>; 2] {
        let (before, after) = events.split_at(at.min(events.len()));
        let start = BootNanos(5);
        let mut front = Activities::new(OURS, start);
        for event in before {
            front.event(event);
        }
        let from = front.last;
        let cut: Vec<_> = front
            .standing()
            .into_iter()
            .chain(after.iter().copied())
            .collect();
        let [mut whole, mut cut] = [shown(events, start, from), shown(&cut, from, from)];
        for all in [&mut whole, &mut cut] {
            // The cut may learn only later what the whole learns of earlier times.
            all.retain(|(tid, _)| front.threads[tid].state != State::Unknown);
        }
        [whole, cut]
    }

    proptest! {
        #[test]
        fn a_cut_event_stream_shows_the_same(events in whole_events(60), at in 0..60_usize) {
            let [whole, cut] = whole_and_cut(&events, at);
            prop_assert_eq!(whole, cut);
        }

        #[test]
        fn a_cut_event_stream_shows_nothing_wrong(events in events(), at in 0..60_usize) {
            let [whole, cut] = whole_and_cut(&events, at);
            check_known(&whole, &cut)?;
        }
    }
}
