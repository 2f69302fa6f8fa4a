//! Threads of a window, from two snapshots of the maps.

use std::collections::HashMap;

use ordering::Order as _;

use crate::layout::{
    InterruptKey, NUMBERED_SLOTS, PreemptorKey, SLOT_COMPAT, SLOT_FAULT, SLOT_OTHER, SLOT_RECLAIM,
    SOFT_INTERRUPT, TIME_MASK, Tally, TallyWithMin, VECTOR_INTERRUPT, WINDOW_SHIFT, state,
};

use crate::budget::Budget;
use crate::by_thread::ByThread;
use crate::interrupt_times::interrupts;
pub(crate) use crate::interrupt_times::interrupts_of;
use crate::names::has_errors;
use crate::percentile::percentile;
use crate::preemptors::{Preemptor, preemptors};
use crate::snapshot::Snapshot;
use crate::upcalls::Upcalls;

/// Bounds of a window, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Start of the window.
    pub start: u64,
    /// End of the window.
    pub stop: u64,
    /// Number of the window, from 1.
    pub number: u16,
    /// Bound on the error of a budget in nanoseconds: the time until all programs see the start and
    /// the stop by triggers; 0 for windows by the clock.
    pub edge: u64,
}

impl Window {
    /// Returns the length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.stop.saturating_sub(self.start)
    }
}

/// Data from `/proc` about a thread, for states that no event showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcFallback {
    /// Letter of the state (proc_pid_stat(5), field 3).
    pub state: char,
    /// Call that it was blocked in (proc_pid_syscall(5)), as a slot.
    pub call: Option<u32>,
    /// True if it was frozen with its control group.
    pub is_frozen: bool,
    /// Increase of its time in user code from the window's start to its end, in ticks.
    pub user: u64,
    /// Increase of its time in the kernel, in ticks.
    pub system: u64,
    /// Increase of its time on a CPU, in nanoseconds.
    pub ran: u64,
}

/// Values of a thread before and after a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadPair {
    /// Number of the thread.
    pub tid: u32,
    /// Value before the window; zeros if the thread did not exist.
    pub before: Snapshot,
    /// Value after the window.
    pub after: Snapshot,
    /// Data from `/proc`.
    pub fallback: ProcFallback,
    /// Name from `/proc`, if the thread still exists.
    pub name: Option<String>,
    /// Title of its process, if it is the first thread of one that has a title ([`host::proc`]).
    pub title: Option<String>,
    /// Kernel functions that it was blocked in, innermost first, if it may be stuck: it was silent
    /// for the second half of the window, and its call does not explain the wait.
    pub stuck_in: Vec<String>,
}

/// Contents of the maps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowSnapshot {
    /// Window of the snapshot.
    pub window: Window,
    /// Values of the threads.
    pub threads: Vec<ThreadPair>,
    /// Tasks that ran while a thread waited, with their nanoseconds.
    pub preemptors: Vec<(PreemptorKey, u64)>,
    /// Interrupts by thread.
    pub interrupts: Vec<(InterruptKey, Tally)>,
    /// Names of hard interrupts.
    pub hard_names: HashMap<u32, String>,
    /// Names of the functions of the kernel's workers, by address.
    pub functions: HashMap<u64, String>,
    /// Upcalls of Open vSwitch, if they are counted.
    pub upcalls: Option<Upcalls>,
    /// Process that measures, which takes CPU time itself; `None` if unknown.
    pub dptrace: Option<u32>,
}

impl WindowSnapshot {
    /// Returns whether a thread was read in the middle of a change that comes before the window's
    /// end.
    pub(crate) fn is_changing(&self) -> bool {
        self.threads
            .iter()
            .any(|thread| thread.after.is_changing() && thread.after.mark() < self.window.stop)
    }
}

/// Counted times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// Number of times.
    pub count: u64,
    /// Sum of the times.
    pub total: u64,
    /// Shortest time, if it is kept; otherwise 0.
    pub min: u64,
    /// Longest time.
    pub max: u64,
}

/// Completed calls of one system call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallStat {
    /// Number of the call, or a slot that stands for others.
    pub slot: u32,
    /// Calls that began and ended in the window.
    pub stat: Stat,
    /// Number of these calls that returned an error.
    pub errors: u64,
    /// Histogram of the durations: see [`CallHistogram`](crate::layout::CallHistogram). All zeros
    /// if the thread made too many different calls.
    pub histogram: Vec<u32>,
}

impl CallStat {
    /// Returns the time in nanoseconds that `percent` of the calls did not exceed, right within a
    /// factor of 1.4 (half a power of two) up to 1.5 s.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        percentile(&self.histogram, percent, self.stat.max)
    }

    /// Returns the mean in nanoseconds.
    pub fn mean(&self) -> u64 {
        self.stat.total.checked_div(self.stat.count).unwrap_or(0)
    }
}

/// Interrupt with its times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Number of the interrupt.
    pub number: u32,
    /// Name of the interrupt.
    pub name: String,
    /// Times of the interrupt.
    pub stat: Stat,
}

/// Thread in a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadSample {
    /// Number of the thread.
    pub tid: u32,
    /// Number of its process.
    pub pid: u32,
    /// Last known name of the thread.
    pub name: String,
    /// Title of its process, if it is the first thread of one that has a title.
    pub title: Option<String>,
    /// Division of its time.
    pub budget: Budget,
    /// True if it was started in the window.
    pub started_in_window: bool,
    /// True if it ended in the window.
    pub ended_in_window: bool,
    /// Page faults of its own code that began and ended in the window.
    pub faults: Stat,
    /// Reclaims of memory, likewise.
    pub reclaims: Stat,
    /// Kernel functions that it was blocked in, innermost first, if it may be stuck; otherwise
    /// empty (see [`ThreadPair::stuck_in`]).
    pub stuck_in: Vec<String>,
    /// Completed calls, greatest sum first.
    pub calls: Vec<CallStat>,
    /// Times between two `poll` calls.
    pub polls: Stat,
    /// Runs on a CPU.
    pub runs: Stat,
    /// Waits for a CPU.
    pub waits: Stat,
    /// Stops.
    pub stops: Stat,
    /// Number of its events sent.
    pub events: u64,
    /// Upper bound on the part of its wait for a CPU that was due to a used-up CPU limit of its
    /// process, in nanoseconds.
    pub throttled_at_most: u64,
    /// Longest wait for a CPU, including waits that the window cuts.
    pub longest_wait: u64,
    /// Hard interrupts of devices, greatest sum first.
    pub hard: Vec<Interrupt>,
    /// Processor's own interrupts, likewise.
    pub vectors: Vec<Interrupt>,
    /// Soft interrupts, likewise.
    pub soft: Vec<Interrupt>,
    /// Tasks that ran instead, longest first.
    pub preemptors: Vec<Preemptor>,
    /// Waits for a CPU by the logarithm to base 2 of their nanoseconds.
    pub wait_histogram: Vec<u32>,
    /// Times blocked, likewise.
    pub blocked_histogram: Vec<u32>,
}

/// Threads of a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Window of the sample.
    pub window: Window,
    /// Threads by name, then by number.
    pub threads: Vec<ThreadSample>,
    /// Upcalls of Open vSwitch, if they are counted.
    pub upcalls: Option<Upcalls>,
}

impl Sample {
    /// Compares the two snapshots, without threads that ended before the window began.
    pub fn from_snapshot(snapshot: &WindowSnapshot) -> Self {
        let window = snapshot.window;
        let lived = |pair: &&ThreadPair| {
            let thread = &pair.after.thread;
            (thread.end_time == 0 || thread.end_time > window.start)
                && thread.start_time < window.stop
        };
        let lived = snapshot.threads.iter().filter(lived);
        let causes = ByThread::from_snapshot(snapshot);
        let mut threads: Vec<ThreadSample> = lived
            .map(|pair| ThreadSample::from_pair(pair, &causes))
            .collect();
        threads.order_by(|a, b| (&a.name, a.tid).cmp(&(&b.name, b.tid)));
        Self {
            window,
            threads,
            upcalls: snapshot.upcalls.clone(),
        }
    }

    /// Returns whether no budget lacks more than a thousandth of its window plus the bound of its
    /// edges.
    pub fn adds_up(&self) -> bool {
        let lacks = |budget: &Budget| budget.window.saturating_sub(budget.sum());
        self.threads
            .iter()
            .all(|thread| lacks(&thread.budget) <= thread.budget.window / 1000 + self.window.edge)
    }
}

impl ThreadSample {
    /// Returns the nanoseconds of its wait for which the running task is unknown.
    pub fn wait_without_names(&self) -> u64 {
        let known = self
            .preemptors
            .iter()
            .map(|task| task.nanos)
            .fold(0, u64::saturating_add);
        self.budget.ready.saturating_sub(known)
    }

    fn from_pair(pair: &ThreadPair, causes: &ByThread<'_>) -> Self {
        let ThreadPair {
            tid,
            before,
            after,
            fallback,
            name,
            title,
            stuck_in,
        } = pair;
        let window = &causes.snapshot.window;
        let (was, is) = (&before.thread, &after.thread);
        let comm = Some(after.comm()).filter(|comm| !comm.is_empty());
        let in_slot = |slot| {
            grown(
                before.call(slot).tally,
                after.call(slot).tally,
                window.number,
            )
        };
        let tally = |before: &TallyWithMin, after: &TallyWithMin| {
            grown(before.tally, after.tally, window.number)
        };
        let with_min = |before: &TallyWithMin, after: &TallyWithMin| {
            let shortest = tagged(after.min, window.number);
            Stat {
                min: if shortest == 0 {
                    0
                } else {
                    TIME_MASK - shortest
                },
                ..tally(before, after)
            }
        };
        Self {
            tid: *tid,
            pid: is.tgid,
            name: name.clone().or(comm).unwrap_or_else(|| "?".to_owned()),
            title: title.clone(),
            budget: Budget::between(before, after, fallback, window),
            started_in_window: is.start_time > window.start,
            ended_in_window: is.end_time > window.start && is.end_time <= window.stop,
            faults: in_slot(SLOT_FAULT),
            reclaims: in_slot(SLOT_RECLAIM),
            stuck_in: stuck_in.clone(),
            calls: calls(before, after, window.number),
            polls: with_min(&was.polls, &is.polls),
            runs: with_min(&was.runs, &is.runs),
            waits: tally(&was.waited, &is.waited),
            stops: tally(&was.stops, &is.stops),
            events: is.events.wrapping_sub(was.events),
            throttled_at_most: 0,
            longest_wait: tagged(is.longest, window.number)
                .max(still_waits(after, fallback, window)),
            hard: interrupts(*tid, causes, 0),
            vectors: interrupts(*tid, causes, VECTOR_INTERRUPT),
            soft: interrupts(*tid, causes, SOFT_INTERRUPT),
            preemptors: preemptors(*tid, is.tgid, causes),
            wait_histogram: histogram(&was.ready_histogram, &is.ready_histogram),
            blocked_histogram: histogram(&was.blocked_histogram, &is.blocked_histogram),
        }
    }
}

/// Returns the difference of two tallies. Longest times can't be subtracted: they carry their
/// window's number.
pub(crate) fn grown(before: Tally, after: Tally, number: u16) -> Stat {
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
        CallStat {
            slot,
            stat: grown(was.tally, is.tally, number),
            errors: u64::from(is.errors.wrapping_sub(was.errors)) * u64::from(has_errors(slot)),
            histogram: histogram(&before.histogram(slot), &after.histogram(slot)),
        }
    };
    let slots = (0..NUMBERED_SLOTS).chain([SLOT_COMPAT, SLOT_OTHER]);
    let made = slots.filter(|&slot| before.call(slot).tally.count != after.call(slot).tally.count);
    let mut calls: Vec<CallStat> = made.map(of).collect();
    calls.order_by_key(|call| (std::cmp::Reverse(call.stat.total), call.slot));
    calls
}

fn histogram(before: &[u32], after: &[u32]) -> Vec<u32> {
    after
        .iter()
        .zip(before)
        .map(|(after, before)| after.wrapping_sub(*before))
        .collect()
}

/// Returns the nanoseconds in the window that a thread still waiting for a CPU at its end has
/// waited; 0 if it does not wait.
fn still_waits(after: &Snapshot, fallback: &ProcFallback, window: &Window) -> u64 {
    let waits = match after.thread.state {
        state::READY => true,
        // No event in the whole window: it ran all the time, or never.
        state::UNSURE => fallback.state == 'R' && fallback.ran < window.length() / 2,
        _ => false,
    };
    if waits {
        window
            .stop
            .saturating_sub(window.start.max(after.thread.since))
    } else {
        0
    }
}

/// Returns a time tagged with its window's number; 0 if it belongs to another window.
fn tagged(tagged: u64, number: u16) -> u64 {
    if tagged >> WINDOW_SHIFT == u64::from(number) {
        tagged & TIME_MASK
    } else {
        0
    }
}
