//! Time of a process's threads, from the programs of `kernel-delay`: one window that does not end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kernel_delay::live::{self, AttachOptions, Facts, LossCounts, Tracer};
use kernel_delay::programs::Absences;
use kernel_delay::{Advance, ThreadAccounts, check_namespace};
use observer::Observer;
use scene::MIN_AWAY;
use timeline::source::calls_of_pollers;

use super::LOST;

/// Limit on the threads of a process.
const THREADS: u32 = 1024;

/// Accounts of one process.
pub(crate) struct Meter {
    tracer: Tracer,
    running: ThreadAccounts,
    advanced: Instant,
    lost: LossCounts,
}

/// Facts of this kernel that the programs need: read once, since that takes a while.
#[derive(Default)]
pub(crate) struct Kernel(Mutex<Option<Facts>>);

impl Kernel {
    /// Loads and attaches the programs for one process.
    pub(crate) fn attach(&self, pid: u32, observer: &Observer) -> anyhow::Result<Meter> {
        check_namespace()?;
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = match &mut *facts {
            Some(facts) => facts,
            none => none.insert(Facts::read(&[])?),
        };
        let options = AttachOptions {
            pids: vec![pid],
            children: false,
            max_threads: THREADS,
            events: None,
            triggers: Vec::new(),
            count_upcalls: false,
            // They would cost every program on the machine time, for as long as this runs.
            page_faults: false,
            absences: Some(Absences {
                at_least: MIN_AWAY as u32,
                calls: calls_of_pollers(),
            }),
            observer: observer.clone(),
        };
        let mut tracer = live::attach(facts, options)?.tracer;
        let running = tracer.begin()?;
        Ok(Meter {
            tracer,
            running,
            advanced: Instant::now(),
            lost: LossCounts::default(),
        })
    }
}

impl Meter {
    /// Returns the time of threads since the last call, and the losses meanwhile by their place in
    /// [`LOST`]. `None` if the last call was less than `at_least` ago.
    pub(crate) fn advance(
        &mut self,
        at_least: Duration,
    ) -> anyhow::Result<Option<(Vec<Advance>, [u64; LOST.len()])>> {
        if self.advanced.elapsed() < at_least {
            return Ok(None);
        }
        let advances = self.tracer.advance(&mut self.running)?;
        self.advanced = Instant::now();
        let lost = self.tracer.lost()?;
        let was = std::mem::replace(&mut self.lost, lost);
        let threads = lost.threads.saturating_sub(was.threads);
        let preemptors = lost.preemptors.saturating_sub(was.preemptors);
        let interrupts = lost.interrupts.saturating_sub(was.interrupts);
        let programs = lost.skipped.saturating_sub(was.skipped);
        Ok(Some((
            advances,
            [0, 0, threads, preemptors, interrupts, programs],
        )))
    }
}
