//! One audit: intruders on the CPUs, and victims that wait for them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use ::text::printable;
use errors::usage;
use host::busy::{self, BusyThread};
use observer::Observer;
use ordering::Order as _;
use screen::Screen;
use sys::clock::monotonic_nanos;

use super::layout::Episode;
use super::names::KernelNames;
use super::pollers::pollers;
use super::windows::{DETACH, LONG_WAIT_NANOS, stuck};
use super::{Audit, CpuReport, Facts, Intruder, Names as _, Options, Sums, json, report, text};
use crate::Subject;

/// Interval between two checks of the waits, and of whether to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Limit on kept individual intrusions: 7 MiB of them.
pub(super) const MAX_INTRUSIONS: usize = 100_000;

/// Audit that has not begun: its CPUs are known, and the calling thread is off them if possible.
pub struct Plan {
    cpus: Vec<u32>,
    /// Threads of the processes that were named, if any.
    threads: Option<BTreeSet<u32>>,
    facts: Facts,
    /// Pollers by which the CPUs were chosen, if none was named.
    chosen_by: Vec<BusyThread>,
    /// True if there is no other CPU for dptrace itself.
    has_no_room: bool,
}

/// Audit that is running.
pub struct RunningAudit {
    plan: Plan,
    names: KernelNames,
    stolen: HashMap<u32, u64>,
    audit: Audit,
}

/// Results of an audit.
pub struct AuditResult {
    pub(super) cpus: Vec<CpuReport>,
    /// Nanoseconds that a hypervisor took of each CPU, in steps of ten milliseconds.
    pub(super) stolen: HashMap<u32, u64>,
    /// Individual intrusions, in the order of time.
    pub(super) each: IntrusionLog,
    pub(super) sums: Sums,
    pub(super) names: KernelNames,
    /// Threads of the processes that were named, if any.
    pub(super) threads: Option<BTreeSet<u32>>,
    /// Facts that this kernel does not show.
    pub(super) missing: Vec<&'static str>,
    chosen_by: Vec<BusyThread>,
    has_no_room: bool,
    /// The programs, attached until [`AuditResult::end`].
    audit: Audit,
}

/// Individual intrusions: the first ones, up to [`MAX_INTRUSIONS`].
#[derive(Default)]
pub(super) struct IntrusionLog {
    /// Kept intrusions.
    pub(super) kept: Vec<Episode>,
    /// Number of further intrusions, by CPU.
    pub(super) left_out: HashMap<u32, u64>,
}

impl IntrusionLog {
    fn add(&mut self, more: Vec<Episode>) {
        for episode in more {
            if self.kept.len() < MAX_INTRUSIONS {
                self.kept.push(episode);
            } else {
                *self.left_out.entry(episode.key.cpu).or_default() += 1;
            }
        }
    }
}

impl Plan {
    /// Finds the CPUs of the subject, or of the pollers of its processes or of all; keeps the
    /// calling thread off them; and reads the facts of this kernel that the programs need.
    pub fn make(subject: &Subject) -> anyhow::Result<Self> {
        let (cpus, chosen_by) = if let Some(cpus) = &subject.cpus {
            (cpus.iter().collect(), Vec::new())
        } else {
            let pollers = pollers(&subject.pids);
            (cpus_of(&pollers, subject)?, pollers)
        };
        Ok(Self {
            has_no_room: !keep_off(&cpus),
            cpus,
            threads: subject.threads(),
            facts: Facts::read()?,
            chosen_by,
        })
    }

    /// Begins to audit the CPUs; sends individual intrusions of at least `each` nanoseconds.
    pub fn start(self, each: Option<u64>) -> anyhow::Result<RunningAudit> {
        let options = Options {
            cpus: self.cpus.clone(),
            each,
        };
        let audit = Audit::start(&self.facts, &options)?;
        let names = KernelNames::default();
        names.read_meanwhile();
        let stolen = busy::stolen();
        audit.add_stuck(&stuck(&audit, &self.cpus)?)?;
        Ok(RunningAudit {
            plan: self,
            names,
            stolen,
            audit,
        })
    }
}

impl RunningAudit {
    /// Audits the CPUs for this time, or until a stop is requested.
    pub fn run(self, duration: Duration, observer: &Observer) -> anyhow::Result<AuditResult> {
        let Self {
            plan,
            names,
            stolen: before,
            mut audit,
        } = self;
        let mut each = watch(&audit, duration, &names, observer)?;
        let mut sums = audit.stop()?;
        each.add(audit.rest_of_each()?);
        each.kept.order_by_key(|episode| episode.began);
        sums.waiting.retain(|(tid, waits)| {
            monotonic_nanos().saturating_sub(waits.since) < LONG_WAIT_NANOS || busy::is_busy(*tid)
        });
        let after = busy::stolen();
        let stolen = |cpu: u32| {
            let [before, after] = [&before, &after].map(|at| at.get(&cpu).copied().unwrap_or(0));
            after.saturating_sub(before) * 10_000_000
        };
        let missing = plan.facts.missing();
        Ok(AuditResult {
            cpus: report(&sums, plan.threads.as_ref(), &names),
            stolen: plan.cpus.iter().map(|&cpu| (cpu, stolen(cpu))).collect(),
            each,
            sums,
            names,
            threads: plan.threads,
            missing: missing.into_iter().map(|(_, what)| what).collect(),
            chosen_by: plan.chosen_by,
            has_no_room: plan.has_no_room,
            audit,
        })
    }
}

impl AuditResult {
    /// Returns the report as text for this screen; `summary` gives one line for each CPU.
    pub fn text(&self, summary: bool, screen: Screen) -> String {
        text::report(self, summary, screen)
    }

    /// Returns the report as JSON, one object on each line.
    pub fn json(&self) -> String {
        json::lines(self)
    }

    /// Returns notes on why these CPUs were audited, if the report does not show it, and on what the
    /// report lacks.
    pub fn notes(&self) -> Vec<String> {
        let chosen = |poller: &BusyThread| chosen_note(poller, &self.cpus);
        let own = self.has_no_room.then(|| own_note(&self.cpus)).flatten();
        let missing = self
            .missing
            .iter()
            .map(|missing| format!("this kernel does not show {missing}"));
        let blind = self.names.is_blind().then(|| {
            "kernel functions are shown without names: /proc/kallsyms hides their addresses; run \
             as root, or set kernel.kptr_restrict=0"
                .to_owned()
        });
        let chosen = self.chosen_by.iter().filter_map(chosen);
        chosen.chain(own).chain(missing).chain(blind).collect()
    }

    /// Detaches the programs; returns whether the kernel released all of them in time.
    pub fn end(self) -> bool {
        self.audit.close(DETACH)
    }
}

/// Returns a note on the thread by which a CPU was chosen, unless the report shows it as the CPU's
/// poller.
fn chosen_note(chosen_by: &BusyThread, reports: &[CpuReport]) -> Option<String> {
    let BusyThread { tid, cpu, name, .. } = chosen_by;
    let report = reports.iter().find(|report| report.cpu == *cpu)?;
    let is_poller = |who: &Intruder| who.tid == Some(*tid);
    (!report.poller.as_ref().is_some_and(is_poller)).then(|| {
        format!(
            "CPU {cpu} was chosen because {} [{tid}] was on it all the time just before, but not \
             for half of the time since then",
            printable::text(name)
        )
    })
}

/// Returns a note on the time that dptrace itself took of the CPUs, if it took some.
fn own_note(reports: &[CpuReport]) -> Option<String> {
    let is_own = |who: &&Intruder| {
        let facts = who.thread.as_ref();
        facts.is_some_and(|it| it.process.0 == std::process::id())
    };
    let took = |report: &CpuReport| {
        let own = report.intruders.iter().filter(is_own);
        let nanos: u64 = own.map(|who| who.total).sum();
        (nanos > 0).then(|| format!("{} of CPU {}", screen::time(nanos), report.cpu))
    };
    let took: Vec<String> = reports.iter().filter_map(took).collect();
    (!took.is_empty()).then(|| {
        format!(
            "dptrace itself took {}, because there is no other CPU for it",
            took.join(", ")
        )
    })
}

/// Returns the CPUs of the pollers and those that the subject is pinned to; an error if there are
/// none.
fn cpus_of(pollers: &[BusyThread], subject: &Subject) -> anyhow::Result<Vec<u32>> {
    let mut cpus: BTreeSet<u32> = pollers.iter().map(|poller| poller.cpu).collect();
    cpus.extend(subject.pinned());
    if cpus.is_empty() {
        return Err(usage(
            "no thread is on its CPU all the time, as pollers are: for the CPUs themselves, list them, as in dptrace cpus 2-5,8; \
             for what delays a process's threads, use dptrace kernel-delay",
        ));
    }
    Ok(cpus.into_iter().collect())
}

/// Keeps this thread, and those that it starts, off the CPUs; returns false if it can't.
fn keep_off(cpus: &[u32]) -> bool {
    let Ok(ours) = sys::sched::allowed_cpus() else {
        return true;
    };
    let others: Vec<usize> = ours
        .into_iter()
        .filter(|&cpu| !cpus.iter().any(|&audited| audited as usize == cpu))
        .collect();
    !others.is_empty() && sys::sched::run_on(&others).is_ok()
}

/// Collects individual intrusions until the end, and reports long waits.
fn watch(
    audit: &Audit,
    duration: Duration,
    names: &KernelNames,
    observer: &Observer,
) -> anyhow::Result<IntrusionLog> {
    let (end, mut reported, mut each) = (
        Instant::now() + duration,
        HashSet::new(),
        IntrusionLog::default(),
    );
    while let Some(left) = end
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        if observer.is_stop_requested() {
            break;
        }
        each.add(audit.each(left.min(POLL_INTERVAL))?);
        let now = monotonic_nanos();
        for (tid, waits) in audit.waiting()? {
            let nanos = now.saturating_sub(waits.since);
            if nanos >= LONG_WAIT_NANOS && !busy::is_busy(tid) {
                audit.forget(tid)?;
            } else if nanos >= LONG_WAIT_NANOS
                && reported.insert((tid.into(), i128::from(waits.since)))
            {
                let name = waits
                    .name
                    .split(|&byte| byte == 0)
                    .next()
                    .unwrap_or_default();
                let (name, time) = (printable::text(name), screen::time(nanos));
                observer.note(&format!(
                    "CPU {}: {name} [{tid}] is runnable, but has not run for {time}",
                    waits.cpu
                ));
            }
        }
        for (_, item) in audit.queued()? {
            let nanos = now.saturating_sub(item.since);
            // Several items of one function may wait: the report has their number.
            if nanos >= LONG_WAIT_NANOS && reported.insert((item.function, item.cpu.into())) {
                let (function, time) = (names.function(item.function), screen::time(nanos));
                observer.note(&format!(
                    "CPU {}: work {function} has been queued for {time} and has not begun",
                    item.cpu
                ));
            }
        }
    }
    Ok(each)
}

#[cfg(test)]
mod tests {
    use crate::audit::layout::Key;
    use crate::audit::summary::tests::{no_report, thread};

    use super::*;

    #[test]
    fn notes_do_not_repeat_or_contradict_the_report() {
        let chosen_by = BusyThread {
            pid: 7,
            tid: 8,
            name: b"reactor_0".to_vec(),
            cpu: 0,
            ran: 0,
        };
        let mut report = no_report();
        let note = |report: &CpuReport| chosen_note(&chosen_by, std::slice::from_ref(report));
        assert!(note(&report).is_some_and(|note| note.contains("reactor_0 [8] was on it")));
        report.poller = Some(thread(8, 7));
        assert_eq!(note(&report), None);
        assert_eq!(own_note(&[no_report()]), None);
        report.intruders = vec![Intruder {
            total: 1_500_000,
            ..thread(9, std::process::id())
        }];
        let note = own_note(&[report]).expect("it took time");
        assert!(note.contains("took 1.50 ms of CPU 0, "), "{note}");
    }

    #[test]
    fn dropped_intrusions_are_counted_by_cpu() {
        let of = |cpu: u32, count: usize| {
            vec![
                Episode {
                    key: Key {
                        cpu,
                        ..Key::default()
                    },
                    ..Episode::default()
                };
                count
            ]
        };
        let mut singles = IntrusionLog::default();
        singles.add(of(0, MAX_INTRUSIONS - 1));
        assert!(singles.left_out.is_empty());
        singles.add([of(1, 3), of(0, 1)].concat());
        assert_eq!(
            (singles.kept.len(), singles.left_out),
            (MAX_INTRUSIONS, [(1, 2), (0, 1)].into())
        );
    }
}
