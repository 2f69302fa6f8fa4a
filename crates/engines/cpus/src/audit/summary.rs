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
    let (own, others) = own_and_others(found, cpu);
    let poller = match (&cpu.poller, own.first()) {
        (Some(poller), _) => has(poller, ""),
        (None, Some(own)) => has(own, "only "),
        (None, None) => "no thread has it for half of the time".to_owned(),
    };
    let worst = others.first().map_or_else(String::new, |worst| {
        format!(
            "; most taken by {}: {}, {} longest",
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
mod tests {
    use super::*;
    use crate::audit::layout::CLASSES;
    use crate::audit::model::ThreadFacts;

    fn thread(tid: u32, pid: u32) -> Intruder {
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

    #[test]
    fn threads_of_the_process_are_no_intruders() {
        let mut cpu = CpuReport {
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
        };
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
