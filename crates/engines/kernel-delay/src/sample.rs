//! A window's threads, from two snapshots of the maps.

use std::collections::HashMap;

use crate::layout::{
    Histogram, InterruptKey, NUMBERED_SLOTS, PreemptorKey, SLOT_COMPAT, SLOT_FAULT, SLOT_OTHER, SLOT_RECLAIM,
    SOFT_INTERRUPT, TIME_MASK, Tally, TallyWithMin, VECTOR_INTERRUPT, WINDOW_SHIFT, state,
};

use crate::budget::Budget;
use crate::by_thread::ByThread;
use crate::names::{soft_name, vector_name};
use crate::percentile::percentile;
use crate::preemptors::{Preemptor, preemptors};
use crate::snapshot::Snapshot;
use crate::upcalls::Upcalls;

/// When time counted, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// From when on.
    pub start: u64,
    /// Until when.
    pub stop: u64,
    /// Its number, from 1.
    pub number: u16,
    /// Bound on the error of a budget in nanoseconds: the time until all programs see the start and the stop by triggers; 0 for
    /// windows by the clock.
    pub edge: u64,
}

impl Window {
    /// How long it was.
    pub fn length(&self) -> u64 {
        self.stop.saturating_sub(self.start)
    }
}

/// What `/proc` says of a thread, for what no event showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcFallback {
    /// The state's letter (proc_pid_stat(5), field 3).
    pub state: char,
    /// The call that it was blocked in (proc_pid_syscall(5)), as a slot.
    pub call: Option<u32>,
    /// Whether it was frozen with its control group.
    pub is_frozen: bool,
    /// How much longer it had run in user code at the window's end than at its begin, in ticks.
    pub user: u64,
    /// The same for system calls.
    pub system: u64,
    /// How much longer it had been on a CPU, in nanoseconds.
    pub ran: u64,
}

/// A thread's value before and after a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadPair {
    /// Its number.
    pub tid: u32,
    /// Before the window; nothing where it was not there.
    pub before: Snapshot,
    /// After it.
    pub after: Snapshot,
    /// What `/proc` says of it.
    pub fallback: ProcFallback,
    /// Its name where no event showed it.
    pub name: Option<String>,
    /// The kernel's functions that it is blocked in, the innermost first, if it was for the whole window and that is worth a look.
    pub stuck_in: Vec<String>,
}

/// What the maps had.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowSnapshot {
    /// The window.
    pub window: Window,
    /// The threads.
    pub threads: Vec<ThreadPair>,
    /// Who ran while a thread waited, and for how many nanoseconds.
    pub preemptors: Vec<(PreemptorKey, u64)>,
    /// The interrupts.
    pub interrupts: Vec<(InterruptKey, Tally)>,
    /// What hard interrupts are called.
    pub hard_names: HashMap<u32, String>,
    /// What functions of the kernel's workers are called, by their address.
    pub functions: HashMap<u64, String>,
    /// Open vSwitch's upcalls, where they are counted.
    pub upcalls: Option<Upcalls>,
}

impl WindowSnapshot {
    /// Whether a thread that the window's end does not settle was read in the middle of a change.
    pub(crate) fn is_changing(&self) -> bool {
        self.threads.iter().any(|thread| thread.after.is_changing() && thread.after.mark() < self.window.stop)
    }
}

/// Counted times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The shortest, where that is kept.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

/// A system call's completed calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallStat {
    /// Its number, or a slot that stands for others.
    pub slot: u32,
    /// The calls that began and ended in the window.
    pub stat: Stat,
    /// How many of them returned an error.
    pub errors: u64,
    /// How long they took: see [`CallHistogram`](crate::layout::CallHistogram). All zeros where the thread made too many different calls.
    pub histogram: Vec<u32>,
}

impl CallStat {
    /// The time in nanoseconds that this share of the calls, in percent, did not exceed, right within a factor of 1.4 (half a
    /// power of two) up to 1.5 s.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        percentile(&self.histogram, percent, self.stat.max)
    }

    /// The mean in nanoseconds.
    pub fn mean(&self) -> u64 {
        self.stat.total.checked_div(self.stat.count).unwrap_or(0)
    }
}

/// An interrupt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// What it is called.
    pub name: String,
    /// Its times.
    pub stat: Stat,
}

/// A thread in a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadSample {
    /// Its number.
    pub tid: u32,
    /// Its process's number.
    pub pid: u32,
    /// Its name, as it was last seen.
    pub name: String,
    /// Where its time went.
    pub budget: Budget,
    /// Whether it was started in the window.
    pub started_in_window: bool,
    /// Whether it ended in the window.
    pub ended_in_window: bool,
    /// Page faults of its own code that began and ended in the window.
    pub faults: Stat,
    /// Reclaims of memory, likewise.
    pub reclaims: Stat,
    /// The kernel's functions that it was blocked in for the whole window, the innermost first; empty if it was not, or in a call that only
    /// waits.
    pub stuck_in: Vec<String>,
    /// Completed calls, the one with the greatest sum first.
    pub calls: Vec<CallStat>,
    /// Times between two `poll` calls.
    pub polls: Stat,
    /// Runs.
    pub runs: Stat,
    /// Waits for a CPU.
    pub waits: Stat,
    /// Stops.
    pub stops: Stat,
    /// How many events of it were sent.
    pub events: u64,
    /// Part of its waiting for a CPU in which at most it could not run because a CPU limit of its process was used up, in nanoseconds.
    pub throttled_at_most: u64,
    /// The longest wait for a CPU, also of those that the window cuts.
    pub longest_wait: u64,
    /// Devices' hard interrupts, the greatest sum first.
    pub hard: Vec<Interrupt>,
    /// The processor's own interrupts, likewise.
    pub vectors: Vec<Interrupt>,
    /// Soft interrupts, likewise.
    pub soft: Vec<Interrupt>,
    /// Who ran instead, the longest first.
    pub preemptors: Vec<Preemptor>,
    /// Waits for a CPU by the logarithm to base 2 of their nanoseconds.
    pub wait_histogram: Vec<u32>,
    /// Times blocked, likewise.
    pub blocked_histogram: Vec<u32>,
}

/// A window's threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The window.
    pub window: Window,
    /// By name, then by number.
    pub threads: Vec<ThreadSample>,
    /// Open vSwitch's upcalls, where they are counted.
    pub upcalls: Option<Upcalls>,
}

impl Sample {
    /// Compares the two snapshots. Threads that were gone before the window began are left out.
    pub fn of(snapshot: &WindowSnapshot) -> Self {
        let window = snapshot.window;
        let lived = |pair: &&ThreadPair| {
            let thread = &pair.after.thread;
            (thread.end_time == 0 || thread.end_time > window.start) && thread.start_time < window.stop
        };
        let lived = snapshot.threads.iter().filter(lived);
        let causes = ByThread::of(snapshot);
        let mut threads: Vec<ThreadSample> = lived.map(|pair| ThreadSample::of(pair, &causes)).collect();
        threads.sort_by(|a, b| (&a.name, a.tid).cmp(&(&b.name, b.tid)));
        Self { window, threads, upcalls: snapshot.upcalls.clone() }
    }

    /// Returns whether no budget lacks more than a thousandth of its window and the bound of its edges.
    pub fn adds_up(&self) -> bool {
        let lacks = |budget: &Budget| budget.window.saturating_sub(budget.sum());
        self.threads.iter().all(|thread| lacks(&thread.budget) <= thread.budget.window / 1000 + self.window.edge)
    }
}

impl ThreadSample {
    /// Returns for how much of its waiting it is not known who ran instead, in nanoseconds.
    pub fn wait_without_names(&self) -> u64 {
        let known = self.preemptors.iter().map(|task| task.nanos).fold(0, u64::saturating_add);
        self.budget.ready.saturating_sub(known)
    }

    fn of(pair: &ThreadPair, causes: &ByThread<'_>) -> Self {
        let ThreadPair { tid, before, after, fallback, name, stuck_in } = pair;
        let window = &causes.snapshot.window;
        let (was, is) = (&before.thread, &after.thread);
        let comm = Some(after.comm()).filter(|comm| !comm.is_empty());
        let tally = |before: &TallyWithMin, after: &TallyWithMin| grown(before.tally, after.tally, window.number);
        let with_min = |before: &TallyWithMin, after: &TallyWithMin| {
            let shortest = tagged(after.min, window.number);
            Stat { min: if shortest == 0 { 0 } else { TIME_MASK - shortest }, ..tally(before, after) }
        };
        Self {
            tid: *tid,
            pid: is.tgid,
            name: name.clone().or(comm).unwrap_or_else(|| "?".to_owned()),
            budget: Budget::of(before, after, fallback, window),
            started_in_window: is.start_time > window.start,
            ended_in_window: is.end_time > window.start && is.end_time <= window.stop,
            faults: grown(before.call(SLOT_FAULT).tally, after.call(SLOT_FAULT).tally, window.number),
            reclaims: grown(before.call(SLOT_RECLAIM).tally, after.call(SLOT_RECLAIM).tally, window.number),
            stuck_in: stuck_in.clone(),
            calls: calls(before, after, window.number),
            polls: with_min(&was.polls, &is.polls),
            runs: with_min(&was.runs, &is.runs),
            waits: tally(&was.waited, &is.waited),
            stops: tally(&was.stops, &is.stops),
            events: is.events.wrapping_sub(was.events),
            throttled_at_most: 0,
            longest_wait: tagged(is.longest, window.number).max(still_waits(after, fallback, window)),
            hard: interrupts(*tid, causes, 0),
            vectors: interrupts(*tid, causes, VECTOR_INTERRUPT),
            soft: interrupts(*tid, causes, SOFT_INTERRUPT),
            preemptors: preemptors(*tid, is.tgid, causes),
            wait_histogram: histogram(&was.ready_histogram, &is.ready_histogram),
            blocked_histogram: histogram(&was.blocked_histogram, &is.blocked_histogram),
        }
    }
}

/// What was counted between two snapshots. Longest times can't be subtracted: they carry their window's number.
fn grown(before: Tally, after: Tally, number: u16) -> Stat {
    Stat {
        count: after.count.wrapping_sub(before.count),
        total: after.total.wrapping_sub(before.total),
        min: 0,
        max: tagged(after.max, number),
    }
}

fn calls(before: &Snapshot, after: &Snapshot, number: u16) -> Vec<CallStat> {
    let of = |slot| {
        let (was, is) = (before.call(slot), after.call(slot));
        let histogram = after.histogram(slot).into_iter().zip(before.histogram(slot));
        CallStat {
            slot,
            stat: grown(was.tally, is.tally, number),
            errors: is.errors.wrapping_sub(was.errors).into(),
            histogram: histogram.map(|(is, was)| is.wrapping_sub(was)).collect(),
        }
    };
    let slots = (0..NUMBERED_SLOTS).chain([SLOT_COMPAT, SLOT_OTHER]);
    let made = slots.filter(|&slot| before.call(slot).tally.count != after.call(slot).tally.count);
    let mut calls: Vec<CallStat> = made.map(of).collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.stat.total), call.slot));
    calls
}

fn histogram(before: &Histogram, after: &Histogram) -> Vec<u32> {
    after.iter().zip(before).map(|(after, before)| after.wrapping_sub(*before)).collect()
}

/// How long a thread that waits for a CPU at the window's end has done so in it.
fn still_waits(after: &Snapshot, fallback: &ProcFallback, window: &Window) -> u64 {
    let waits = match after.thread.state {
        state::READY => true,
        // No event in the whole window: it ran all the time, or never.
        state::UNSURE => fallback.state == 'R' && fallback.ran < window.length() / 2,
        _ => false,
    };
    if waits { window.stop.saturating_sub(window.start.max(after.thread.since)) } else { 0 }
}

/// A time that carries its window's number; 0 if it is another window's.
fn tagged(tagged: u64, number: u16) -> u64 {
    if tagged >> WINDOW_SHIFT == u64::from(number) { tagged & TIME_MASK } else { 0 }
}

/// The interrupts of a thread: devices', the processor's own, and soft ones.
pub(crate) fn interrupts_of(tid: u32, causes: &ByThread<'_>) -> [Vec<Interrupt>; 3] {
    [0, VECTOR_INTERRUPT, SOFT_INTERRUPT].map(|mark| interrupts(tid, causes, mark))
}

/// The interrupts of a thread whose numbers are marked with `mark`.
fn interrupts(tid: u32, causes: &ByThread<'_>, mark: u32) -> Vec<Interrupt> {
    const MARKS: u32 = SOFT_INTERRUPT | VECTOR_INTERRUPT;
    let snapshot = causes.snapshot;
    let of = |(key, tally): &(InterruptKey, Tally)| {
        let number = key.number & !MARKS;
        // The map is emptied before each window: there is nothing to subtract.
        let stat = grown(Tally::default(), *tally, snapshot.window.number);
        let name = || match mark {
            SOFT_INTERRUPT => soft_name(number),
            VECTOR_INTERRUPT => vector_name(number),
            _ => hard_name(number, snapshot),
        };
        let wanted = key.number & MARKS == mark && stat.count > 0;
        wanted.then(|| Interrupt { number, name: name(), stat })
    };
    let mut all: Vec<Interrupt> = causes.interrupts(tid).iter().copied().filter_map(of).collect();
    all.sort_by_key(|interrupt| (std::cmp::Reverse(interrupt.stat.total), interrupt.number));
    all
}

fn hard_name(number: u32, snapshot: &WindowSnapshot) -> String {
    snapshot.hard_names.get(&number).cloned().unwrap_or_else(|| format!("irq:{number}"))
}
