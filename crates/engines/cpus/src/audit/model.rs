//! The report with names: owners, intruders and victims of a CPU's time, all from [`Sums`], which
//! hold numbers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use sched_programs::Comm;

use crate::audit::layout::{CLASSES, Key, State, Tally, detail, kind};
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

/// Reports on each CPU. A poller is one of `subject`, if given, and has at least half of its CPU.
pub fn report(sums: &Sums, subject: Option<&BTreeSet<u32>>, names: &dyn Names) -> Vec<CpuReport> {
    sums.cpus
        .iter()
        .map(|cpu| of_cpu(sums, cpu.cpu, &cpu.state, subject, names))
        .collect()
}

fn of_cpu(
    sums: &Sums,
    cpu: u32,
    state: &State,
    subject: Option<&BTreeSet<u32>>,
    names: &dyn Names,
) -> CpuReport {
    let window = state.stop.saturating_sub(state.start);
    let context = Context {
        sums,
        names,
        start: state.start,
    };
    let mine: Vec<(&Key, &Tally)> = sums
        .tallies
        .iter()
        .filter(|(key, _)| key.cpu == cpu)
        .collect();
    let (waited, ran): (Vec<_>, Vec<_>) = mine
        .into_iter()
        .partition(|(key, _)| key.kind & kind::WAITED != 0);
    let is_subject = |tid: u64| {
        subject.is_none_or(|tids| u32::try_from(tid).is_ok_and(|tid| tids.contains(&tid)))
    };
    let poller = ran
        .iter()
        .filter(|(key, _)| key.kind == kind::THREAD && key.id != 0 && is_subject(key.id));
    let poller = poller
        .max_by_key(|(_, tally)| tally.total)
        .filter(|(_, tally)| tally.total * 2 >= window);
    let (poller_key, had) = poller.map_or((None, Share::none()), |(key, tally)| {
        (Some(**key), Share::of(tally))
    });
    let idle = ran
        .iter()
        .find(|(key, _)| key.kind == kind::THREAD && key.id == 0);
    let idle = idle.map_or(Share::none(), |(_, tally)| Share::of(tally));
    let budget = budget(state, window, had, idle);
    let others = ran
        .iter()
        .filter(|(key, _)| Some(**key) != poller_key && (key.kind, key.id) != (kind::THREAD, 0));
    let mut intruders: Vec<Intruder> = others
        .map(|(key, tally)| context.intruder(key, tally))
        .collect();
    intruders.sort_by_key(|intruder| Reverse((intruder.total, intruder.name.clone())));
    let in_lines: u64 = ran.iter().map(|(_, tally)| tally.total).sum();
    let nmi = state.totals[kind::NMI as usize].total;
    let all: u64 = state.totals.iter().map(|total| total.total).sum();
    let mut victims = victims(&context, cpu, state, &waited);
    victims.sort_by_key(|victim| {
        Reverse((
            victim.still.is_some(),
            victim.who.longest,
            victim.who.name.clone(),
        ))
    });
    CpuReport {
        cpu,
        window,
        start: state.start,
        poller: poller_key.and_then(|key| Some(context.intruder(&key, sums.tallies.get(&key)?))),
        budget,
        intruders,
        victims,
        unnamed: all.saturating_sub(nmi).saturating_sub(in_lines),
        lost: state.lost + state.too_deep + state.unseen,
        unsent: state.unsent,
    }
}

impl Share {
    fn none() -> Self {
        Self {
            what: "",
            count: 0,
            total: 0,
            longest: 0,
        }
    }

    fn of(tally: &Tally) -> Self {
        Self {
            what: "",
            count: tally.count,
            total: tally.total,
            longest: tally.longest,
        }
    }
}

/// Parts of a budget in the order of listing, each with its kinds.
const PARTS: [(&str, &[u32]); 7] = [
    ("threads", &[kind::THREAD]),
    ("kworkers' work", &[kind::WORK]),
    ("device interrupts", &[kind::HARD]),
    ("soft interrupts", &[kind::SOFT, kind::TIMER]),
    ("timer interrupts", &[kind::TIMER_INTERRUPT, kind::HRTIMER]),
    (
        "interrupts of CPUs",
        &[
            kind::CALL,
            kind::CALLS,
            kind::FUNCTION,
            kind::RESCHEDULE,
            kind::IRQ_WORK,
            kind::IPI,
        ],
    ),
    ("NMI", &[kind::NMI]),
];

/// Kinds whose functions are counted within their interrupt.
const WITHIN: [u32; 3] = [kind::HRTIMER, kind::TIMER, kind::FUNCTION];

/// Splits the time of the window into shares.
fn budget(state: &State, window: u64, poller: Share, idle: Share) -> Vec<Share> {
    let mut shares = vec![Share {
        what: "poller",
        ..poller
    }];
    for (what, kinds) in PARTS {
        let mut share = Share {
            what,
            ..Share::none()
        };
        for &kind in kinds {
            let total = state.totals[kind as usize];
            share.total += total.total;
            share.longest = share.longest.max(total.longest);
            share.count += if WITHIN.contains(&kind) {
                0
            } else {
                total.count
            };
        }
        if kinds == [kind::THREAD] {
            share.total = share
                .total
                .saturating_sub(poller.total)
                .saturating_sub(idle.total);
            share.count = share
                .count
                .saturating_sub(poller.count)
                .saturating_sub(idle.count);
            // The longest of all threads may be the poller's or the idle one's: that of the others
            // is in their lines.
            share.longest = 0;
        }
        shares.push(share);
    }
    shares.push(Share {
        what: "idle",
        ..idle
    });
    let sum: u64 = shares.iter().map(|share| share.total).sum();
    shares.push(Share {
        what: "rest",
        total: window.saturating_sub(sum),
        ..Share::none()
    });
    shares
}

/// Data that names are made from.
struct Context<'a> {
    sums: &'a Sums,
    names: &'a dyn Names,
    start: u64,
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
    fn intruder(&self, key: &Key, tally: &Tally) -> Intruder {
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
            name: self.name(key, &tally.name),
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
                    format!("{} {}", kind_name(by_kind), self.name(&raiser, name))
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

/// Returns the victims: those whose waits are over, and those still waiting.
fn victims(
    context: &Context<'_>,
    cpu: u32,
    state: &State,
    waited: &[(&Key, &Tally)],
) -> Vec<Victim> {
    let over = |(key, tally): &(&Key, &Tally)| Victim {
        before: tally.longest_at != 0 && tally.longest_at <= state.start,
        who: context.intruder(key, tally),
        still: None,
    };
    let mut victims: Vec<Victim> = waited.iter().map(over).collect();
    let mut open: Vec<(Key, u64, Tally)> = Vec::new();
    let key = |kind: u32, id: u64| Key {
        cpu,
        kind: kind | kind::WAITED,
        id,
        ..Key::default()
    };
    for (tid, waiting) in context
        .sums
        .waiting
        .iter()
        .filter(|(_, waiting)| waiting.cpu == cpu)
    {
        let tally = Tally {
            name: waiting.name,
            tgid: waiting.tgid,
            ..Tally::default()
        };
        open.push((key(kind::THREAD, (*tid).into()), waiting.since, tally));
    }
    for (_, item) in context
        .sums
        .queued
        .iter()
        .filter(|(_, item)| u32::try_from(item.cpu) == Ok(cpu))
    {
        let mut tally = Tally::default();
        tally
            .name
            .iter_mut()
            .zip(item.queue)
            .for_each(|(to, from)| *to = from);
        let key = Key {
            by: item.stack,
            by_kind: kind::STACK,
            ..key(kind::WORK, item.function)
        };
        open.push((key, item.since, tally));
    }
    for (vector, raised) in (0..)
        .zip(&state.raised)
        .filter(|(_, raised)| raised.at != 0)
    {
        open.push((key(kind::SOFT, vector), raised.at, Tally::default()));
    }
    for (key, since, tally) in open {
        let who = context.intruder(&key, &tally);
        let same = |victim: &&mut Victim| {
            victim.still.is_none() && (victim.who.kind, &victim.who.name) == (who.kind, &who.name)
        };
        let nanos = state.stop.saturating_sub(since);
        let mut victim = match victims.iter_mut().find(same) {
            Some(victim) => std::mem::replace(
                victim,
                Victim {
                    still: Some(0),
                    before: false,
                    who: who.clone(),
                },
            ),
            None => Victim {
                who,
                still: None,
                before: false,
            },
        };
        victims.retain(|victim| victim.still != Some(0));
        victim.still = Some(nanos.max(1));
        victim.before |= since <= state.start;
        victim.who.count += 1;
        victim.who.total += nanos;
        if nanos >= victim.who.longest {
            (victim.who.longest, victim.who.longest_at) =
                (nanos, since.saturating_sub(state.start));
        }
        victims.push(victim);
    }
    victims
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::layout::Total;
    use crate::audit::sums::CpuSums;

    /// A machine whose names are all unknown.
    struct Nameless;

    impl Names for Nameless {
        fn function(&self, address: u64) -> String {
            format!("{address:#x}")
        }

        fn affinity(&self, _: u64) -> Option<String> {
            None
        }

        fn thread(&self, _: u32) -> Option<ThreadFacts> {
            None
        }
    }

    /// Returns sums of CPU 1 in a window of 1,000 ns, from the kind, id and time of each episode.
    fn sums(ran: &[(u32, u64, u64)]) -> Sums {
        let mut sums = Sums::default();
        let mut state = State {
            start: 5_000,
            stop: 6_000,
            ..State::default()
        };
        for &(kind, id, total) in ran {
            let of_kind = &mut state.totals[kind as usize];
            *of_kind = Total {
                count: of_kind.count + 1,
                total: of_kind.total + total,
                ..*of_kind
            };
            let tally = Tally {
                count: 1,
                total,
                longest: total,
                ..Tally::default()
            };
            sums.tallies.insert(
                Key {
                    cpu: 1,
                    kind,
                    id,
                    ..Key::default()
                },
                tally,
            );
        }
        sums.cpus.push(CpuSums { cpu: 1, state });
        sums
    }

    #[test]
    fn time_of_the_poller_of_others_and_of_nobody_adds_up() {
        let ran = [
            (kind::THREAD, 77, 600),
            (kind::THREAD, 0, 200),
            (kind::THREAD, 78, 50),
            (kind::SOFT, 3, 100),
        ];
        let reports = report(&sums(&ran), None, &Nameless);
        let [cpu] = reports.as_slice() else {
            panic!("{reports:#?}")
        };
        assert_eq!(
            (cpu.cpu, cpu.window, cpu.start, cpu.unnamed),
            (1, 1_000, 5_000, 0)
        );
        assert_eq!(
            cpu.poller.as_ref().map(|poller| (poller.tid, poller.total)),
            Some((Some(77), 600))
        );
        let parts: Vec<_> = cpu
            .budget
            .iter()
            .filter(|part| part.total > 0)
            .map(|it| (it.what, it.total))
            .collect();
        assert_eq!(
            parts,
            [
                ("poller", 600),
                ("threads", 50),
                ("soft interrupts", 100),
                ("idle", 200),
                ("rest", 50)
            ]
        );
        let took: Vec<_> = cpu
            .intruders
            .iter()
            .map(|it| (it.kind, it.tid, it.total))
            .collect();
        assert_eq!(
            took,
            [("soft interrupt", None, 100), ("thread", Some(78), 50)]
        );
    }

    /// A poller has at least half of its CPU, is one of the given threads, and is never the idle
    /// thread.
    #[test]
    fn who_has_less_than_half_is_no_poller() {
        let poller = |ran: &[_], subject: Option<&BTreeSet<u32>>| {
            let reports = report(&sums(ran), subject, &Nameless);
            reports[0].poller.as_ref().and_then(|poller| poller.tid)
        };
        assert_eq!(poller(&[(kind::THREAD, 77, 500)], None), Some(77));
        assert_eq!(poller(&[(kind::THREAD, 77, 499)], None), None);
        assert_eq!(poller(&[(kind::THREAD, 0, 900)], None), None);
        assert_eq!(
            poller(&[(kind::THREAD, 77, 900)], Some(&BTreeSet::from([78]))),
            None
        );
        assert_eq!(poller(&[(kind::WORK, 77, 900)], None), None);
    }
}
