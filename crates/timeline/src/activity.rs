//! What each thread did at each time: intervals without gaps, from the kernel's events.

use std::collections::HashMap;

use crate::BootNanos;
use crate::kernel::{Cpu, EventKind, KernelEvent, Leaves, Tid};

/// What a thread does, and if it does not run its own code, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Runs its own code.
    Runs,
    /// Runs in a system call of that number.
    Calls(u32),
    /// A hard interrupt of that number has its CPU.
    Hard(u32),
    /// A soft interrupt of that vector has its CPU.
    Soft(u32),
    /// Could run, and waits for a CPU that this thread has.
    Waits(Tid),
    /// Waits for something: in that system call, if it is in one.
    Blocked(Option<u32>),
    /// Is stopped or traced.
    Stopped,
    /// Has ended.
    Ended,
    /// Events were lost, or none came yet.
    Unknown,
}

impl Activity {
    /// Whether the thread can't go on and did not ask for that: what delays its requests without its own doing.
    pub fn is_taken(self) -> bool {
        matches!(self, Self::Hard(_) | Self::Soft(_) | Self::Waits(_) | Self::Stopped)
    }
}

/// An activity from one time up to another, which is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its first nanosecond.
    pub from: BootNanos,
    /// The first one after it.
    pub to: BootNanos,
    /// What was done.
    pub activity: Activity,
}

/// Follows threads through the events of their CPUs.
///
/// Events must come in the order of time. Of each thread the intervals follow one another without a gap, from the start to the
/// last event: time that no event explains is [`Activity::Unknown`], never quiet.
#[derive(Clone, Debug)]
pub struct Activities {
    threads: HashMap<Tid, Thread>,
    /// Who has each CPU, as far as it was seen.
    current: HashMap<Cpu, Tid>,
    last: BootNanos,
}

#[derive(Clone, Debug)]
struct Thread {
    since: BootNanos,
    state: State,
    /// The CPU that it has, or whose queue it waits in.
    cpu: Option<Cpu>,
    call: Option<u32>,
    hard: Option<u32>,
    soft: Option<u32>,
    done: Vec<Interval>,
}

/// Where a thread is, interrupts and calls aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    OnCpu,
    Ready,
    Blocked,
    Stopped,
    Ended,
}

impl From<Leaves> for State {
    fn from(leaves: Leaves) -> Self {
        match leaves {
            Leaves::Preempted => Self::Ready,
            Leaves::Blocked => Self::Blocked,
            Leaves::Stopped => Self::Stopped,
            Leaves::Ended => Self::Ended,
        }
    }
}

impl Activities {
    /// Follows these threads from that time on.
    pub fn new(threads: impl IntoIterator<Item = Tid>, start: BootNanos) -> Self {
        let thread = || Thread {
            since: start,
            state: State::Unknown,
            cpu: None,
            call: None,
            hard: None,
            soft: None,
            done: Vec::new(),
        };
        let threads = threads.into_iter().map(|tid| (tid, thread())).collect();
        Self { threads, current: HashMap::new(), last: start }
    }

    /// Takes the next event in. One that is earlier than the one before it counts as being at that one's time.
    pub fn event(&mut self, event: &KernelEvent) {
        self.last = self.last.max(event.at);
        match event.kind {
            EventKind::Switch { prev, leaves, next } => self.switch(event.cpu, prev, leaves, next),
            EventKind::Wake { tid, on } => self.change(tid, |thread| {
                // A thread that is running already is woken before it could sleep.
                if thread.state != State::OnCpu {
                    (thread.state, thread.cpu) = (State::Ready, Some(on));
                }
            }),
            EventKind::Migrate { tid, to } => self.change(tid, |thread| thread.cpu = Some(to)),
            EventKind::Found { tid, off_cpu } => self.found(event.cpu, tid, off_cpu),
            EventKind::HardBegin { number } => self.on_cpu(event.cpu, |thread| thread.hard = Some(number)),
            EventKind::HardEnd => self.on_cpu(event.cpu, |thread| thread.hard = None),
            EventKind::SoftBegin { vector } => self.on_cpu(event.cpu, |thread| thread.soft = Some(vector)),
            EventKind::SoftEnd => self.on_cpu(event.cpu, |thread| thread.soft = None),
            EventKind::CallEnter { number } => self.on_cpu(event.cpu, |thread| thread.call = Some(number)),
            EventKind::CallExit => self.on_cpu(event.cpu, |thread| thread.call = None),
            EventKind::Lost { since, .. } => self.lost(event.cpu, since),
        }
    }

    /// Ends at that time: the intervals of each thread, in the order of time.
    pub fn finish(mut self, end: BootNanos) -> HashMap<Tid, Vec<Interval>> {
        self.last = self.last.max(end);
        let tids: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in tids {
            self.change(tid, |_| ());
        }
        self.threads.into_iter().map(|(tid, thread)| (tid, thread.done)).collect()
    }

    fn switch(&mut self, cpu: Cpu, prev: Tid, leaves: Leaves, next: Tid) {
        self.change(prev, |thread| {
            // Interrupts end before a switch.
            (thread.state, thread.hard, thread.soft) = (leaves.into(), None, None);
            thread.cpu = Some(cpu);
        });
        // Whoever waits for this CPU has waited for the one who had it up to now.
        let waiting = |thread: &Thread| thread.state == State::Ready && thread.cpu == Some(cpu);
        let waiting: Vec<Tid> =
            self.threads.iter().filter(|(_, thread)| waiting(thread)).map(|(tid, _)| *tid).collect();
        for tid in waiting {
            self.change(tid, |_| ());
        }
        self.current.insert(cpu, next);
        self.change(next, |thread| (thread.state, thread.cpu) = (State::OnCpu, Some(cpu)));
    }

    fn found(&mut self, cpu: Cpu, tid: Tid, off_cpu: Option<Leaves>) {
        if off_cpu.is_none() {
            self.current.insert(cpu, tid);
        }
        self.change(tid, |thread| {
            (thread.state, thread.cpu) = (off_cpu.map_or(State::OnCpu, State::from), Some(cpu));
        });
    }

    /// All that depends on what this CPU did is unknown since then.
    fn lost(&mut self, cpu: Cpu, since: BootNanos) {
        self.current.remove(&cpu);
        for thread in self.threads.values_mut().filter(|thread| thread.cpu == Some(cpu)) {
            thread.close(self.last, None);
            thread.forget_since(since, self.last);
            (thread.state, thread.cpu) = (State::Unknown, None);
            (thread.call, thread.hard, thread.soft) = (None, None, None);
        }
    }

    fn on_cpu(&mut self, cpu: Cpu, change: impl FnOnce(&mut Thread)) {
        if let Some(&tid) = self.current.get(&cpu) {
            self.change(tid, change);
        }
    }

    /// Ends the thread's present interval, then changes what it does.
    fn change(&mut self, tid: Tid, change: impl FnOnce(&mut Thread)) {
        let (last, current) = (self.last, &self.current);
        if let Some(thread) = self.threads.get_mut(&tid) {
            let rival = thread.cpu.and_then(|cpu| current.get(&cpu)).copied();
            thread.close(last, rival);
            change(thread);
        }
    }
}

impl Thread {
    /// Its activity while that thread has its CPU.
    fn activity(&self, rival: Option<Tid>) -> Activity {
        match self.state {
            State::Unknown => Activity::Unknown,
            State::Ready => rival.map_or(Activity::Unknown, Activity::Waits),
            State::Blocked => Activity::Blocked(self.call),
            State::Stopped => Activity::Stopped,
            State::Ended => Activity::Ended,
            State::OnCpu => match (self.hard, self.soft, self.call) {
                (Some(number), _, _) => Activity::Hard(number),
                (None, Some(vector), _) => Activity::Soft(vector),
                (None, None, Some(number)) => Activity::Calls(number),
                (None, None, None) => Activity::Runs,
            },
        }
    }

    /// Ends the present interval at `to`; equal neighbours become one.
    fn close(&mut self, to: BootNanos, rival: Option<Tid>) {
        let activity = self.activity(rival);
        if to > self.since {
            match self.done.last_mut() {
                Some(before) if before.activity == activity => before.to = to,
                _ => self.done.push(Interval { from: self.since, to, activity }),
            }
            self.since = to;
        }
    }

    /// What it did from then on is not known.
    fn forget_since(&mut self, since: BootNanos, to: BootNanos) {
        let known = self.done.partition_point(|interval| interval.to <= since);
        let from = self.done.get(known).map_or(to, |interval| interval.from.max(since));
        let cut = self.done.get(known).filter(|interval| interval.from < since).copied();
        self.done.truncate(known);
        self.done.extend(cut.map(|interval| Interval { to: since, ..interval }));
        if from < to {
            self.done.push(Interval { from, to, activity: Activity::Unknown });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: Tid = Tid(10);
    const RIVAL: Tid = Tid(20);
    const OTHER: Tid = Tid(30);
    const IDLE: Tid = Tid(0);

    /// What the thread 10 did, of events on CPU 0 (or another where one is given), from 0 to the end.
    fn done(events: &[(u64, EventKind)], end: u64) -> Vec<(u64, u64, Activity)> {
        let mut activities = Activities::new([US], BootNanos(0));
        for &(at, kind) in events {
            activities.event(&KernelEvent { at: BootNanos(at), cpu: Cpu(0), kind });
        }
        let done = activities.finish(BootNanos(end)).remove(&US).unwrap();
        done.into_iter().map(|interval| (interval.from.0, interval.to.0, interval.activity)).collect()
    }

    fn switch(prev: Tid, leaves: Leaves, next: Tid) -> EventKind {
        EventKind::Switch { prev, leaves, next }
    }

    #[test]
    fn whoever_has_the_cpu_is_waited_for() {
        let events = [
            (0, EventKind::Found { tid: US, off_cpu: None }),
            (10, switch(US, Leaves::Preempted, RIVAL)),
            (15, switch(RIVAL, Leaves::Blocked, OTHER)),
            (30, switch(OTHER, Leaves::Preempted, US)),
        ];
        let expected = [
            (0, 10, Activity::Runs),
            (10, 15, Activity::Waits(RIVAL)),
            (15, 30, Activity::Waits(OTHER)),
            (30, 40, Activity::Runs),
        ];
        assert_eq!(done(&events, 40), expected);
    }

    #[test]
    fn interrupts_and_calls_are_nested() {
        let events = [
            (0, switch(IDLE, Leaves::Preempted, US)),
            (10, EventKind::CallEnter { number: 1 }),
            (20, EventKind::SoftBegin { vector: 3 }),
            (25, EventKind::HardBegin { number: 40 }),
            (26, EventKind::HardEnd),
            (30, EventKind::SoftEnd),
            (40, switch(US, Leaves::Blocked, IDLE)),
            (50, EventKind::HardBegin { number: 40 }),
            (51, EventKind::Wake { tid: US, on: Cpu(0) }),
            (52, EventKind::HardEnd),
            (55, switch(IDLE, Leaves::Preempted, US)),
            (60, EventKind::CallExit),
        ];
        let expected = [
            (0, 10, Activity::Runs),
            (10, 20, Activity::Calls(1)),
            (20, 25, Activity::Soft(3)),
            (25, 26, Activity::Hard(40)),
            (26, 30, Activity::Soft(3)),
            (30, 40, Activity::Calls(1)),
            (40, 51, Activity::Blocked(Some(1))),
            // The way of the CPU out of idling.
            (51, 55, Activity::Waits(IDLE)),
            (55, 60, Activity::Calls(1)),
            (60, 70, Activity::Runs),
        ];
        assert_eq!(done(&events, 70), expected);
    }

    #[test]
    fn a_loss_is_a_hole_from_its_beginning() {
        let events = [
            (0, switch(IDLE, Leaves::Preempted, US)),
            (10, EventKind::CallEnter { number: 1 }),
            (40, EventKind::Lost { since: BootNanos(25), count: 3 }),
            (50, switch(IDLE, Leaves::Preempted, US)),
        ];
        let expected = [
            (0, 10, Activity::Runs),
            (10, 25, Activity::Calls(1)),
            (25, 50, Activity::Unknown),
            (50, 60, Activity::Runs),
        ];
        assert_eq!(done(&events, 60), expected);
    }

    #[test]
    fn what_nobody_reported_is_unknown() {
        assert_eq!(done(&[], 5), [(0, 5, Activity::Unknown)]);
        // The CPU's thread is not known: nobody is in the call.
        assert_eq!(done(&[(3, EventKind::CallEnter { number: 0 })], 5), [(0, 5, Activity::Unknown)]);
        let ended = [(2, switch(US, Leaves::Ended, IDLE))];
        assert_eq!(done(&ended, 5), [(0, 2, Activity::Unknown), (2, 5, Activity::Ended)]);
    }

    fn any_event() -> impl Strategy<Value = (u64, u32, EventKind)> {
        let tid = || prop::sample::select(vec![IDLE, US, RIVAL]);
        let leaves = prop::sample::select(vec![Leaves::Preempted, Leaves::Blocked, Leaves::Stopped, Leaves::Ended]);
        let kind = prop_oneof![
            (tid(), leaves.clone(), tid()).prop_map(|(prev, leaves, next)| EventKind::Switch { prev, leaves, next }),
            (tid(), 0..2u32).prop_map(|(tid, on)| EventKind::Wake { tid, on: Cpu(on) }),
            (tid(), 0..2u32).prop_map(|(tid, to)| EventKind::Migrate { tid, to: Cpu(to) }),
            (tid(), prop::option::of(leaves)).prop_map(|(tid, off_cpu)| EventKind::Found { tid, off_cpu }),
            (0..3u32).prop_map(|number| EventKind::HardBegin { number }),
            Just(EventKind::HardEnd),
            (0..3u32).prop_map(|vector| EventKind::SoftBegin { vector }),
            Just(EventKind::SoftEnd),
            (0..3u32).prop_map(|number| EventKind::CallEnter { number }),
            Just(EventKind::CallExit),
            (0..200u64).prop_map(|since| EventKind::Lost { since: BootNanos(since), count: 1 }),
        ];
        (0..200u64, 0..2u32, kind)
    }

    proptest! {
        /// Whatever comes, in whatever order: the intervals of a thread follow one another from the start to the end.
        #[test]
        fn time_adds_up(events in prop::collection::vec(any_event(), 0..60)) {
            let mut activities = Activities::new([US, RIVAL], BootNanos(5));
            for &(at, cpu, kind) in &events {
                activities.event(&KernelEvent { at: BootNanos(at), cpu: Cpu(cpu), kind });
            }
            for done in activities.finish(BootNanos(250)).into_values() {
                prop_assert_eq!((done[0].from.0, done[done.len() - 1].to.0), (5, 250));
                prop_assert!(done.iter().all(|interval| interval.from < interval.to));
                prop_assert!(done.windows(2).all(|pair| pair[0].to == pair[1].from));
            }
        }
    }
}
