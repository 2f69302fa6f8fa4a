//! Audit of the CPUs of all pollers of the followed processes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cpus::audit::{CpuReport, Intruder, Pollers, Windows, is_of};
use host::{HostError, Pid, Process};
use observer::Observer;
use text::printable;

use super::intrusions::IntruderKey;
use super::store::Shared;

/// Time between two looks for CPUs that have pollers.
const POLLER_SCAN_INTERVAL: Duration = Duration::from_secs(10);

/// Audit, if there are pollers.
pub(crate) struct Auditor {
    shared: Arc<Shared>,
    /// Limit on the audited CPUs.
    most: usize,
    state: Mutex<State>,
    /// True while a thread attaches the programs.
    begins: AtomicBool,
}

#[derive(Default)]
struct State {
    windows: Option<Windows>,
    pollers: Option<Pollers>,
    looked: Option<Instant>,
    turned: Option<Instant>,
    pids: Vec<u32>,
    /// True if the audit failed, which was reported, or was stopped.
    has_failed: bool,
    is_full: bool,
}

impl Auditor {
    /// Creates an audit. Nothing is attached until a process has pollers.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let most = shared.lock().limits.cpus;
        Self {
            shared,
            most,
            state: Mutex::default(),
            begins: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the followed processes, and looks for their pollers now and then.
    pub(crate) fn update(self: &Arc<Self>, pids: Vec<u32>) {
        let mut state = self.lock();
        if self.most == 0 || state.has_failed || self.begins.load(Ordering::Acquire) {
            return;
        }
        let is_due = state
            .looked
            .is_none_or(|looked| looked.elapsed() >= POLLER_SCAN_INTERVAL);
        if state.pids != pids {
            // They are watched for a while before they are looked at.
            state.pollers = Some(Pollers::watch(&pids));
            state.pids = pids;
            state.looked = None;
            if state.pids.is_empty() {
                end(&mut state, &self.shared.observer);
            }
            return;
        }
        let State {
            pollers: Some(pollers),
            pids,
            ..
        } = &mut *state
        else {
            return;
        };
        if !is_due || pids.is_empty() {
            return;
        }
        let found = pollers.cpus(pids);
        state.looked = Some(Instant::now());
        if found.len() > self.most && !std::mem::replace(&mut state.is_full, true) {
            self.shared.observer.note(&format!(
                "{} CPUs have pollers: {} of them {} audited (--cpus)",
                found.len(),
                self.most,
                screen::plural(self.most as u64, "is", "are")
            ));
        }
        let cpus: BTreeSet<u32> = found.into_iter().take(self.most).collect();
        if cpus.is_empty() {
            end(&mut state, &self.shared.observer);
        } else if let Some(windows) = &mut state.windows {
            let chosen = windows.choose(&cpus);
            settle(&mut state, chosen, &self.shared.observer);
        } else {
            drop(state);
            self.begin(cpus);
        }
    }

    /// Attaches the programs, on a thread of its own, since that takes a while.
    fn begin(self: &Arc<Self>, cpus: BTreeSet<u32>) {
        self.begins.store(true, Ordering::Release);
        let this = Arc::clone(self);
        super::targets::spawn("audit", &self.shared.observer, move || {
            let begun = Windows::begin(cpus.into_iter().collect());
            let mut state = this.lock();
            state.turned = Some(Instant::now());
            let begun = begun.map(|windows| state.windows = Some(windows));
            settle(&mut state, begun, &this.shared.observer);
            this.begins.store(false, Ordering::Release);
        });
    }

    /// Counts the time taken since the last call, if that is at least `at_least` ago.
    pub(crate) fn advance(&self, at_least: Duration) {
        let mut state = self.lock();
        if state
            .turned
            .is_some_and(|turned| turned.elapsed() < at_least)
        {
            return;
        }
        let State {
            windows: Some(windows),
            pids,
            ..
        } = &mut *state
        else {
            return;
        };
        let turned = windows.turn(&BTreeSet::new()).map(|reports| {
            let mut store = self.shared.lock();
            for report in reports {
                store
                    .intrusions
                    .add(report.cpu, taken(&report, pids), report.unnamed);
            }
        });
        state.turned = Some(Instant::now());
        match turned {
            // A CPU may be gone: the next look finds those that are there.
            Err(error) if state.windows.is_some() && is_unreachable(&error) => {
                end(&mut state, &self.shared.observer);
            }
            result => settle(&mut state, result, &self.shared.observer),
        }
    }

    /// Detaches the programs, for good.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.has_failed = true;
        end(&mut state, &self.shared.observer);
    }
}

/// Ends the audit with a message if the result is an error.
fn settle(state: &mut State, result: anyhow::Result<()>, observer: &Observer) {
    if let Err(error) = result {
        observer.note(&format!(
            "the CPUs of pollers are not audited: {}",
            observer.explain(&error)
        ));
        state.has_failed = true;
        end(state, observer);
    }
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(cpus::audit::SchedError::Unreachable { .. })
    )
}

fn end(state: &mut State, observer: &Observer) {
    if let Some(windows) = state.windows.take()
        && !windows.end()
    {
        observer.note(
            "the kernel has not released the audit's programs yet (a CPU may be starved); they end \
             with this process",
        );
    }
}

/// Returns the intruders on a CPU with the time that each took, except the threads of these
/// processes.
fn taken(report: &CpuReport, pids: &[u32]) -> Vec<(IntruderKey, u64)> {
    let is_own = |who: &Intruder| who.tid.is_some() && pids.iter().any(|&pid| is_of(who, pid));
    let others = report
        .intruders
        .iter()
        .chain(&report.poller)
        .filter(|who| !is_own(who));
    others
        .map(|who| ((who.kind, name(who)), who.total))
        .collect()
}

/// Returns the name without the part that is unique to each process or kernel thread: `kworker/1:0
/// [77]` is `kworker`.
fn name(who: &Intruder) -> String {
    let printable = |name: &str| printable::text(name.as_bytes()).into_owned();
    let Some(tid) = who.tid else {
        return printable(&who.name);
    };
    let name = who
        .name
        .strip_suffix(&format!(" [{tid}]"))
        .unwrap_or(&who.name);
    let is_kernels = name.contains(['/', ':'])
        && matches!(Process::open(Pid(tid)), Err(HostError::KernelThread { .. }));
    printable(if is_kernels {
        name.split(['/', ':']).next().unwrap_or(name)
    } else {
        name
    })
}
