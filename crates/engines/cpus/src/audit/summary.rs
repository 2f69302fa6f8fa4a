//! The summary of a CPU: who has it, who took most of it, and who waited longest for it.

use std::collections::BTreeSet;

use ::text::printable;
use screen::time;

use super::run::AuditResult;
use super::windows::MIN_LISTED_WAIT_NANOS;
use super::{CpuReport, Intruder, Victim, labelled};

/// Formats the summary of a CPU.
pub(super) fn one_line(found: &AuditResult, cpu: &CpuReport) -> String {
    let has = |who: &Intruder, only: &str| {
        let part = share(who.total, cpu.window);
        format!("{} has {only}{part}", safe(&who.name))
    };
    let starved_owner = if cpu.poller.is_none() {
        own_and_others(found, cpu).0.first().copied()
    } else {
        None
    };
    let poller = match (&cpu.poller, starved_owner) {
        (Some(poller), _) => has(poller, ""),
        (None, Some(own)) => has(own, "only "),
        (None, None) => "no thread has it for half of the time".to_owned(),
    };
    let worst = largest_taker(cpu, starved_owner).map_or_else(String::new, |worst| {
        let of = if is_own(found.threads.as_ref(), cpu, worst) {
            format!(" of {}", whose(found))
        } else {
            String::new()
        };
        format!(
            "; most taken by {}{of}: {}, {} longest",
            label(worst),
            share(worst.total, cpu.window),
            time(worst.longest)
        )
    });
    let starved = listed_victims(cpu)
        .max_by_key(|victim| victim.who.longest)
        .map_or_else(String::new, |victim| {
            format!(
                "; {} waited {}",
                label(&victim.who),
                time(victim.who.longest)
            )
        });
    format!(
        "CPU {}: {}, {poller}{worst}{starved}",
        cpu.cpu,
        time(cpu.window)
    )
}

/// Returns who took most of a CPU, be it a thread of the process itself; the thread that is the
/// CPU's owner took nothing.
fn largest_taker<'a>(cpu: &'a CpuReport, owner: Option<&Intruder>) -> Option<&'a Intruder> {
    let is_owner = |who: &Intruder| owner.is_some_and(|owner| std::ptr::eq(who, owner));
    cpu.intruders.iter().find(|who| !is_owner(who))
}

/// Names the process whose threads are no intruders: those that were named, or else the poller's.
pub(super) fn whose(found: &AuditResult) -> &'static str {
    match found.threads {
        Some(_) => "the process itself",
        None => "the poller's process",
    }
}

/// Formats the kind and the name.
pub(super) fn label(who: &Intruder) -> String {
    labelled(who.kind, &safe(&who.name))
}

/// Separates the threads of the processes that were named, or else of the poller's, from all others
/// that took time.
pub(super) fn own_and_others<'a>(
    found: &AuditResult,
    cpu: &'a CpuReport,
) -> (Vec<&'a Intruder>, Vec<&'a Intruder>) {
    let threads = found.threads.as_ref();
    let all = cpu.intruders.iter();
    all.partition(|who| is_own(threads, cpu, who))
}

/// Returns whether it is a thread of the processes that were named, or else of the poller's.
pub(super) fn is_own(threads: Option<&BTreeSet<u32>>, cpu: &CpuReport, who: &Intruder) -> bool {
    let process = |who: &Intruder| who.thread.as_ref().map(|thread| thread.process.0);
    match (threads, &cpu.poller) {
        (Some(threads), _) => who.tid.is_some_and(|tid| threads.contains(&tid)),
        (None, Some(poller)) => process(who).is_some_and(|pid| process(poller) == Some(pid)),
        (None, None) => false,
    }
}

/// Returns the victims that waited longer than usual.
pub(super) fn listed_victims(cpu: &CpuReport) -> impl Iterator<Item = &Victim> {
    cpu.victims
        .iter()
        .filter(|victim| victim.who.longest >= MIN_LISTED_WAIT_NANOS)
}

/// Formats the share of a time.
pub(super) fn share(part: u64, of: u64) -> String {
    screen::percent(screen::share(part, of), 2)
}

/// Escapes untrusted text.
pub(super) fn safe(text: &str) -> String {
    printable::text(text.as_bytes()).into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::audit::layout::CLASSES;
    use crate::audit::model::ThreadFacts;

    pub(in crate::audit) fn thread(tid: u32, pid: u32) -> Intruder {
        Intruder {
            kind: "thread",
            name: format!("t [{tid}]"),
            cause: None,
            count: 1,
            total: 1,
            longest: 1,
            longest_at: 0,
            classes: [0; CLASSES],
            tid: Some(tid),
            thread: Some(ThreadFacts {
                process: (pid, String::new()),
                ..ThreadFacts::default()
            }),
            affinity: None,
        }
    }

    pub(in crate::audit) fn no_report() -> CpuReport {
        CpuReport {
            cpu: 0,
            window: 1,
            start: 0,
            poller: None,
            budget: Vec::new(),
            intruders: Vec::new(),
            victims: Vec::new(),
            unnamed: 0,
            lost: 0,
            unsent: 0,
        }
    }

    #[test]
    fn the_largest_taker_may_be_a_thread_of_the_process() {
        let took = |tid: u32, total: u64| Intruder {
            total,
            ..thread(tid, 7)
        };
        let cpu = CpuReport {
            intruders: vec![took(8, 58), took(9, 15)],
            ..no_report()
        };
        let largest = |owner| largest_taker(&cpu, owner).and_then(|who| who.tid);
        assert_eq!(largest(None), Some(8));
        assert_eq!(
            largest(cpu.intruders.first()),
            Some(9),
            "not the starved owner"
        );
        assert_eq!(largest_taker(&no_report(), None), None);
    }

    #[test]
    fn threads_of_the_process_are_no_intruders() {
        let mut cpu = no_report();
        let of = |threads: Option<&BTreeSet<u32>>, cpu: &CpuReport| {
            [thread(8, 7), thread(9, 9)].map(|who| is_own(threads, cpu, &who))
        };
        let named = BTreeSet::from([7, 8]);
        assert_eq!(of(Some(&named), &cpu), [true, false]);
        assert_eq!(of(None, &cpu), [false, false]);
        cpu.poller = Some(thread(7, 7));
        assert_eq!(
            of(None, &cpu),
            [true, false],
            "threads of the poller's process"
        );
    }

    #[test]
    fn a_kind_without_names_is_named_once() {
        assert_eq!(
            labelled("timer interrupt", "timer interrupt"),
            "timer interrupt"
        );
        assert_eq!(labelled("soft interrupt", "RCU"), "soft interrupt RCU");
    }
}
