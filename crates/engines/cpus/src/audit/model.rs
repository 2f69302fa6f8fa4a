//! Intruders and victims of a CPU's time with names, from [`Sums`], which hold numbers.

use std::borrow::Cow;

use sched_programs::Comm;

use crate::audit::layout::{CLASSES, Key, Tally, detail, kind};
use crate::audit::sums::Sums;

/// Names and facts of this machine for the numbers in [`Sums`].
pub trait Names {
    /// Returns the name of the kernel's function at an address; the address itself if the name is
    /// unknown.
    fn function(&self, address: u64) -> String;
    /// Returns the CPUs that an interrupt is for at present, as the kernel lists them.
    fn affinity(&self, interrupt: u64) -> Option<String>;
    /// Returns the facts of a thread; `None` if they are unknown or it has exited.
    fn thread(&self, tid: u32) -> Option<ThreadFacts>;
    /// Returns whether this is the process that audits.
    fn is_dptrace(&self, pid: u32) -> bool {
        pid == std::process::id()
    }
}

/// Facts of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadFacts {
    /// Process id and name.
    pub process: (u32, String),
    /// Policy and priority: `SCHED_FIFO 50`, `nice 0`.
    pub policy: String,
    /// Control group.
    pub cgroup: Option<String>,
    /// CPUs that it may run on.
    pub affinity: Option<String>,
}

/// Part of a CPU's budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Label: one of a few words, the same in text and in JSON.
    pub what: &'static str,
    /// Number of episodes.
    pub count: u64,
    /// Nanoseconds of all episodes.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
}

/// Thread, interrupt or function that took time of a CPU, or waited for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intruder {
    /// Name of the kind: `thread`, `work`, `interrupt`, `soft interrupt`, ...
    pub kind: &'static str,
    /// Name; untrusted text.
    pub name: String,
    /// Cause, if known; untrusted text.
    pub cause: Option<String>,
    /// Number of episodes.
    pub count: u64,
    /// Nanoseconds of all episodes.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
    /// Start of the longest, in nanoseconds since the window's start.
    pub longest_at: u64,
    /// Number of episodes by class of length.
    pub classes: [u64; CLASSES],
    /// Thread id, for a thread.
    pub tid: Option<u32>,
    /// Facts of a thread; only what the programs saw if it has exited.
    pub thread: Option<ThreadFacts>,
    /// CPUs that a device interrupt is for.
    pub affinity: Option<String>,
}

/// Thread, work item or soft interrupt that waited for a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Identity, waits (including one that is not over) and cause.
    pub who: Intruder,
    /// Nanoseconds of the wait that is not over at the end, if any.
    pub still: Option<u64>,
    /// True if it already waited when the window began.
    pub before: bool,
}

/// Report of a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuReport {
    /// Number of the CPU.
    pub cpu: u32,
    /// Nanoseconds of the window.
    pub window: u64,
    /// Start of the window, in nanoseconds of the monotonic clock.
    pub start: u64,
    /// Thread that has the CPU to itself.
    pub poller: Option<Intruder>,
    /// Budget of the CPU's time; adds up to the window.
    pub budget: Vec<Share>,
    /// Users of its time except the poller and the idle thread, largest first.
    pub intruders: Vec<Intruder>,
    /// Victims that waited for it: those still waiting first, then by longest wait.
    pub victims: Vec<Victim>,
    /// Nanoseconds of the budget that no line of `intruders` has.
    pub unnamed: u64,
    /// Episodes, entries and waits that the maps or levels had no room for.
    pub lost: u64,
    /// Individual intrusions that were not sent.
    pub unsent: u64,
}

/// Data that names are made from.
pub(super) struct Context<'a> {
    pub(super) sums: &'a Sums,
    pub(super) names: &'a dyn Names,
    pub(super) start: u64,
}

/// Names of the soft interrupts (`softirq_to_name` of `kernel/softirq.c`).
const SOFT: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Prefixes of the functions between a work item and its queuer: those of tracepoints and of
/// `kernel/workqueue.c`.
const BETWEEN: [&str; 14] = [
    "bpf_",
    "__bpf_",
    "__traceiter_",
    "perf_trace",
    "__queue_work",
    "queue_work",
    "__queue_delayed_work",
    "queue_delayed_work",
    "mod_delayed_work",
    "schedule_work",
    "schedule_delayed_work",
    "insert_work",
    "queue_rcu_work",
    "__mod_delayed_work",
];

impl Context<'_> {
    pub(super) fn intruder(&self, key: &Key, tally: &Tally) -> Intruder {
        let is_thread = key.kind & !kind::WAITED == kind::THREAD;
        let tid = if is_thread {
            u32::try_from(key.id).ok()
        } else {
            None
        };
        let thread = tid.map(|tid| self.thread(tid, tally));
        let is_device = key.kind == kind::HARD;
        Intruder {
            kind: kind_name(key.kind & !kind::WAITED),
            name: if is_thread && self.names.is_dptrace(tally.tgid) {
                format!("{} [{}]", screen::DPTRACE_ITSELF, key.id)
            } else {
                self.name(key, &tally.name)
            },
            cause: self.cause(key, &tally.name),
            count: tally.count,
            total: tally.total,
            longest: tally.longest,
            longest_at: tally.longest_at.saturating_sub(self.start),
            classes: tally.classes.map(u64::from),
            tid,
            thread,
            affinity: if is_device {
                self.names.affinity(key.id)
            } else {
                None
            },
        }
    }

    /// Returns the facts of a thread; if it has exited, those that the programs saw.
    fn thread(&self, tid: u32, tally: &Tally) -> ThreadFacts {
        self.names.thread(tid).unwrap_or_else(|| ThreadFacts {
            process: (tally.tgid, String::new()),
            policy: policy(tally.detail),
            ..ThreadFacts::default()
        })
    }

    fn name(&self, key: &Key, name: &Comm) -> String {
        let text = || text(name).into_owned();
        match key.kind & !kind::WAITED {
            kind::THREAD => format!("{} [{}]", text(), key.id),
            kind::WORK if name[0] != 0 => format!("{} ({})", self.names.function(key.id), text()),
            kind::WORK | kind::HRTIMER | kind::TIMER | kind::FUNCTION => match key.id {
                0 => "a function".to_owned(),
                address => self.names.function(address),
            },
            kind::HARD => format!("irq {} {}", key.id, text()),
            kind::SOFT => soft_name(key.id).into_owned(),
            kind::IPI => text(),
            other => kind_name(other).to_owned(),
        }
    }

    fn cause(&self, key: &Key, name: &Comm) -> Option<String> {
        match (key.kind & !kind::WAITED, key.by_kind) {
            (_, 0) => None,
            (_, kind::STACK) => {
                let queuer = self.queuer(key.by)?;
                Some(format!("queued by {queuer}"))
            }
            (kind::SOFT, by_kind) => {
                let raiser = Key {
                    kind: by_kind,
                    id: key.by,
                    ..Key::default()
                };
                let by = if by_kind == kind::FUNCTION {
                    format!("{} for {}", self.names.function(key.by), text(name))
                } else {
                    labelled(kind_name(by_kind), &self.name(&raiser, name))
                };
                Some(format!("raised by {}", by.trim_end()))
            }
            (_, kind::THREAD) => Some(format!("from {} [{}]", text(name), key.by)),
            _ => None,
        }
    }

    /// Returns the queuer of work: the first function of the stack outside of workqueues, and its
    /// caller.
    fn queuer(&self, stack: u64) -> Option<String> {
        let frames = self.sums.stacks.get(&(stack & 0xffff_ffff))?;
        let names = frames.iter().map(|&frame| self.names.function(frame));
        let mut outside =
            names.filter(|name| !BETWEEN.iter().any(|between| name.starts_with(between)));
        let first = outside.next()?;
        Some(match outside.next() {
            Some(caller) => format!("{first} < {caller}"),
            None => first,
        })
    }
}

/// Returns the name of a soft interrupt.
fn soft_name(vector: u64) -> Cow<'static, str> {
    let known = usize::try_from(vector)
        .ok()
        .and_then(|vector| SOFT.get(vector));
    known.map_or_else(
        || format!("vector {vector}").into(),
        |name| Cow::Borrowed(*name),
    )
}

/// Returns a name after its kind; what has no name of its own is called as its kind.
pub fn labelled(kind: &str, name: &str) -> String {
    if kind == name {
        kind.to_owned()
    } else {
        format!("{kind} {name}")
    }
}

/// Returns the name of a kind.
fn kind_name(kind: u32) -> &'static str {
    match kind {
        kind::THREAD => "thread",
        kind::WORK => "work",
        kind::HARD => "interrupt",
        kind::SOFT => "soft interrupt",
        kind::TIMER_INTERRUPT => "timer interrupt",
        kind::CALLS | kind::CALL => "call interrupt",
        kind::RESCHEDULE => "reschedule interrupt",
        kind::IRQ_WORK => "irq_work interrupt",
        kind::HRTIMER => "hrtimer function",
        kind::TIMER => "timer function",
        kind::FUNCTION => "called function",
        kind::IPI => "interrupt of a CPU",
        _ => "unknown",
    }
}

/// Formats policy and priority as seen by the programs (`sched(7)`; `MAX_RT_PRIO` and
/// `DEFAULT_PRIO` of `include/linux/sched/prio.h`).
fn policy(seen: u32) -> String {
    let (policy, priority) = (seen & 0xff, i64::from(seen >> detail::PRIORITY & 0xff));
    match policy {
        1 => format!("SCHED_FIFO {}", 99 - priority),
        2 => format!("SCHED_RR {}", 99 - priority),
        6 => "SCHED_DEADLINE".to_owned(),
        _ if priority == 0 => String::new(),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        _ => format!("nice {}", priority - 120),
    }
}

/// Decodes a name up to its first zero byte.
fn text(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default())
}

/// Returns the kind, name and cause of an individual intrusion, for a line of its own.
pub fn name_of(
    sums: &Sums,
    key: &Key,
    name: &Comm,
    names: &dyn Names,
) -> (&'static str, String, Option<String>) {
    let context = Context {
        sums,
        names,
        start: 0,
    };
    (
        kind_name(key.kind & !kind::WAITED),
        context.name(key, name),
        context.cause(key, name),
    )
}
