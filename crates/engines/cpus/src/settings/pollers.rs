//! Which threads poll.

use host::settings::{Facts, Thread};
use kernel_text::cpus::CpuSet;
use text::printable;

/// The share of a window, in percent, for which a thread that polls is on its CPU. The rest may be taken by others, or not be
/// accounted for yet: a running thread's time is added up at ticks, once a second on CPUs without one (`sched_tick_remote` in
/// kernel/sched/core.c).
const SHARE: u64 = 80;
/// A thread of this share polls if it may run on one CPU only.
const PINNED_SHARE: u64 = 20;

/// A thread that polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poller {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// What it is called, as it may be printed.
    pub name: String,
    /// The CPU on which it is, or to which it is pinned.
    pub cpu: u32,
    /// Whether it may run on that CPU only.
    pub is_pinned: bool,
    /// Its policy, by its name in sched(7).
    pub policy: &'static str,
    /// Percent of the window for which it was on a CPU; none if that is not known.
    pub share: Option<u64>,
}

impl Poller {
    /// Whether it has a real-time policy, which ordinary threads never interrupt.
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy, "SCHED_FIFO" | "SCHED_RR")
    }
}

/// The threads that poll: of these processes, those that are pinned to one CPU or are on one nearly all the time; without
/// processes, all of these CPUs that are on theirs nearly all the time, or pinned and often. Both bounds hold if both are given.
pub fn pollers(facts: &Facts, pids: &[u32], cpus: Option<&CpuSet>) -> Vec<Poller> {
    let is_meant = |thread: &&Thread| !thread.is_kernel && (pids.is_empty() || pids.contains(&thread.pid));
    let all = facts.threads.iter().filter(is_meant).filter_map(|thread| {
        let share = share(facts, thread);
        let is_pinned = thread.allowed.len() == 1 && facts.online.len() > 1;
        let is_busy = share.is_some_and(|share| share >= SHARE);
        let is_poller =
            if pids.is_empty() { is_busy || is_pinned && share >= Some(PINNED_SHARE) } else { is_busy || is_pinned };
        let cpu = thread.allowed.iter().next().filter(|_| is_pinned).unwrap_or(thread.cpu);
        let is_there = cpus.is_none_or(|cpus| cpus.has(cpu));
        (is_poller && is_there).then(|| Poller {
            pid: thread.pid,
            tid: thread.tid,
            name: printable::text(&thread.name).into_owned(),
            cpu,
            is_pinned,
            policy: thread.policy,
            share,
        })
    });
    all.collect()
}

/// Returns the percent of the window for which a thread was on a CPU.
pub(crate) fn share(facts: &Facts, thread: &Thread) -> Option<u64> {
    // Times are read one after the other, so that a thread may have run a little longer than the window.
    Some((thread.ran?.saturating_mul(100) / facts.window.max(1)).min(100))
}
