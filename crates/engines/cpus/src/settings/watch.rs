//! Watches the machine for a moment, and checks its settings for CPUs on which threads poll.

use std::time::{Duration, Instant};

use errors::usage;
use host::settings::{Facts, Root, Snapshot};
use kernel_text::cpus::CpuSet;
use observer::Observer;

use super::{CheckReport, Poller, check, pollers};
use crate::Subject;

/// Time for which the machine is watched for running threads and interrupts.
const WINDOW: Duration = Duration::from_millis(400);
/// Time for which it is watched if some CPUs have no tick: there a running thread's time is added
/// up once a second.
const WINDOW_WITHOUT_TICK: Duration = Duration::from_millis(2200);

impl CheckReport {
    /// Watches the machine, and runs the checks for the subject's CPUs, or for those of its
    /// processes' pollers. The calling thread moves off the subject's CPUs, if there are others.
    pub fn run(subject: &Subject, observer: &Observer) -> anyhow::Result<Self> {
        if let Some(cpus) = &subject.cpus {
            keep_off(cpus, observer);
        }
        let facts = watch(&subject.pids);
        let pollers = pollers(&facts, &subject.pids, subject.cpus.as_ref());
        let cpus = match &subject.cpus {
            Some(cpus) => cpus.clone(),
            None => cpus_of(&pollers, subject)?,
        };
        let findings = check(&facts, &cpus, &pollers);
        Ok(Self {
            cpus,
            pollers,
            findings,
            window: facts.window,
        })
    }
}

/// Keeps the calling thread off the CPUs, if there are others: beside a real-time poller, it would
/// never run again.
fn keep_off(cpus: &CpuSet, observer: &Observer) {
    let Ok(allowed) = sys::sched::allowed_cpus() else {
        return;
    };
    let is_other = |cpu: &usize| u32::try_from(*cpu).is_ok_and(|cpu| !cpus.has(cpu));
    let others: Vec<usize> = allowed.into_iter().filter(is_other).collect();
    // If there are none, it stays where it is.
    if !others.is_empty()
        && let Err(error) = sys::sched::run_on(&others)
    {
        observer.note(&format!(
            "reading on any CPU: sched_setaffinity(2): {error}"
        ));
    }
}

/// Reads the facts at the end of a window in which the machine is watched.
fn watch(pids: &[u32]) -> Facts {
    let root = Root::machine();
    let has_tick = host::machine::cpu_list("nohz_full")
        .unwrap_or_default()
        .is_empty();
    let window = if has_tick {
        WINDOW
    } else {
        WINDOW_WITHOUT_TICK
    };
    let began = Instant::now();
    let before = Snapshot::read(&root);
    std::thread::sleep(window.saturating_sub(began.elapsed()));
    let window = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut facts = Facts::read(&root, &before, window, pids);
    // Threads of this command are no neighbours.
    let own = std::process::id();
    facts.threads.retain(|thread| thread.pid != own);
    facts
}

/// Returns the CPUs of the pollers; an error if there are none.
fn cpus_of(pollers: &[Poller], subject: &Subject) -> anyhow::Result<CpuSet> {
    let cpus: CpuSet = pollers.iter().map(|poller| poller.cpu).collect();
    if cpus.is_empty() {
        let pids = subject
            .pids
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(usage(format!(
            "no thread of process {pids} polls: none is pinned to one CPU or was on a CPU all the \
             time; list the CPUs, as in 2-5,8"
        )));
    }
    Ok(cpus)
}
