//! What runs on the CPUs, and what waits for them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ::text::printable;
use cpu_audit::layout::Episode;
use cpu_audit::{Audit, Facts, Names, Options, StuckThread, Sums, ThreadFacts};
use errors::usage;
use host::KernelSymbols;
use host::busy::{self, BusyThread};
use kernel_text::cpus::CpuSet;
use screen::Screen;
use sys::clock::monotonic_nanos;

use super::subject::Subject;
use super::{CpusArgs, json, text};
use crate::interrupt::Interrupt;
use crate::messages::note;
use crate::output::Output;

/// How often the audit looks what waits, and whether to end.
const LOOK: Duration = Duration::from_millis(100);
/// What waits longer is reported while the command runs.
const LONG: u64 = 1_000_000_000;
/// How long threads are watched to find pollers.
const WATCHED: Duration = Duration::from_millis(100);
/// How long the kernel may take to let go of the programs.
const DETACH: Duration = Duration::from_secs(3);
/// The most single ones that are kept: 7 MiB of them.
pub(super) const MOST_EACH: usize = 100_000;

/// What an audit has found.
pub(super) struct Found {
    pub(super) cpus: Vec<cpu_audit::CpuReport>,
    /// Nanoseconds that a hypervisor had of each CPU, in steps of ten milliseconds.
    pub(super) stolen: HashMap<u32, u64>,
    /// Single ones, in the order of time.
    pub(super) each: Singles,
    pub(super) sums: Sums,
    pub(super) names: KernelNames,
    /// What this kernel can't show.
    pub(super) missing: Vec<&'static str>,
}

/// Single ones: the first that came, up to [`MOST_EACH`].
#[derive(Default)]
pub(super) struct Singles {
    /// They.
    pub(super) kept: Vec<Episode>,
    /// How many more came, by CPU.
    pub(super) left_out: HashMap<u32, u64>,
}

impl Singles {
    fn add(&mut self, more: Vec<Episode>) {
        for episode in more {
            if self.kept.len() < MOST_EACH {
                self.kept.push(episode);
            } else {
                *self.left_out.entry(episode.key.cpu).or_default() += 1;
            }
        }
    }
}

/// Audits the CPUs for the time that was asked for, and prints what came of it.
pub(super) fn run(subject: &Subject, args: &CpusArgs) -> anyhow::Result<()> {
    let pollers = subject.cpus.is_none().then(|| pollers(&subject.pids));
    let cpus: Vec<u32> = match (&subject.cpus, &pollers) {
        (Some(cpus), _) => cpus.iter().collect(),
        (None, found) => cpus_of(found.as_deref().unwrap_or_default(), subject)?,
    };
    let threads = subject.threads();
    keep_off(&cpus);
    let names = KernelNames::default();
    let facts = Facts::read()?;
    let interrupt = Interrupt::catch()?;
    let mut audit = Audit::start(&facts, &Options { cpus: cpus.clone(), each: args.each })?;
    names.read_meanwhile();
    let before = busy::stolen();
    audit.add_stuck(&stuck(&audit, &cpus)?)?;
    let mut each = watch(&audit, args.duration, interrupt, &names)?;
    let mut sums = audit.stop()?;
    each.add(audit.rest_of_each()?);
    each.kept.sort_by_key(|episode| episode.began);
    sums.waiting.retain(|(tid, waits)| monotonic_nanos().saturating_sub(waits.since) < LONG || busy::is_busy(*tid));
    let after = busy::stolen();
    let stolen = |cpu: u32| (cpu, after.get(&cpu).unwrap_or(&0).saturating_sub(*before.get(&cpu).unwrap_or(&0)));
    let found = Found {
        cpus: cpu_audit::report(&sums, threads.as_ref(), &names),
        stolen: cpus.iter().map(|&cpu| stolen(cpu)).map(|(cpu, ticks)| (cpu, ticks * 10_000_000)).collect(),
        each,
        sums,
        names,
        missing: facts.missing().into_iter().map(|(_, what)| what).collect(),
    };
    print(&found, args)?;
    if !audit.close(DETACH) {
        note("the kernel does not let go of the programs yet (a CPU may be starved); they end with this process");
    }
    Ok(())
}

fn print(found: &Found, args: &CpusArgs) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    let printed = if args.json { json::lines(found) } else { text::report(found, args.summary, &Screen::stdout()) };
    write!(output.buffer, "{printed}")?;
    output.flush()?;
    for missing in &found.missing {
        note(&format!("this kernel does not show {missing}"));
    }
    if found.names.is_blind() {
        note(
            "functions of the kernel have no names: /proc/kallsyms hides them; root sees them, or with kernel.kptr_restrict=0",
        );
    }
    Ok(())
}

/// The CPUs of the pollers.
fn cpus_of(pollers: &[BusyThread], subject: &Subject) -> anyhow::Result<Vec<u32>> {
    let mut cpus: BTreeSet<u32> = pollers.iter().map(|poller| poller.cpu).collect();
    cpus.extend(subject.pinned());
    if cpus.is_empty() {
        return Err(usage("no thread is on its CPU all the time: list the CPUs, as in 2-5,8"));
    }
    for BusyThread { tid, cpu, name, .. } in pollers {
        note(&format!("CPU {cpu}: {} [{tid}] is on it all the time", printable::text(name)));
    }
    Ok(cpus.into_iter().collect())
}

/// Threads that are on one CPU all the time: of these processes, or of all.
fn pollers(pids: &[u32]) -> Vec<BusyThread> {
    let pids = if pids.is_empty() { None } else { Some(pids) };
    let (from, first) = (Instant::now(), busy::busy_threads(pids));
    std::thread::sleep(WATCHED);
    let first: HashMap<u32, BusyThread> = first.into_iter().map(|thread| (thread.tid, thread)).collect();
    let mut second = busy::busy_threads(pids);
    let nanos = u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // The kernel adds a thread's time at the tick: what is missing of it, too, may be a tick's length each time.
    second.retain(|thread| {
        let same = first.get(&thread.tid).filter(|before| before.cpu == thread.cpu);
        same.is_some_and(|before| thread.ran.saturating_sub(before.ran) >= nanos / 10 * 8)
    });
    second
}

/// Keeps this thread, and those that it starts, off the CPUs.
fn keep_off(cpus: &[u32]) {
    let Ok(ours) = sys::sched::allowed_cpus() else { return };
    let others: Vec<usize> =
        ours.into_iter().filter(|&cpu| !cpus.iter().any(|&audited| audited as usize == cpu)).collect();
    let set: CpuSet = cpus.iter().copied().collect();
    if others.is_empty() || sys::sched::run_on(&others).is_err() {
        note(&format!(
            "dptrace itself may run on CPU {set}, since there is no other: it is one of those that are listed"
        ));
    }
}

/// Threads that could run when the audit began, and did not.
fn stuck(audit: &Audit, cpus: &[u32]) -> anyhow::Result<Vec<StuckThread>> {
    let runs: HashSet<u64> = audit.states()?.into_iter().map(|(_, state)| state.levels[0].id).collect();
    let is_stuck = |thread: &BusyThread| cpus.contains(&thread.cpu) && !runs.contains(&thread.tid.into());
    let stuck = busy::busy_threads(None).into_iter().filter(is_stuck);
    Ok(stuck.map(|BusyThread { pid, tid, name, cpu, .. }| StuckThread { tid, pid, cpu, name }).collect())
}

/// Until the end: takes single ones, and reports what waits for long.
fn watch(audit: &Audit, duration: Duration, interrupt: Interrupt, names: &KernelNames) -> anyhow::Result<Singles> {
    let (end, mut reported, mut each) = (Instant::now() + duration, HashSet::new(), Singles::default());
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if interrupt.is_requested() {
            break;
        }
        each.add(audit.each(left.min(LOOK))?);
        let now = monotonic_nanos();
        for (tid, waits) in audit.waiting()? {
            let nanos = now.saturating_sub(waits.since);
            if nanos >= LONG && !busy::is_busy(tid) {
                audit.forget(tid)?;
            } else if nanos >= LONG && reported.insert((tid.into(), i128::from(waits.since))) {
                let name = waits.name.split(|&byte| byte == 0).next().unwrap_or_default();
                let (name, time) = (printable::text(name), screen::time(nanos));
                note(&format!("CPU {}: {name} [{tid}] could run and does not, for {time} now", waits.cpu));
            }
        }
        for (_, item) in audit.queued()? {
            let nanos = now.saturating_sub(item.since);
            // Many of one function may wait: the report has how many.
            if nanos >= LONG && reported.insert((item.function, item.cpu.into())) {
                let (function, time) = (names.function(item.function), screen::time(nanos));
                note(&format!("CPU {}: work {function} is queued and not begun, for {time} now", item.cpu));
            }
        }
    }
    Ok(each)
}

/// Names of this machine.
#[derive(Default)]
pub(super) struct KernelNames {
    symbols: Arc<OnceLock<KernelSymbols>>,
}

impl KernelNames {
    /// Reads them in a thread of their own: on a slow machine it takes seconds, in which what waits is to be seen.
    fn read_meanwhile(&self) {
        let symbols = Arc::clone(&self.symbols);
        let read = move || _ = symbols.get_or_init(|| KernelSymbols::read().unwrap_or_default());
        // Without a thread, whoever needs a name reads them.
        let _ = std::thread::Builder::new().name("symbols".into()).spawn(read);
    }

    fn symbols(&self) -> &KernelSymbols {
        self.symbols.get_or_init(|| KernelSymbols::read().unwrap_or_default())
    }

    /// Whether names were wanted, and there are none.
    fn is_blind(&self) -> bool {
        self.symbols.get().is_some_and(|symbols| symbols.address("schedule").is_none())
    }
}

impl Names for KernelNames {
    fn function(&self, address: u64) -> String {
        match self.symbols().code_at(address) {
            Some((name, _, Some(module))) => format!("{name} [{module}]"),
            Some((name, _, None)) => name.to_owned(),
            None => format!("{address:#x}"),
        }
    }

    fn affinity(&self, interrupt: u64) -> Option<String> {
        busy::interrupt_affinity(interrupt)
    }

    fn thread(&self, tid: u32) -> Option<ThreadFacts> {
        thread_facts(tid)
    }
}

/// What is known of a thread; nothing of one that is gone.
pub(crate) fn thread_facts(tid: u32) -> Option<ThreadFacts> {
    let busy::Scheduling { process: (pid, name), policy, priority, nice, cgroup, affinity } = busy::scheduling(tid)?;
    let policy = match policy {
        1 => format!("SCHED_FIFO {priority}"),
        2 => format!("SCHED_RR {priority}"),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        _ => format!("nice {nice}"),
    };
    let name = String::from_utf8_lossy(&name).into_owned();
    Some(ThreadFacts { process: (pid, name), policy, cgroup, affinity })
}

#[cfg(test)]
mod tests {
    use cpu_audit::layout::Key;

    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted_by_cpu() {
        let of =
            |cpu: u32, count: usize| vec![Episode { key: Key { cpu, ..Key::default() }, ..Episode::default() }; count];
        let mut singles = Singles::default();
        singles.add(of(0, MOST_EACH - 1));
        assert!(singles.left_out.is_empty());
        singles.add([of(1, 3), of(0, 1)].concat());
        assert_eq!((singles.kept.len(), singles.left_out), (MOST_EACH, [(1, 2), (0, 1)].into()));
    }
}
