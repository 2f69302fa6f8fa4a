//! Results of a watch, and the notes on its way.

use observer::Observer;
use scene::BootNanos;
use sys::clock::boot_nanos;

use super::{MAX_DELAY_NANOS, WatchSession};
use crate::writing::JobResult;

/// Results of a watch.
#[derive(Debug, Default)]
pub struct Totals {
    /// Reason for the end.
    pub why: String,
    /// Records that were read.
    pub records: u64,
    /// Slots that were overwritten before they were read.
    pub slots_lost: u64,
    /// Events of the kernel.
    pub events: u64,
    /// Events of the kernel that were lost.
    pub events_lost: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Requests that were slow.
    pub slow: u64,
    /// Number of times in which threads that write rings were away, and nanoseconds of them.
    pub away: (u64, u64),
    /// Captures that were written.
    pub captures: u64,
    /// Slow requests without a capture.
    pub without: u64,
    /// Requests that look slow across lost slots.
    pub unsure: u64,
    /// The last reason for which a capture could not be written.
    pub failed: Option<anyhow::Error>,
    /// Error by which it was noticed that nobody reads the lines any more.
    pub unheard: Option<anyhow::Error>,
}

/// Notes that were made already, so that each is made once.
#[derive(Default)]
pub(super) struct ReportedNotes {
    pub(super) slots_lost: u64,
    is_short: bool,
    has_few_events: bool,
    has_failed: bool,
}

impl WatchSession {
    /// Counts the writer's results, and makes each note once.
    pub(super) fn report(&mut self, totals: &mut Totals, said: &mut ReportedNotes) {
        while let Some(done) = self.writer.done() {
            totals.count(done, said, &self.observer);
        }
        if said.slots_lost == 0 && self.trace.lost > 0 {
            said.slots_lost = self.trace.lost;
            self.observer.note(
                "slots of the trace were overwritten before they were read: requests may be missed (the end says how many)",
            );
        }
        let (now, started, before) = (
            boot_nanos(),
            self.meta.begin.boot_nanos,
            self.setting.before,
        );
        let is_short = |since: BootNanos| {
            since.0 > started && now.saturating_sub(since.0) < before + MAX_DELAY_NANOS
        };
        if !said.is_short && is_short(self.trace.past.since()) {
            said.is_short = true;
            self.observer.note(
                "there is more of the trace than is kept: captures have less of what came before than --before asks for",
            );
        }
        if !said.has_few_events
            && self
                .kernel
                .as_ref()
                .is_some_and(|kernel| is_short(kernel.since()))
        {
            said.has_few_events = true;
            self.observer.note(
                "there are more of the kernel's events than are kept: captures may not show what delayed requests that began \
                 before these",
            );
        }
    }
}

impl Totals {
    pub(super) fn count(&mut self, done: JobResult, said: &mut ReportedNotes, observer: &Observer) {
        self.captures += u64::from(done.is_written);
        self.unheard = self.unheard.take().or(done.unheard);
        if let Some(error) = done.failed {
            if !std::mem::replace(&mut said.has_failed, true) {
                observer.note(&format!(
                    "a capture could not be written: {error:#}; the watch goes on"
                ));
            }
            self.failed = Some(error);
        }
    }
}
