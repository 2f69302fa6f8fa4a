//! Other threads on the CPUs, and threads that starve there.

use host::settings::{Thread, UnreadReason};
use kernel_text::cpus::CpuSet;
use ordering::Order as _;
use screen::{counted, plural};
use text::printable;

use crate::settings::Context;
use crate::settings::finding::{Finding, Key, Level, Subject};
use crate::settings::pollers::shown_share;

/// Release that added the fair server and removed the default throttling of real-time threads
/// (commit "sched/rt: Remove default bandwidth control").
const FAIR_SERVER: (u32, u32) = (6, 12);
/// Limit on the threads named.
const MAX_NAMED: usize = 8;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Checks other threads of user space on these CPUs: those that ran there in the window, and those
/// that may run nowhere else.
pub(crate) fn shared(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let others = facts
        .threads
        .iter()
        .filter(|thread| !thread.is_kernel && !context.is_poller(thread.tid));
    let is_bound =
        |thread: &&Thread| !thread.allowed.is_empty() && thread.allowed.without(cpus).is_empty();
    let (mut bound, free): (Vec<&Thread>, Vec<&Thread>) = others.partition(is_bound);
    bound.order_by_key(|thread| (std::cmp::Reverse(thread.ran), thread.tid));
    let mut findings: Vec<Finding> = bound
        .iter()
        .take(MAX_NAMED)
        .map(|thread| bound_one(context, thread))
        .collect();
    if bound.len() > MAX_NAMED {
        let reason = format!(
            "{} may run nowhere else",
            counted((bound.len() - MAX_NAMED) as u64, "more thread")
        );
        findings.push(Finding::new(Key::SharedCpu, Level::Yellow, cpus, reason));
    }
    let visitors: Vec<&Thread> = free
        .into_iter()
        .filter(|thread| cpus.has(thread.cpu) && thread.ran.is_some_and(|ran| ran > 0))
        .collect();
    findings.extend(visiting(context, visitors));
    if facts.threads_left_out > 0 {
        let reason = format!(
            "{} {} not checked: there are too many",
            counted(facts.threads_left_out as u64, "thread"),
            plural(facts.threads_left_out as u64, "was", "were")
        );
        findings.push(Finding::new(Key::SharedCpu, Level::Unknown, cpus, reason));
    }
    if findings.is_empty() {
        let reason = "no other thread of user space ran there while the machine was watched";
        findings.push(Finding::new(Key::SharedCpu, Level::Green, cpus, reason));
    }
    findings
}

/// Reports a thread that may run on these CPUs only.
fn bound_one(context: &Context<'_>, thread: &Thread) -> Finding {
    let (name, at) = (printable::text(&thread.name), &thread.allowed);
    let (level, what) = match thread.ran.unwrap_or(0) {
        0 => (
            Level::Yellow,
            "it did not run while the machine was watched".to_owned(),
        ),
        ran => (Level::Red, format!("it ran for {}", time(context, ran))),
    };
    let reason = format!(
        "{name} [{}] of process {} may run on CPU {at} only; {what}",
        thread.tid, thread.pid
    );
    let change = context.line(|others| format!("taskset -pc {others} {}", thread.tid));
    Finding::new(Key::SharedCpu, level, at, reason)
        .from(
            "sched_setaffinity(2)",
            format!("CPU {at}, {}", thread.policy),
        )
        .change(change)
        .about(Subject::Thread(thread.tid))
}

/// Reports threads that ran on these CPUs, and may run elsewhere, too. A thread that changed its
/// CPU ran a part of its time elsewhere.
fn visiting(context: &Context<'_>, mut visitors: Vec<&Thread>) -> Option<Finding> {
    visitors.order_by_key(|thread| (std::cmp::Reverse(thread.ran), thread.tid));
    let cpus: CpuSet = visitors.iter().map(|thread| thread.cpu).collect();
    let name = |thread: &&Thread| {
        let ran = time(context, thread.ran.unwrap_or(0));
        format!(
            "{} [{}] for {ran}",
            printable::text(&thread.name),
            thread.tid
        )
    };
    let mut names: Vec<String> = visitors.iter().take(MAX_NAMED).map(name).collect();
    if visitors.len() > MAX_NAMED {
        names.push(format!("{} more", visitors.len() - MAX_NAMED));
    }
    let first = visitors.first()?;
    let reason = format!(
        "threads that may run elsewhere ran on CPU {cpus}: {}",
        names.join(", ")
    );
    // Isolation keeps all of them away, also future ones; an affinity is a thread's own.
    let change = context.line(|others| {
        format!(
            "taskset -apc {others} PID  # for each of their processes, if the CPUs can't be \
             isolated"
        )
    });
    Some(
        Finding::new(Key::SharedCpu, Level::Red, &cpus, reason)
            .from(
                "sched_setaffinity(2)",
                format!("CPU {} of {}", first.allowed, printable::text(&first.name)),
            )
            .change(change),
    )
}

/// Formats a time: `50.248 ms (12%)`.
fn time(context: &Context<'_>, ran: u64) -> String {
    format!(
        "{}.{:03} ms ({})",
        ran / 1_000_000,
        ran / 1000 % 1000,
        shown_share(ran, context.facts.window)
    )
}

/// Checks pollers with a real-time policy (sched(7)). Ordinary threads of their CPU, the kernel's
/// workers among them, get only the time left to them: before Linux 6.12 while real-time threads
/// are throttled (`sched_rt_runtime_us` of each period;
/// Documentation/scheduler/sched-rt-group.rst), since then while the CPU's fair server runs
/// (`fair_server_init` in kernel/sched/fair.c; /sys/kernel/debug/sched/fair_server).
pub(crate) fn real_time(context: &Context<'_>) -> Vec<Finding> {
    let pollers: Vec<_> = context
        .pollers
        .iter()
        .filter(|poller| poller.is_real_time())
        .collect();
    let Some(first) = pollers.first() else {
        let reason = "no poller has a real-time policy: ordinary threads that are bound to its CPU \
                      get their share";
        return vec![Finding::new(
            Key::RealTime,
            Level::Green,
            context.cpus,
            reason,
        )];
    };
    let cpus: CpuSet = pollers.iter().map(|poller| poller.cpu).collect();
    let who = format!("{} [{}] polls with {}", first.name, first.tid, first.policy);
    let who = if pollers.len() > 1 {
        let others = pollers.len() - 1;
        let do_so = plural(others as u64, "does", "do");
        format!("{who}, and so {do_so} {others} more")
    } else {
        who
    };
    let ordinary = pollers
        .iter()
        .map(|poller| format!("chrt --other --pid 0 {}", poller.tid))
        .collect();
    if context
        .facts
        .release
        .is_some_and(|release| release >= FAIR_SERVER)
    {
        return vec![with_fair_server(context, &cpus, &who, ordinary)];
    }
    vec![with_throttling(context, &cpus, &who, ordinary)]
}

fn with_fair_server(
    context: &Context<'_>,
    cpus: &CpuSet,
    who: &str,
    ordinary: Vec<String>,
) -> Finding {
    const SETTING: &str = "/sys/kernel/debug/sched/fair_server";
    match &context.facts.fair_servers {
        Ok(servers) => {
            let off: CpuSet = cpus
                .iter()
                .filter(|cpu| servers.get(cpu) == Some(&0))
                .collect();
            if off.is_empty() {
                let runtime = servers.values().copied().max().unwrap_or(0);
                let reason = format!(
                    "{who}: ordinary threads of its CPU wait up to a second for their turn, and \
                     the poller stands still during it"
                );
                return Finding::new(Key::RealTime, Level::Yellow, cpus, reason)
                    .from(
                        format!("{SETTING}/cpu*/runtime"),
                        format!("{} ms of each period", runtime * 1000 / SECOND),
                    )
                    .change(ordinary);
            }
            let reason = format!(
                "{who}, and the fair server is off: ordinary threads of CPU {off}, including the \
                 kernel's workers, never run"
            );
            let on = off
                .iter()
                .map(|cpu| format!("echo 50000000 > {SETTING}/cpu{cpu}/runtime"))
                .collect();
            Finding::new(Key::RealTime, Level::Red, &off, reason)
                .from(format!("{SETTING}/cpu*/runtime"), 0)
                .change(on)
        }
        Err(unread) => {
            let why = if unread.why == UnreadReason::Absent {
                "debugfs is not mounted"
            } else {
                "only root may read it"
            };
            let reason = format!(
                "{who}: ordinary threads of its CPU run only in the fair server's time, 50 ms of \
                 each second unless that was changed"
            );
            Finding::new(Key::RealTime, Level::Yellow, cpus, reason)
                .from(SETTING, format!("not read: {why}"))
                .change(ordinary)
        }
    }
}

fn with_throttling(
    context: &Context<'_>,
    cpus: &CpuSet,
    who: &str,
    ordinary: Vec<String>,
) -> Finding {
    const SETTING: &str = "kernel.sched_rt_runtime_us";
    let (runtime, period) = match (&context.facts.rt_runtime, &context.facts.rt_period) {
        (Ok(runtime), Ok(period)) => (*runtime, *period),
        (Err(unread), _) | (_, Err(unread)) => return Finding::unread(Key::RealTime, cpus, unread),
    };
    let value = format!("{runtime} (of {period})");
    if runtime < 0 || runtime >= period {
        let reason = format!(
            "{who}, and throttling is off: ordinary threads of its CPU, including the kernel's \
             workers, never run"
        );
        let mut change = vec![format!("sysctl -w {SETTING}={}", period / 20 * 19)];
        change.extend(ordinary);
        return Finding::new(Key::RealTime, Level::Red, cpus, reason)
            .from(SETTING, value)
            .change(change);
    }
    let lost = (period - runtime) / 1000;
    let reason = format!(
        "{who}: the kernel stops it for {lost} ms in each {} ms to run everything that waits for \
         the CPU",
        period / 1000
    );
    Finding::new(Key::RealTime, Level::Yellow, cpus, reason)
        .from(SETTING, value)
        .change(ordinary)
}

/// Checks threads of the kernel that may run on these CPUs and could run elsewhere
/// (Documentation/admin-guide/kernel-per-CPU-kthreads.rst). Those of one CPU stay, and so does each
/// whose affinity the kernel fixed (`PF_NO_SETAFFINITY`).
pub(crate) fn kernel_threads(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let kernel = || {
        facts
            .threads
            .iter()
            .filter(|thread| thread.is_kernel && !thread.allowed.and(cpus).is_empty())
    };
    let movable: Vec<&Thread> = kernel()
        .filter(|thread| !thread.is_fixed && thread.allowed.len() > 1)
        .collect();
    let bound = kernel()
        .filter(|thread| thread.allowed.without(cpus).is_empty())
        .count() as u64;
    if movable.is_empty() {
        let reason = format!(
            "{} {} bound to these CPUs; no movable ones may run there",
            counted(bound, "kernel thread"),
            plural(bound, "is", "are")
        );
        return vec![Finding::new(Key::KernelThreads, Level::Green, cpus, reason)];
    }
    let mut names: Vec<String> = movable
        .iter()
        .take(MAX_NAMED)
        .map(|it| printable::text(&it.name).into_owned())
        .collect();
    if movable.len() > MAX_NAMED {
        names.push(format!("{} more", movable.len() - MAX_NAMED));
    }
    let reason = format!(
        "these kernel threads may run there, but could run elsewhere: {}; {bound} {} bound there",
        names.join(", "),
        plural(bound, "other is", "others are")
    );
    // The parent of all future threads is one of them, so a loop reaches all.
    let tids: Vec<String> = movable
        .iter()
        .map(|thread| thread.tid.to_string())
        .collect();
    let change = context.line(|others| {
        format!(
            "for tid in {}; do taskset -pc {others} $tid; done",
            tids.join(" ")
        )
    });
    vec![Finding::new(Key::KernelThreads, Level::Yellow, cpus, reason).change(change)]
}

/// Checks watchdogs for lockups (Documentation/admin-guide/lockup-watchdogs.rst): on each of their
/// CPUs a timer, five times in two thresholds, wakes a thread of the highest priority. CPUs of
/// `nohz_full=` are left out by default.
pub(crate) fn watchdogs(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "kernel.watchdog_cpumask";
    let (facts, cpus) = (context.facts, context.cpus);
    let (runs, on) = match (&facts.watchdog, &facts.watchdog_cpus) {
        (Ok(runs), Ok(on)) => (*runs != 0, on),
        (Err(unread), _) | (_, Err(unread)) if unread.why == UnreadReason::Absent => {
            return vec![Finding::new(
                Key::Watchdog,
                Level::Green,
                cpus,
                "this kernel has no watchdog for lockups",
            )];
        }
        (Err(unread), _) | (_, Err(unread)) => {
            return vec![Finding::unread(Key::Watchdog, cpus, unread)];
        }
    };
    let here = on.and(cpus);
    if !runs || here.is_empty() {
        let reason = "no watchdog for lockups runs on these CPUs";
        return vec![Finding::new(Key::Watchdog, Level::Green, cpus, reason).from(SETTING, on)];
    }
    let nmi = if facts.nmi_watchdog == Ok(1) {
        ", and one more by NMI"
    } else {
        ""
    };
    let reason = format!(
        "a watchdog interrupts CPU {here} every few seconds{nmi}; without it, lockups there are \
         not reported"
    );
    let change = context.line(|_| {
        let rest = on.without(cpus);
        let rest = if rest.is_empty() {
            context.others.clone()
        } else {
            rest
        };
        format!("sysctl -w {SETTING}={rest}")
    });
    vec![
        Finding::new(Key::Watchdog, Level::Yellow, &here, reason)
            .from(SETTING, on)
            .change(change),
    ]
}
