//! Budgets that go on for as long as the programs are attached: what each thread's time went to since it was read last.
//!
//! A window's budget is cut at the window's edges. Here there is one window that does not end, and each reading closes the books of
//! a thread at a moment of its own: the time of the reading, or that of its last event, if that came later. The next one goes on
//! from there. So there is no gap between two readings, and a thread's parts add up to its wall clock, whenever it is read.

use std::collections::{HashMap, HashSet};

use crate::budget::{Budget, Raw};
use crate::by_thread::ByThread;
use crate::layout::{InterruptKey, PreemptorKey, SLOT_FAULT, SLOT_RECLAIM, Tally};
use crate::names::call_name;
use crate::preemptors::{Relation, preemptors};
use crate::sample::{Interrupt, ProcFallback, Window, WindowSnapshot, interrupts_of};
use crate::snapshot::Snapshot;

/// Where time went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// In the thread's own code.
    User,
    /// On the CPU in a system call, in reclaim of memory, or in a page fault.
    Syscall,
    /// Waiting in one of these for something other than a CPU.
    Blocked,
    /// Waiting for something other than a CPU elsewhere: in no call.
    Elsewhere,
    /// Waiting for a CPU.
    Ready,
    /// In hard interrupts.
    Hard,
    /// In soft interrupts.
    Soft,
    /// Stopped by a signal or a debugger, or frozen with its control group.
    Stopped,
    /// It can't be known.
    Unknown,
}

impl Place {
    /// In labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Syscall => "syscall",
            Self::Blocked => "blocked",
            Self::Elsewhere => "elsewhere",
            Self::Ready => "ready",
            Self::Hard => "irq",
            Self::Soft => "softirq",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

/// Name of what stops a thread that is frozen with its control group.
const FROZEN: &str = "frozen cgroup";

/// A part of a thread's time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where it went.
    pub place: Place,
    /// By whom: the system call, who ran instead, the interrupt. Empty if there is nobody to name.
    pub by: String,
    /// Nanoseconds.
    pub nanos: u64,
}

/// What a thread's time went to since it was read last. The parts add up to the time that has passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    /// Its number.
    pub tid: u32,
    /// Its process's number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// How much time has passed, in nanoseconds.
    pub nanos: u64,
    /// The parts.
    pub parts: Vec<Part>,
    /// Number of absences that were counted, and their sum in nanoseconds: of those that are over, wherever they began.
    pub absences: (u64, u64),
    /// Whether it has ended.
    pub has_ended: bool,
}

/// A thread, as it was read now.
#[derive(Clone, Debug)]
pub(crate) struct ThreadReading {
    pub(crate) tid: u32,
    pub(crate) after: Snapshot,
    /// When it was read, before its value was.
    pub(crate) at: u64,
    /// What `/proc` says of the time since it was read last.
    pub(crate) fallback: ProcFallback,
    pub(crate) name: Option<String>,
}

/// Who ran and which interrupts came since the last reading.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    pub(crate) preemptors: Vec<(PreemptorKey, u64)>,
    pub(crate) interrupts: Vec<(InterruptKey, Tally)>,
    pub(crate) hard_names: HashMap<u32, String>,
}

/// How often a reading that does not add up is left to the next one.
const PATIENCE: u32 = 3;
/// How much a reading may lack, in nanoseconds, beside a hundredth.
const TOLERANCE: u64 = 50_000;

/// All threads, as far as they are accounted for.
#[derive(Debug, Default)]
pub struct Running {
    /// When the window began.
    start: u64,
    threads: HashMap<u32, Known>,
}

#[derive(Debug)]
struct Known {
    before: Snapshot,
    /// Until when its time is accounted for.
    until: u64,
    /// How often it did not add up, one time after the other.
    failed: u32,
}

impl Running {
    /// From this time on, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn new(start: u64) -> Self {
        Self { start, threads: HashMap::new() }
    }

    /// Goes on with the threads that were read. One that does not add up, since a program is in the middle of its work on it, is
    /// left out, and has all its time next time.
    pub(crate) fn advance(&mut self, readings: Vec<ThreadReading>, causes: Causes) -> Vec<Advance> {
        let Causes { preemptors, interrupts, hard_names } = causes;
        let causes = WindowSnapshot { preemptors, interrupts, hard_names, ..WindowSnapshot::default() };
        let causes = ByThread::of(&causes);
        let there: HashSet<u32> = readings.iter().map(|reading| reading.tid).collect();
        let all = readings.into_iter().filter_map(|reading| self.thread(reading, &causes)).collect();
        self.threads.retain(|tid, _| there.contains(tid));
        all
    }

    /// Whether a thread's reading adds up, so that it need not be read once more.
    pub(crate) fn adds_up(&self, reading: &ThreadReading) -> bool {
        self.budget(reading).is_some_and(|found| found.adds_up())
    }

    /// Returns what is known of a thread from before; none if another one had its number.
    fn known(&self, tid: u32, after: &Snapshot) -> Option<&Known> {
        self.threads.get(&tid).filter(|known| known.before.start_time() == after.start_time())
    }

    fn budget(&self, reading: &ThreadReading) -> Option<Found> {
        let after = &reading.after;
        let nothing = Snapshot::default();
        let (before, from) = match self.known(reading.tid, after) {
            Some(known) => (&known.before, known.until),
            None => (&nothing, self.start.max(after.start_time())),
        };
        let until = if after.is_dead() { after.thread.end_time } else { reading.at.max(after.mark()) };
        let mut raw = Raw::of(before, after);
        raw.close(after, &Window { start: self.start, stop: until, ..Window::default() });
        raw.take_back(before, &Window { start: self.start, stop: from, ..Window::default() })?;
        raw.settle(after, &reading.fallback, &Window { start: from, stop: until, ..Window::default() });
        let nobodys = after.thread.nobody.wrapping_sub(before.thread.nobody);
        let passed = until.saturating_sub(from).saturating_sub(nobodys);
        Some(Found { budget: raw.into_budget(passed), until })
    }

    fn thread(&mut self, reading: ThreadReading, causes: &ByThread<'_>) -> Option<Advance> {
        let found = self.budget(&reading).filter(Found::adds_up);
        let ThreadReading { tid, after, at, name, .. } = reading;
        let (has_ended, pid) = (after.is_dead(), after.process());
        let comm = Some(after.comm()).filter(|comm| !comm.is_empty());
        let name = name.or(comm).unwrap_or_else(|| "?".to_owned());
        let start = self.start.max(after.start_time());
        let before = self.known(tid, &after);
        let before = before.map(|known| (known.before.thread.absences, known.before.thread.absent)).unwrap_or_default();
        let absences = (after.thread.absences.wrapping_sub(before.0), after.thread.absent.wrapping_sub(before.1));
        let Some(Found { budget, until }) = found else {
            let known =
                self.threads.entry(tid).or_insert(Known { before: Snapshot::default(), until: start, failed: 0 });
            known.failed += 1;
            if known.failed <= PATIENCE {
                return None;
            }
            let nanos = at.saturating_sub(known.until);
            *known = Known { before: after, until: known.until + nanos, failed: 0 };
            let parts = vec![Part { place: Place::Unknown, by: String::new(), nanos }];
            return Some(Advance { tid, pid, name, nanos, parts, absences, has_ended });
        };
        // What an event at the very edge gives too much is taken from the time after it.
        let over = budget.sum().saturating_sub(budget.window);
        let nanos = budget.window + over;
        let parts = parts(tid, pid, &budget, causes);
        self.threads.insert(tid, Known { before: after, until: until + over, failed: 0 });
        Some(Advance { tid, pid, name, nanos, parts, absences, has_ended })
    }
}

/// A budget since the last reading, and until when.
struct Found {
    budget: Budget,
    until: u64,
}

impl Found {
    fn adds_up(&self) -> bool {
        let window = self.budget.window;
        self.budget.sum().abs_diff(window) <= window / 100 + TOLERANCE
    }
}

/// A budget's parts, with what lacks of its window.
fn parts(tid: u32, pid: u32, budget: &Budget, causes: &ByThread<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |place, by: String, nanos| {
        if nanos > 0 {
            parts.push(Part { place, by, nanos });
        }
    };
    add(Place::User, String::new(), budget.user + budget.traced);
    for call in &budget.calls {
        let name = call_name(call.slot);
        add(Place::Syscall, name.clone(), call.cpu);
        add(Place::Blocked, name, call.blocked);
    }
    for (slot, cpu, blocked) in [
        (SLOT_FAULT, budget.fault_cpu, budget.fault_blocked),
        (SLOT_RECLAIM, budget.reclaim_cpu, budget.reclaim_blocked),
    ] {
        add(Place::Syscall, call_name(slot), cpu);
        add(Place::Blocked, call_name(slot), blocked);
    }
    add(Place::Elsewhere, String::new(), budget.blocked_elsewhere);
    add(Place::Stopped, FROZEN.to_owned(), budget.frozen);
    add(Place::Stopped, String::new(), budget.stopped);
    add(Place::Unknown, String::new(), budget.window.saturating_sub(budget.sum()));
    let ran = preemptors(tid, pid, causes).into_iter().map(|it| (who(&it.name, it.relation), it.nanos));
    let [hard, vectors, soft] = interrupts_of(tid, causes);
    let named = |all: Vec<Interrupt>| all.into_iter().map(|it| (it.name, it.stat.total));
    split(budget.ready, ran, |by, nanos| add(Place::Ready, by, nanos));
    split(budget.hard, named(hard).chain(named(vectors)), |by, nanos| add(Place::Hard, by, nanos));
    split(budget.soft, named(soft), |by, nanos| add(Place::Soft, by, nanos));
    parts
}

/// Gives a time to those who took it, as far as it goes; the rest is nobody's.
fn split(nanos: u64, takers: impl Iterator<Item = (String, u64)>, mut give: impl FnMut(String, u64)) {
    let mut left = nanos;
    for (by, took) in takers {
        let took = took.min(left);
        left -= took;
        give(by, took);
    }
    give(String::new(), left);
}

/// Who ran instead, without what makes each CPU's thread of the kernel another one: `kworker/3:1-events` is `kworker`.
fn who(name: &str, relation: Relation) -> String {
    match relation {
        Relation::Kernel => name.split(['/', ':']).next().unwrap_or(name).to_owned(),
        Relation::Own => format!("{name} (own)"),
        Relation::Idle | Relation::Child | Relation::Other => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{SLOT_NONE, ThreadValue, entry_of, first, state};
    use crate::programs::found_thread;

    const CPU: u32 = std::mem::offset_of!(crate::layout::CallEntry, cpu) as u32;
    const BLOCKED: u32 = std::mem::offset_of!(crate::layout::CallEntry, blocked) as u32;

    fn reading(at: u64, value: &ThreadValue) -> ThreadReading {
        let fallback = ProcFallback { state: 'R', ran: 1_000_000_000, ..ProcFallback::default() };
        ThreadReading { tid: 7, after: Snapshot::of(value), at, fallback, name: Some("reactor_0".into()) }
    }

    #[track_caller]
    fn next(running: &mut Running, at: u64, value: &ThreadValue, causes: Causes) -> Vec<(Place, String, u64)> {
        let mut advances = running.advance(vec![reading(at, value)], causes);
        assert_eq!(advances.len(), 1);
        let advance = advances.remove(0);
        assert_eq!(advance.parts.iter().map(|part| part.nanos).sum::<u64>(), advance.nanos, "{advance:?}");
        advance.parts.into_iter().map(|part| (part.place, part.by, part.nanos)).collect()
    }

    /// An event between two readings, and one after the time of the reading: each nanosecond is given once.
    #[test]
    fn readings_go_on_where_the_last_one_ended() {
        let (user, none) = (|nanos| (Place::User, String::new(), nanos), Causes::default);
        let mut running = Running::new(1_000);
        let mut value = found_thread(7, b"");
        // No event yet: what /proc says.
        assert_eq!(next(&mut running, 101_000, &value, none()), [user(100_000)]);
        // It was on the CPU until it blocked at 150,000.
        let thread = &mut value.thread;
        (thread.first, thread.resolved, thread.state) = (first::RUNNING, entry_of(SLOT_NONE), state::BLOCKED);
        (thread.unsure, thread.mark, thread.bucket) = (149_000, 150_000, entry_of(202) + BLOCKED);
        let blocked = |nanos| (Place::Blocked, "futex".to_owned(), nanos);
        assert_eq!(next(&mut running, 201_000, &value, none()), [user(49_000), blocked(51_000)]);
        // It is woken at 300,500: after the reading began, which is of 300,000.
        value.calls[202].blocked = 150_500;
        (value.thread.mark, value.thread.bucket) = (300_500, entry_of(SLOT_NONE) + CPU);
        assert_eq!(next(&mut running, 300_000, &value, none()), [blocked(99_500)]);
        assert_eq!(next(&mut running, 400_500, &value, none()), [user(100_000)]);
        // It ends.
        value.calls[SLOT_NONE as usize].cpu = 110_000;
        (value.thread.mark, value.thread.end_time, value.thread.state) = (410_500, 410_500, state::DEAD);
        assert_eq!(next(&mut running, 500_000, &value, none()), [user(10_000)]);
    }

    #[test]
    fn waits_have_names_as_far_as_they_are_known() {
        let mut running = Running::new(1_000);
        let mut value = found_thread(7, b"");
        let thread = &mut value.thread;
        (thread.first, thread.resolved, thread.state, thread.tgid) =
            (first::RUNNING, entry_of(SLOT_NONE), state::READY, 5);
        (thread.mark, thread.bucket) = (1_000, std::mem::offset_of!(crate::layout::Thread, ready) as u32);
        let key = |tgid, parent, text: &[u8]| {
            let mut comm = [0; 16];
            comm[..text.len()].copy_from_slice(text);
            PreemptorKey { waiter: 7, tgid, parent, comm, function: 0 }
        };
        let preemptors = vec![(key(9, 2, b"kworker/0:1"), 30_000), (key(8, 1, b"yes"), 60_000)];
        let causes = Causes { preemptors, ..Causes::default() };
        let ready = |by: &str, nanos| (Place::Ready, by.to_owned(), nanos);
        let parts = next(&mut running, 101_000, &value, causes);
        assert_eq!(parts, [ready("yes", 60_000), ready("kworker", 30_000), ready("", 10_000)]);
    }

    /// A value in the middle of a change is left to the next reading; one that never adds up is not left for ever.
    #[test]
    fn what_does_not_add_up_waits() {
        let mut running = Running::new(0);
        let mut value = found_thread(7, b"");
        (value.thread.first, value.thread.state) = (first::RUNNING, state::RUNNING);
        (value.thread.mark, value.thread.bucket, value.thread.resolved) = (900_000, 0, entry_of(SLOT_NONE));
        let at = |at| reading(at, &value);
        assert!(!running.adds_up(&at(1_000_000)));
        for round in 1..=u64::from(PATIENCE) {
            assert!(running.advance(vec![at(round * 1_000_000)], Causes::default()).is_empty());
        }
        let advance = running.advance(vec![at(9_000_000)], Causes::default());
        assert_eq!((advance[0].nanos, advance[0].parts[0].place), (9_000_000, Place::Unknown));
        assert!(running.advance(Vec::new(), Causes::default()).is_empty() && running.threads.is_empty());
    }
}
