//! The audit of CPUs as windows that follow one another, for `top` and `serve`: each window is read when it is over.

mod names;
mod pollers;

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use cpu_audit::{Audit, CpuReport, Facts, Intruder, Options, StuckThread};
use host::busy::{self, BusyThread};
use sys::clock::monotonic_nanos;

use names::FewNames;
pub(crate) use pollers::Pollers;

/// A thread that waits longer may have been woken without an event: `/proc` says whether it waits.
const LONG: u64 = 1_000_000_000;
/// How long the kernel may take to let go of the programs.
const DETACH: Duration = Duration::from_secs(3);
/// Waits below this are usual (`dptrace cpus` lists none of them either).
pub(crate) const USUAL: u64 = 1_000_000;

/// The programs, attached.
pub(crate) struct Windows {
    audit: Audit,
    names: FewNames,
}

impl Windows {
    /// Attaches them, and begins the windows of these CPUs. The calling thread should not run there.
    pub(crate) fn begin(cpus: Vec<u32>) -> anyhow::Result<Self> {
        let audit = Audit::start(&Facts::read()?, &Options { cpus, each: None })?;
        let windows = Self { audit, names: FewNames::default() };
        windows.add_stuck(windows.audit.cpus())?;
        Ok(windows)
    }

    /// Has these CPUs audited from now on, and no others.
    pub(crate) fn choose(&mut self, cpus: &BTreeSet<u32>) -> anyhow::Result<()> {
        let now: BTreeSet<u32> = self.audit.cpus().iter().copied().collect();
        for &gone in now.difference(cpus) {
            self.audit.remove_cpu(gone)?;
        }
        let mut new = Vec::new();
        for &cpu in cpus.difference(&now) {
            // One that can't be audited is tried again with the next choice.
            if self.audit.add_cpu(cpu).is_ok() {
                new.push(cpu);
            }
        }
        if new.is_empty() { Ok(()) } else { self.add_stuck(&new) }
    }

    /// What came of the windows since the last time. A CPU's poller is one of `threads`.
    pub(crate) fn turn(&mut self, threads: &BTreeSet<u32>) -> anyhow::Result<Vec<CpuReport>> {
        let mut sums = self.audit.turn()?;
        let now = monotonic_nanos();
        let mut gone = Vec::new();
        sums.waiting.retain(|(tid, waits)| {
            let waits = now.saturating_sub(waits.since) < LONG || busy::is_busy(*tid);
            gone.extend((!waits).then_some(*tid));
            waits
        });
        gone.into_iter().try_for_each(|tid| self.audit.forget(tid))?;
        self.names.begin_window();
        let reports = cpu_audit::report(&sums, Some(threads), &self.names);
        Ok(if self.names.learn() { cpu_audit::report(&sums, Some(threads), &self.names) } else { reports })
    }

    /// Detaches them; whether the kernel has let go of all of them in time.
    pub(crate) fn end(self) -> bool {
        self.audit.close(DETACH)
    }

    /// Threads that could run on these CPUs, and did not when their windows began.
    fn add_stuck(&self, cpus: &[u32]) -> anyhow::Result<()> {
        let runs: HashSet<u64> = self.audit.states()?.into_iter().map(|(_, state)| state.levels[0].id).collect();
        let is_stuck = |thread: &BusyThread| cpus.contains(&thread.cpu) && !runs.contains(&thread.tid.into());
        let stuck = busy::busy_threads(None).into_iter().filter(is_stuck);
        let stuck: Vec<StuckThread> =
            stuck.map(|BusyThread { pid, tid, name, cpu, .. }| StuckThread { tid, pid, cpu, name }).collect();
        Ok(self.audit.add_stuck(&stuck)?)
    }
}

/// Whether it is a thread of this process.
pub(crate) fn is_of(who: &Intruder, pid: u32) -> bool {
    who.thread.as_ref().is_some_and(|thread| thread.process.0 == pid)
}
