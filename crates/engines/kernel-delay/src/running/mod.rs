//! Budgets without end, for as long as the programs are attached: the parts of each thread's time
//! since its last reading.
//!
//! A window's budget is cut at the window's edges. Here one window does not end, and each reading
//! closes the accounts of a thread at a time of its own: that of the reading, or that of the
//! thread's last event, if that came later. The next reading goes on from there. So there is no gap
//! between two readings, and a thread's parts add up to its wall clock, whenever it is read.

mod parts;

use std::collections::{HashMap, HashSet};

use crate::budget::{Budget, RawBudget};
use crate::by_thread::ByThread;
use crate::layout::{InterruptKey, PreemptorKey, Tally};
use crate::sample::{ProcFallback, Window, WindowSnapshot};
use crate::snapshot::Snapshot;

use parts::parts;
pub use parts::{Part, TimeState};

/// Parts of a thread's time since its last reading. They add up to the time that has passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    /// Number of the thread.
    pub tid: u32,
    /// Number of its process.
    pub pid: u32,
    /// Name of the thread.
    pub name: String,
    /// Time that has passed, in nanoseconds.
    pub nanos: u64,
    /// Parts of that time.
    pub parts: Vec<Part>,
    /// Number of counted absences, and their sum in nanoseconds: all that are over, even if they
    /// began before.
    pub absences: (u64, u64),
    /// True if the thread has ended.
    pub has_ended: bool,
}

/// Reading of a thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadReading {
    pub(crate) tid: u32,
    pub(crate) after: Snapshot,
    /// Time of the reading, before its value was read.
    pub(crate) at: u64,
    /// Data from `/proc` for the time since the last reading.
    pub(crate) fallback: ProcFallback,
    pub(crate) name: Option<String>,
}

/// Preemptors and interrupts since the last reading.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    pub(crate) preemptors: Vec<(PreemptorKey, u64)>,
    /// Process that measures; `None` if unknown.
    pub(crate) dptrace: Option<u32>,
    pub(crate) interrupts: Vec<(InterruptKey, Tally)>,
    pub(crate) hard_names: HashMap<u32, String>,
}

/// Maximum number of successive readings that may be left to the next one because they do not add
/// up.
const MAX_DEFERRED_READINGS: u32 = 3;
/// Nanoseconds that a reading may be off, in addition to a hundredth of its length.
const TOLERANCE: u64 = 50_000;

/// All threads, with the time up to which they are accounted for.
#[derive(Debug, Default)]
pub struct ThreadAccounts {
    /// Start of the window.
    start: u64,
    threads: HashMap<u32, ThreadAccount>,
}

#[derive(Debug)]
struct ThreadAccount {
    before: Snapshot,
    /// Time until which the thread is accounted for.
    until: u64,
    /// Number of successive readings that did not add up.
    failed: u32,
}

impl ThreadAccounts {
    /// Starts at this time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn new(start: u64) -> Self {
        Self {
            start,
            threads: HashMap::new(),
        }
    }

    /// Advances the threads that were read. A thread whose reading does not add up, because a
    /// program is changing its value, is left out, and gets all its time at the next reading.
    pub(crate) fn advance(&mut self, readings: Vec<ThreadReading>, causes: Causes) -> Vec<Advance> {
        let Causes {
            preemptors,
            interrupts,
            hard_names,
            dptrace,
        } = causes;
        let causes = WindowSnapshot {
            preemptors,
            interrupts,
            hard_names,
            dptrace,
            ..WindowSnapshot::default()
        };
        let causes = ByThread::from_snapshot(&causes);
        let there: HashSet<u32> = readings.iter().map(|reading| reading.tid).collect();
        let all = readings
            .into_iter()
            .filter_map(|reading| self.thread(reading, &causes))
            .collect();
        self.threads.retain(|tid, _| there.contains(tid));
        all
    }

    /// Returns whether a thread's reading adds up, so that it need not be read again.
    pub(crate) fn adds_up(&self, reading: &ThreadReading) -> bool {
        self.budget(reading).is_some_and(|found| found.adds_up())
    }

    /// Returns the record of a thread from before; `None` if another thread had its number.
    fn known(&self, tid: u32, after: &Snapshot) -> Option<&ThreadAccount> {
        self.threads
            .get(&tid)
            .filter(|known| known.before.start_time() == after.start_time())
    }

    fn budget(&self, reading: &ThreadReading) -> Option<BudgetUpdate> {
        let after = &reading.after;
        let nothing = Snapshot::default();
        let (before, from) = match self.known(reading.tid, after) {
            Some(known) => (&known.before, known.until),
            None => (&nothing, self.start.max(after.start_time())),
        };
        let until = if after.is_dead() {
            after.thread.end_time
        } else {
            reading.at.max(after.mark())
        };
        let mut raw = RawBudget::between(before, after);
        raw.close(
            after,
            &Window {
                start: self.start,
                stop: until,
                ..Window::default()
            },
        );
        raw.take_back(
            before,
            &Window {
                start: self.start,
                stop: from,
                ..Window::default()
            },
        )?;
        raw.settle(
            after,
            &reading.fallback,
            &Window {
                start: from,
                stop: until,
                ..Window::default()
            },
        );
        let nobodys = after.thread.nobody.wrapping_sub(before.thread.nobody);
        let passed = until.saturating_sub(from).saturating_sub(nobodys);
        Some(BudgetUpdate {
            budget: raw.into_budget(passed),
            until,
        })
    }

    /// Notes a reading that does not add up. Returns the time since the last one that did, as
    /// unknown, once too many have failed.
    fn unaccounted(
        &mut self,
        tid: u32,
        after: Snapshot,
        start: u64,
        at: u64,
    ) -> Option<(u64, Vec<Part>)> {
        let known = self.threads.entry(tid).or_insert(ThreadAccount {
            before: Snapshot::default(),
            until: start,
            failed: 0,
        });
        known.failed += 1;
        if known.failed <= MAX_DEFERRED_READINGS {
            return None;
        }
        let nanos = at.saturating_sub(known.until);
        *known = ThreadAccount {
            before: after,
            until: known.until + nanos,
            failed: 0,
        };
        let parts = vec![Part {
            place: TimeState::Unknown,
            by: String::new(),
            nanos,
        }];
        Some((nanos, parts))
    }

    fn thread(&mut self, reading: ThreadReading, causes: &ByThread<'_>) -> Option<Advance> {
        let found = self.budget(&reading).filter(BudgetUpdate::adds_up);
        let ThreadReading {
            tid,
            after,
            at,
            name,
            ..
        } = reading;
        let (has_ended, pid) = (after.is_dead(), after.process());
        let comm = Some(after.comm()).filter(|comm| !comm.is_empty());
        let name = name.or(comm).unwrap_or_else(|| "?".to_owned());
        let start = self.start.max(after.start_time());
        let before = self.known(tid, &after);
        let before = before
            .map(|known| (known.before.thread.absences, known.before.thread.absent))
            .unwrap_or_default();
        let absences = (
            after.thread.absences.wrapping_sub(before.0),
            after.thread.absent.wrapping_sub(before.1),
        );
        let (nanos, parts) = match found {
            Some(BudgetUpdate { budget, until }) => {
                // Excess time from an event at the very edge is taken from the time after it.
                let over = budget.sum().saturating_sub(budget.window);
                let parts = parts(tid, pid, &budget, causes);
                self.threads.insert(
                    tid,
                    ThreadAccount {
                        before: after,
                        until: until + over,
                        failed: 0,
                    },
                );
                (budget.window + over, parts)
            }
            None => self.unaccounted(tid, after, start, at)?,
        };
        Some(Advance {
            tid,
            pid,
            name,
            nanos,
            parts,
            absences,
            has_ended,
        })
    }
}

/// Budget since the last reading, and its end.
struct BudgetUpdate {
    budget: Budget,
    until: u64,
}

impl BudgetUpdate {
    fn adds_up(&self) -> bool {
        let window = self.budget.window;
        self.budget.sum().abs_diff(window) <= window / 100 + TOLERANCE
    }
}

#[cfg(test)]
mod tests;
