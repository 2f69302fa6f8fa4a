//! CPUs' part of each second: an audit of the CPUs of the process's pollers, attached when somebody
//! wants to see it.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::time::Instant;

use cpus::audit::{CpuReport, Intruder, MIN_LISTED_WAIT_NANOS, Pollers, Victim, Windows, is_of};
use host::{Pid, proc};
use observer::Observer;
use text::printable;
use top::{Cpu, CpuTask, CpuUse, Share};

use super::{Beat, Part};

/// Limit on the intruders and on the victims of a CPU.
const MAX_TASKS: usize = 12;

/// Attaches the audit, and sends the CPUs of each second until the end.
pub(crate) fn run(
    pid: u32,
    beat: &Beat,
    parts: &Sender<Part>,
    observer: &Observer,
) -> anyhow::Result<()> {
    let mut pollers = Pollers::watch(&[pid]);
    beat.wait_until(Instant::now() + pollers.wait());
    let cpus: Vec<u32> = pollers.cpus(&[pid]).into_iter().collect();
    if cpus.is_empty() {
        anyhow::bail!("no thread of the process is pinned to a CPU, or on one all the time");
    }
    let mut windows = Windows::begin(cpus)?;
    let result = turns(pid, &mut windows, beat, parts);
    if !windows.end() {
        observer.note(
            "the kernel has not released the audit's programs yet (a CPU may be starved); they end \
             with this process",
        );
    }
    result
}

fn turns(pid: u32, windows: &mut Windows, beat: &Beat, parts: &Sender<Part>) -> anyhow::Result<()> {
    // The first window is that of the next complete second.
    let mut second = beat.now();
    beat.wait_until(beat.end_of(second));
    windows.turn(&BTreeSet::new())?;
    while !beat.is_over() {
        second = beat.now().max(second + 1);
        beat.wait_until(beat.end_of(second));
        if beat.is_over() {
            break;
        }
        let threads: BTreeSet<u32> = proc::threads(Pid(pid))
            .into_iter()
            .map(|thread| thread.0)
            .collect();
        let cpus = windows
            .turn(&threads)?
            .into_iter()
            .map(|report| cpu(report, pid))
            .collect();
        if parts.send(Part::Cpus(second, cpus)).is_err() {
            break;
        }
    }
    Ok(())
}

fn printable(text: &str) -> String {
    printable::text(text.as_bytes()).into_owned()
}

/// Returns a CPU's second. Its owner is the poller, or if there is none, the thread of the process
/// with most time: that thread is starved.
fn cpu(mut report: CpuReport, pid: u32) -> Cpu {
    let mut uses: Share<CpuUse> = Share::default();
    for share in &report.budget {
        uses.add(cpu_use(share.what), share.total);
    }
    let own = report
        .intruders
        .iter()
        .position(|intruder| intruder.tid.is_some() && is_of(intruder, pid));
    let owner = report.poller.take().or_else(|| {
        let owner = report.intruders.remove(own?);
        // Its time is in the budget as that of any other thread.
        let threads = uses.get(CpuUse::Threads).min(owner.total);
        uses.take(CpuUse::Threads, threads);
        uses.add(CpuUse::Owner, threads);
        Some(owner)
    });
    let victims = report
        .victims
        .iter()
        .filter(|victim| victim.who.longest >= MIN_LISTED_WAIT_NANOS)
        .take(MAX_TASKS);
    Cpu {
        number: report.cpu,
        window: report.window,
        owner: owner.map(|owner| printable(&owner.name)),
        uses,
        intruders: report
            .intruders
            .iter()
            .take(MAX_TASKS)
            .map(|intruder| taker(intruder, None))
            .collect(),
        victims: victims.map(victim).collect(),
        lost: report.lost,
    }
}

/// Returns the use that corresponds to a part of an audit's budget.
fn cpu_use(what: &str) -> CpuUse {
    match what {
        "poller" => CpuUse::Owner,
        "threads" => CpuUse::Threads,
        "kworkers' work" => CpuUse::Work,
        "device interrupts" | "NMI" => CpuUse::Devices,
        "soft interrupts" => CpuUse::Soft,
        "timer interrupts" => CpuUse::Timer,
        "interrupts of CPUs" => CpuUse::Calls,
        "idle" => CpuUse::Idle,
        _ => CpuUse::Rest,
    }
}

fn victim(victim: &Victim) -> CpuTask {
    taker(&victim.who, victim.still)
}

fn taker(who: &Intruder, still: Option<u64>) -> CpuTask {
    let process = who
        .thread
        .as_ref()
        .filter(|thread| !thread.process.1.is_empty())
        .map(|thread| {
            let policy = if thread.policy.is_empty() {
                String::new()
            } else {
                format!(", {}", thread.policy)
            };
            format!(
                "process {} [{}]{policy}",
                printable(&thread.process.1),
                thread.process.0
            )
        });
    CpuTask {
        kind: who.kind,
        name: printable(&who.name),
        cause: who.cause.as_deref().map(printable).or(process),
        count: who.count,
        nanos: who.total,
        longest: who.longest,
        still,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpus::audit::ThreadFacts;

    fn thread(name: &str, pid: u32, total: u64) -> Intruder {
        let facts = ThreadFacts {
            process: (pid, "p\u{1b}".into()),
            policy: "nice 0".into(),
            ..ThreadFacts::default()
        };
        Intruder {
            kind: "thread",
            name: name.into(),
            cause: None,
            count: 3,
            total,
            longest: total / 2,
            longest_at: 0,
            classes: Default::default(),
            tid: Some(pid),
            thread: Some(facts),
            affinity: None,
        }
    }

    fn share(what: &'static str, total: u64) -> cpus::audit::Share {
        cpus::audit::Share {
            what,
            count: 1,
            total,
            longest: 0,
        }
    }

    #[test]
    fn a_poller_that_is_starved_is_the_owner_all_the_same() {
        let waits = |longest| Victim {
            who: Intruder {
                longest,
                ..thread("v", 9, 1)
            },
            still: Some(5),
            before: false,
        };
        let report = CpuReport {
            cpu: 3,
            window: 1000,
            start: 0,
            poller: None,
            budget: vec![
                share("poller", 0),
                share("threads", 900),
                share("NMI", 60),
                share("rest", 40),
            ],
            intruders: vec![thread("hog [9]", 9, 600), thread("reactor_3 [7]", 7, 300)],
            victims: vec![
                waits(MIN_LISTED_WAIT_NANOS),
                waits(MIN_LISTED_WAIT_NANOS - 1),
            ],
            unnamed: 0,
            lost: 2,
            unsent: 0,
        };
        let cpu = cpu(report, 7);
        assert_eq!(
            (cpu.number, cpu.owner.as_deref(), cpu.lost),
            (3, Some("reactor_3 [7]"), 2)
        );
        let uses = [
            CpuUse::Owner,
            CpuUse::Threads,
            CpuUse::Devices,
            CpuUse::Rest,
        ]
        .map(|part| cpu.uses.get(part));
        assert_eq!(
            (uses, cpu.uses.sum(), cpu.taken()),
            ([300, 600, 60, 40], 1000, 0.66)
        );
        assert_eq!((cpu.intruders.len(), cpu.victims.len()), (1, 1));
        assert_eq!(
            cpu.intruders[0].cause.as_deref(),
            Some("process p\\x1b [9], nice 0")
        );
        assert_eq!(cpu.victims[0].still, Some(5));
    }
}
