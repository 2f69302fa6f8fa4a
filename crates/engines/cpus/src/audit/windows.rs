//! The audit of CPUs as windows that follow one another, for `top` and `serve`: each window is read
//! when it is over.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use host::busy::{self, BusyThread};
use sys::clock::monotonic_nanos;

use super::few_names::NameCache;
use super::{Audit, CpuReport, Facts, Intruder, Options, StuckThread, report};

/// Wait in nanoseconds from which `/proc` decides whether a thread still waits: it may have been
/// woken without an event.
pub(super) const LONG_WAIT_NANOS: u64 = 1_000_000_000;
/// Limit on the time that the kernel takes to release the programs.
pub(super) const DETACH: Duration = Duration::from_secs(3);
/// Shortest wait to list, in nanoseconds; shorter ones are usual, and only counted.
pub const MIN_LISTED_WAIT_NANOS: u64 = 1_000_000;

/// The attached programs, with a cache of names.
pub struct Windows {
    audit: Audit,
    names: NameCache,
}

impl Windows {
    /// Attaches the programs, and begins the windows of these CPUs. The calling thread should not
    /// run there.
    pub fn begin(cpus: Vec<u32>) -> anyhow::Result<Self> {
        let audit = Audit::start(&Facts::read()?, &Options { cpus, each: None })?;
        let windows = Self {
            audit,
            names: NameCache::default(),
        };
        windows.add_stuck(windows.audit.cpus())?;
        Ok(windows)
    }

    /// Audits exactly these CPUs from now on.
    pub fn choose(&mut self, cpus: &BTreeSet<u32>) -> anyhow::Result<()> {
        let now: BTreeSet<u32> = self.audit.cpus().iter().copied().collect();
        for &gone in now.difference(cpus) {
            self.audit.remove_cpu(gone)?;
        }
        let mut new = Vec::new();
        for &cpu in cpus.difference(&now) {
            // A CPU that can't be audited is tried again with the next choice.
            if self.audit.add_cpu(cpu).is_ok() {
                new.push(cpu);
            }
        }
        if new.is_empty() {
            Ok(())
        } else {
            self.add_stuck(&new)
        }
    }

    /// Returns the reports of the windows since the last turn. A CPU's poller is one of `threads`.
    pub fn turn(&mut self, threads: &BTreeSet<u32>) -> anyhow::Result<Vec<CpuReport>> {
        let mut sums = self.audit.turn()?;
        let now = monotonic_nanos();
        let mut gone = Vec::new();
        sums.waiting.retain(|(tid, waits)| {
            let waits = now.saturating_sub(waits.since) < LONG_WAIT_NANOS || busy::is_busy(*tid);
            gone.extend((!waits).then_some(*tid));
            waits
        });
        gone.into_iter()
            .try_for_each(|tid| self.audit.forget(tid))?;
        self.names.begin_window();
        let reports = report(&sums, Some(threads), &self.names);
        Ok(if self.names.learn() {
            report(&sums, Some(threads), &self.names)
        } else {
            reports
        })
    }

    /// Detaches the programs; returns whether the kernel released all of them in time.
    pub fn end(self) -> bool {
        self.audit.close(DETACH)
    }

    /// Adds the threads that could run on these CPUs and did not when their windows began.
    fn add_stuck(&self, cpus: &[u32]) -> anyhow::Result<()> {
        Ok(self.audit.add_stuck(&stuck(&self.audit, cpus)?)?)
    }
}

/// Returns the threads that could run on these CPUs and did not when their audit began.
pub(super) fn stuck(audit: &Audit, cpus: &[u32]) -> anyhow::Result<Vec<StuckThread>> {
    let runs: HashSet<u64> = audit
        .states()?
        .into_iter()
        .map(|(_, state)| state.levels[0].id)
        .collect();
    let is_stuck =
        |thread: &BusyThread| cpus.contains(&thread.cpu) && !runs.contains(&thread.tid.into());
    let stuck = busy::busy_threads(None).into_iter().filter(is_stuck);
    Ok(stuck
        .map(
            |BusyThread {
                 pid,
                 tid,
                 name,
                 cpu,
                 ..
             }| StuckThread {
                tid,
                pid,
                cpu,
                name,
            },
        )
        .collect())
}

/// Returns true if it is a thread of this process.
pub fn is_of(who: &Intruder, pid: u32) -> bool {
    who.thread
        .as_ref()
        .is_some_and(|thread| thread.process.0 == pid)
}
