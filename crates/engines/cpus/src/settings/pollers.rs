//! Detection of polling threads.

use host::settings::{Facts, Thread};
use kernel_text::cpus::CpuSet;
use text::printable;

/// Minimum share of a window, in percent, for which a polling thread is on its CPU. The rest may be
/// taken by others, or not be accounted for yet: a running thread's time is added up at ticks, once
/// a second on CPUs without one (`sched_tick_remote` in kernel/sched/core.c).
const MIN_POLLER_PERCENT: u64 = 80;
/// Minimum share of a window, in percent, for a thread that may run on one CPU only.
const PINNED_SHARE: u64 = 20;

/// Polling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poller {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Printable name.
    pub name: String,
    /// CPU on which it is, or to which it is pinned.
    pub cpu: u32,
    /// True if it may run on that CPU only.
    pub is_pinned: bool,
    /// Scheduling policy, by its name in sched(7).
    pub policy: &'static str,
    /// Share of the window on a CPU, in whole percent; `None` if unknown.
    pub share: Option<u64>,
    /// Nanoseconds of the window on a CPU; `None` if unknown.
    pub ran: Option<u64>,
}

impl Poller {
    /// Returns true if it has a real-time policy, which ordinary threads never interrupt.
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy, "SCHED_FIFO" | "SCHED_RR")
    }
}

/// Returns the polling threads. With processes, these are their threads that are pinned to one CPU,
/// or nearly always on one. Without processes, these are all threads that are nearly always on a
/// CPU, or pinned and often on it. With `cpus`, only threads on these CPUs count.
pub fn pollers(facts: &Facts, pids: &[u32], cpus: Option<&CpuSet>) -> Vec<Poller> {
    let is_meant =
        |thread: &&Thread| !thread.is_kernel && (pids.is_empty() || pids.contains(&thread.pid));
    let all = facts.threads.iter().filter(is_meant).filter_map(|thread| {
        let share = share(facts, thread);
        let is_pinned = thread.allowed.len() == 1 && facts.online.len() > 1;
        let is_busy = share.is_some_and(|share| share >= MIN_POLLER_PERCENT);
        let is_poller = if pids.is_empty() {
            is_busy || is_pinned && share >= Some(PINNED_SHARE)
        } else {
            is_busy || is_pinned
        };
        let cpu = thread
            .allowed
            .iter()
            .next()
            .filter(|_| is_pinned)
            .unwrap_or(thread.cpu);
        let is_there = cpus.is_none_or(|cpus| cpus.has(cpu));
        (is_poller && is_there).then(|| Poller {
            pid: thread.pid,
            tid: thread.tid,
            name: printable::text(&thread.name).into_owned(),
            cpu,
            is_pinned,
            policy: thread.policy,
            share,
            ran: thread.ran,
        })
    });
    all.collect()
}

/// Returns the share of the window for which a thread was on a CPU, in whole percent, rounded down;
/// `None` if unknown.
pub(crate) fn share(facts: &Facts, thread: &Thread) -> Option<u64> {
    // Times are read one after the other, so a thread may have run a little longer than the window.
    Some((thread.ran?.saturating_mul(100) / facts.window.max(1)).min(100))
}

/// Formats the share of the window for which a thread was on a CPU.
pub(crate) fn shown_share(ran: u64, window: u64) -> String {
    screen::percent(screen::share(ran.min(window), window), 0)
}

#[test]
fn a_share_is_rounded() {
    assert_eq!(
        [20, 60].map(|ran| shown_share(ran, 59)),
        ["34%", "100%"],
        "times are read one after the other"
    );
}
