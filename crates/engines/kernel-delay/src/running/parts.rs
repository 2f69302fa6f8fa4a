//! Parts of a thread's time, by state and cause.

use crate::budget::Budget;
use crate::by_thread::ByThread;
use crate::layout::{SLOT_FAULT, SLOT_RECLAIM};
use crate::names::call_name;
use crate::preemptors::{Relation, preemptors};
use crate::sample::{Interrupt, interrupts_of};

/// State that time was spent in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimeState {
    /// Running the thread's own code.
    User,
    /// On the CPU in a system call, in reclaim of memory, or in a page fault.
    Syscall,
    /// Blocked in one of these, waiting for something other than a CPU.
    Blocked,
    /// Blocked outside any call, waiting for something other than a CPU.
    Elsewhere,
    /// Waiting for a CPU.
    Ready,
    /// In hard interrupts.
    Hard,
    /// In soft interrupts.
    Soft,
    /// Stopped by a signal or a debugger, or frozen with its control group.
    Stopped,
    /// Not known.
    Unknown,
}

impl TimeState {
    /// Returns the word for labels.
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

/// Name for the cause that stops a frozen thread.
const FROZEN: &str = "frozen cgroup";

/// Part of a thread's time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// State that the time was spent in.
    pub place: TimeState,
    /// Cause: the system call, the task that ran instead, the interrupt. Empty if no cause is
    /// known.
    pub by: String,
    /// Length in nanoseconds.
    pub nanos: u64,
}

/// Splits a budget into parts, with the part that its window lacks as unknown.
pub(super) fn parts(tid: u32, pid: u32, budget: &Budget, causes: &ByThread<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |place, by: String, nanos| {
        if nanos > 0 {
            parts.push(Part { place, by, nanos });
        }
    };
    add(TimeState::User, String::new(), budget.user + budget.traced);
    for call in &budget.calls {
        let name = call_name(call.slot);
        add(TimeState::Syscall, name.clone(), call.cpu);
        add(TimeState::Blocked, name, call.blocked);
    }
    for (slot, cpu, blocked) in [
        (SLOT_FAULT, budget.fault_cpu, budget.fault_blocked),
        (SLOT_RECLAIM, budget.reclaim_cpu, budget.reclaim_blocked),
    ] {
        add(TimeState::Syscall, call_name(slot), cpu);
        add(TimeState::Blocked, call_name(slot), blocked);
    }
    add(
        TimeState::Elsewhere,
        String::new(),
        budget.blocked_elsewhere,
    );
    add(TimeState::Stopped, FROZEN.to_owned(), budget.frozen);
    add(TimeState::Stopped, String::new(), budget.stopped);
    add(
        TimeState::Unknown,
        String::new(),
        budget.window.saturating_sub(budget.sum()),
    );
    let ran = preemptors(tid, pid, causes)
        .into_iter()
        .map(|it| (culprit_name(&it.name, it.relation), it.nanos));
    let [hard, vectors, soft] = interrupts_of(tid, causes);
    let named = |all: Vec<Interrupt>| all.into_iter().map(|it| (it.name, it.stat.total));
    split(budget.ready, ran, |by, nanos| {
        add(TimeState::Ready, by, nanos);
    });
    split(
        budget.hard,
        named(hard).chain(named(vectors)),
        |by, nanos| add(TimeState::Hard, by, nanos),
    );
    split(budget.soft, named(soft), |by, nanos| {
        add(TimeState::Soft, by, nanos);
    });
    parts
}

/// Splits a time among the takers, as far as it goes; the rest has no name.
fn split(
    nanos: u64,
    takers: impl Iterator<Item = (String, u64)>,
    mut give: impl FnMut(String, u64),
) {
    let mut left = nanos;
    for (by, took) in takers {
        let took = took.min(left);
        left -= took;
        give(by, took);
    }
    give(String::new(), left);
}

/// Names the task that ran instead, without the suffix that differs between the kernel's per-CPU
/// threads: `kworker/3:1-events` becomes `kworker`.
fn culprit_name(name: &str, relation: Relation) -> String {
    match relation {
        Relation::Kernel => name.split(['/', ':']).next().unwrap_or(name).to_owned(),
        Relation::Own => format!("{name} (own)"),
        Relation::Idle | Relation::Child | Relation::Dptrace | Relation::Other => name.to_owned(),
    }
}
