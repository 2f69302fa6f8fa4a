//! Parts of the past that are handed to the writer.

use capture::Meta;
use scene::BootNanos;
use spdk_trace::Ticks;
use sys::clock::boot_nanos;

use super::{MAX_DELAY_NANOS, WatchSession};
use crate::kernel::KernelHistory;
use crate::sample::{Sample, Sampling};
use crate::writing::{Job, utc_text};

/// Maximum time for which the recorder holds events back, in nanoseconds.
const MAX_HOLD_NANOS: u64 = 60_000_000;

impl WatchSession {
    /// Hands the time around slow requests to the writer when all of it has come, or at the end.
    pub(super) fn write_if_due(&mut self, is_end: bool) {
        let Some(window) = self.gate.window() else {
            return;
        };
        let now = boot_nanos();
        let has_events = now >= window.until.0.saturating_add(MAX_DELAY_NANOS);
        let has_records = self.trace.copied_until() > window.until;
        let has_all = has_events && has_records;
        if !has_all && !is_end {
            return;
        }
        let Some((window, missed)) = self.gate.take() else {
            return;
        };
        let rings = self.trace.cut(window.from, window.until);
        let first = window.subject.reason.slow().map(|slow| slow.wanted.first);
        let kind = self
            .tpoints
            .iter()
            .find(|(id, _)| Some(*id) == first)
            .map(|(_, name)| name.as_str());
        let kind = kind
            .map_or("?", |name| {
                name.rsplit_once('_').map_or(name, |(kind, _)| kind)
            })
            .to_owned();
        let oldest = self
            .trace
            .clock()
            .map_or(Ticks(0), |clock| clock.ticks(window.from));
        let begin = capture::Timestamp {
            utc: utc_text(window.from),
            boot_nanos: window.from.0,
        };
        let objects = self.known.recording(oldest);
        let mut meta = Meta {
            begin,
            ..self.meta.clone()
        };
        meta.captured.objects = !objects.is_empty();
        let events = self.kernel.as_ref().map(KernelHistory::cut);
        let (before, known_until) = (
            self.setting.before,
            BootNanos(now.saturating_sub(MAX_HOLD_NANOS)),
        );
        self.writer.hand_over(Job {
            window,
            missed,
            rings,
            events,
            objects,
            meta,
            kind,
            known_until,
            before,
        });
    }

    /// Hands a piece of the past to the writer to learn from, if it is time for that.
    pub(super) fn sample_if_due(&mut self) {
        let Some(kernel) = self
            .kernel
            .as_ref()
            .filter(|_| !self.writer.is_learning() && self.sampling.is_due())
        else {
            return;
        };
        let past = &self.trace.past;
        let until = BootNanos(boot_nanos().saturating_sub(MAX_DELAY_NANOS)).min(past.until());
        let from = Sampling::from(until, past.since(), past.bytes() as u64);
        if from >= until {
            return;
        }
        let (events, meta) = (kernel.cut(), self.meta.clone());
        self.writer.learn(Sample {
            rings: self.trace.cut(from, until),
            events,
            meta,
            from,
            until,
        });
    }
}
