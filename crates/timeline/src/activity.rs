//! What each thread did at each time: intervals without gaps, from the kernel's events.

use std::collections::HashMap;

use crate::BootNanos;
use crate::kernel::{Cpu, EventKind, Interrupt, KernelEvent, Leaves, Tid};

/// What a thread does, and if it does not run its own code, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Runs its own code.
    Runs,
    /// Runs in a system call of that number.
    Calls(u32),
    /// An interrupt has its CPU.
    Interrupted(Interrupt),
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
        matches!(self, Self::Interrupted(_) | Self::Waits(_) | Self::Stopped)
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
/// end. What a thread did before its first event, and between a loss and the next event, is what that event shows: had it done
/// something else, an event would have come. Time that no event explains is [`Activity::Unknown`], never quiet.
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
    /// Those that it is in, the innermost last.
    interrupts: Vec<Interrupt>,
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
            interrupts: Vec::new(),
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
                // A thread that runs can be woken, too: before it could sleep. One of which nothing is known may run.
                if !matches!(thread.state, State::OnCpu | State::Unknown) {
                    (thread.state, thread.cpu) = (State::Ready, Some(on));
                }
            }),
            EventKind::Migrate { tid, to } => self.change(tid, |thread| thread.cpu = Some(to)),
            EventKind::Found { tid, off_cpu } => {
                self.was(tid, off_cpu.map_or(State::OnCpu, State::from), Some(event.cpu));
            }
            EventKind::Begin { tid, interrupt } => self.runs(event.cpu, tid, |thread| {
                // One whose end was not seen begins anew.
                thread.interrupts.retain(|inside| *inside != interrupt);
                thread.interrupts.push(interrupt);
            }),
            EventKind::End { tid, interrupt } => {
                self.runs(event.cpu, tid, |thread| thread.interrupts.retain(|inside| *inside != interrupt));
            }
            EventKind::CallEnter { tid, number } => self.runs(event.cpu, tid, |thread| thread.call = Some(number)),
            EventKind::CallExit { tid } => self.runs(event.cpu, tid, |thread| thread.call = None),
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
        self.runs(cpu, prev, |thread| {
            thread.state = leaves.into();
            // They end before a switch.
            thread.interrupts.clear();
        });
        // Whoever waits for this CPU has waited for the one who had it up to now.
        let waits = |thread: &Thread| thread.state == State::Ready && thread.cpu == Some(cpu);
        let waiting: Vec<Tid> = self.threads.iter().filter(|(_, thread)| waits(thread)).map(|(tid, _)| *tid).collect();
        for tid in waiting {
            self.change(tid, |_| ());
        }
        self.change(next, |thread| (thread.state, thread.cpu) = (State::OnCpu, Some(cpu)));
        self.current.insert(cpu, next);
    }

    /// The thread has this CPU, and changes something.
    fn runs(&mut self, cpu: Cpu, tid: Tid, change: impl FnOnce(&mut Thread)) {
        self.was(tid, State::OnCpu, Some(cpu));
        self.change(tid, change);
    }

    /// What a thread of which nothing was known did up to now.
    fn was(&mut self, tid: Tid, state: State, cpu: Option<Cpu>) {
        if let Some(cpu) = cpu
            && state == State::OnCpu
        {
            self.current.insert(cpu, tid);
        }
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.state == State::Unknown
        {
            (thread.state, thread.cpu) = (state, cpu.or(thread.cpu));
        }
    }

    /// All that depends on what this CPU did is unknown since then.
    fn lost(&mut self, cpu: Cpu, since: BootNanos) {
        self.current.remove(&cpu);
        for thread in self.threads.values_mut().filter(|thread| thread.cpu == Some(cpu)) {
            thread.close(self.last, None);
            thread.forget_since(since, self.last);
            (thread.state, thread.cpu) = (State::Unknown, None);
            thread.call = None;
            thread.interrupts.clear();
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
            State::OnCpu => match (self.interrupts.last(), self.call) {
                (Some(interrupt), _) => Activity::Interrupted(*interrupt),
                (None, Some(number)) => Activity::Calls(number),
                (None, None) => Activity::Runs,
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
        let (soft, hard) = (Interrupt::Soft(3), Interrupt::Hard(40));
        let begin = |interrupt| EventKind::Begin { tid: US, interrupt };
        let end = |interrupt| EventKind::End { tid: US, interrupt };
        let events = [
            (0, switch(IDLE, Leaves::Preempted, US)),
            (10, EventKind::CallEnter { tid: US, number: 1 }),
            (20, begin(soft)),
            (25, begin(hard)),
            (26, end(hard)),
            (30, end(soft)),
            (40, switch(US, Leaves::Blocked, IDLE)),
            (51, EventKind::Wake { tid: US, on: Cpu(0) }),
            (55, switch(IDLE, Leaves::Preempted, US)),
            (60, EventKind::CallExit { tid: US }),
        ];
        let expected = [
            (0, 10, Activity::Runs),
            (10, 20, Activity::Calls(1)),
            (20, 25, Activity::Interrupted(soft)),
            (25, 26, Activity::Interrupted(hard)),
            (26, 30, Activity::Interrupted(soft)),
            (30, 40, Activity::Calls(1)),
            (40, 51, Activity::Blocked(Some(1))),
            // The CPU's way out of idling.
            (51, 55, Activity::Waits(IDLE)),
            (55, 60, Activity::Calls(1)),
            (60, 70, Activity::Runs),
        ];
        assert_eq!(done(&events, 70), expected);
    }

    #[test]
    fn a_loss_is_a_hole_that_the_next_event_ends() {
        let events = [
            (0, switch(IDLE, Leaves::Preempted, US)),
            (10, EventKind::CallEnter { tid: US, number: 1 }),
            (40, EventKind::Lost { since: BootNanos(25), count: 3 }),
            (50, switch(US, Leaves::Stopped, IDLE)),
        ];
        let expected = [
            (0, 10, Activity::Runs),
            (10, 25, Activity::Calls(1)),
            (25, 40, Activity::Unknown),
            (40, 50, Activity::Runs),
            (50, 60, Activity::Stopped),
        ];
        assert_eq!(done(&events, 60), expected);
    }

    #[test]
    fn the_first_event_shows_what_was_before() {
        let tick = |kind: fn(Tid, Interrupt) -> EventKind| kind(US, Interrupt::Tick);
        let begin = tick(|tid, interrupt| EventKind::Begin { tid, interrupt });
        assert_eq!(done(&[(3, begin)], 3), [(0, 3, Activity::Runs)]);
        // It may have slept, or run.
        assert_eq!(done(&[(3, EventKind::Wake { tid: US, on: Cpu(0) })], 3), [(0, 3, Activity::Unknown)]);
        assert_eq!(done(&[(3, EventKind::Found { tid: US, off_cpu: None })], 5), [(0, 5, Activity::Runs)]);
        let ended = [(2, switch(US, Leaves::Ended, IDLE))];
        assert_eq!(done(&ended, 5), [(0, 2, Activity::Runs), (2, 5, Activity::Ended)]);
        // It waited, or was woken and waited; for whom, nobody saw.
        assert_eq!(
            done(&[(2, switch(IDLE, Leaves::Preempted, US))], 3),
            [(0, 2, Activity::Unknown), (2, 3, Activity::Runs)]
        );
        assert_eq!(done(&[], 5), [(0, 5, Activity::Unknown)]);
    }

    fn any_event() -> impl Strategy<Value = (u64, u32, EventKind)> {
        let tid = || prop::sample::select(vec![IDLE, US, RIVAL]);
        let interrupt = || prop::sample::select(vec![Interrupt::Hard(1), Interrupt::Soft(1), Interrupt::Tick]);
        let leaves = prop::sample::select(vec![Leaves::Preempted, Leaves::Blocked, Leaves::Stopped, Leaves::Ended]);
        let kind = prop_oneof![
            (tid(), leaves.clone(), tid()).prop_map(|(prev, leaves, next)| EventKind::Switch { prev, leaves, next }),
            (tid(), 0..2u32).prop_map(|(tid, on)| EventKind::Wake { tid, on: Cpu(on) }),
            (tid(), 0..2u32).prop_map(|(tid, to)| EventKind::Migrate { tid, to: Cpu(to) }),
            (tid(), prop::option::of(leaves)).prop_map(|(tid, off_cpu)| EventKind::Found { tid, off_cpu }),
            (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::Begin { tid, interrupt }),
            (tid(), interrupt()).prop_map(|(tid, interrupt)| EventKind::End { tid, interrupt }),
            (tid(), 0..3u32).prop_map(|(tid, number)| EventKind::CallEnter { tid, number }),
            tid().prop_map(|tid| EventKind::CallExit { tid }),
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
