//! Parts of the past that are handed to the writer.

use capture::Meta;
use capture_recorder::facts;
use scene::BootNanos;
use spdk_trace::Ticks;
use sys::clock::boot_nanos;

use super::{MAX_DELAY_NANOS, WatchSession};
use crate::kernel::KernelHistory;
use crate::sample::{Sample, Sampling};
use crate::window::{MissedRequests, Window};
use crate::writing::{Job, utc_text};

/// Maximum time for which the recorder holds events back, in nanoseconds.
const MAX_HOLD_NANOS: u64 = 60_000_000;

impl WatchSession {
    /// Hands the times around slow requests to the writer when all of them have come, or at the
    /// end.
    pub(super) fn write_if_due(&mut self, is_end: bool) {
        let until = if is_end {
            Some(BootNanos(u64::MAX))
        } else {
            let clock = self.trace.clock();
            clock.map(|clock| self.trace.given_until(&clock))
        };
        if let Some(until) = until {
            self.gate.advance(until, self.writer.waiting());
        }
        while self
            .gate
            .ready()
            .is_some_and(|it| is_end || self.has_come(it))
        {
            let Some((window, missed)) = self.gate.take() else {
                break;
            };
            let held = self.held.take_if(|held| held.window == window);
            let job = held.unwrap_or_else(|| self.cut(window));
            self.writer.hand_over(Job { missed, ..job });
        }
        self.hold_candidate();
    }

    /// Returns true if records or events of an incident are still to come.
    pub(super) fn is_waiting(&self) -> bool {
        let candidate = self.gate.candidate();
        self.gate.ready().is_some()
            || candidate.is_some_and(|window| !self.is_held(window))
            || !self.pending.is_empty()
    }

    /// Cuts the candidate's part out of the past, which would be gone when its capture is due.
    fn hold_candidate(&mut self) {
        match self.gate.candidate() {
            Some(candidate) if !self.is_held(candidate) && self.has_come(candidate) => {
                let window = candidate.clone();
                self.held = Some(self.cut(window));
            }
            None if self.gate.ready().is_none() => self.held = None,
            _ => (),
        }
    }

    /// Returns true if the window's part of the past is held.
    pub(super) fn is_held(&self, window: &Window) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| held.window == *window)
    }

    /// Returns true if all records and events of a window have come.
    fn has_come(&self, window: &Window) -> bool {
        boot_nanos() >= window.until.0.saturating_add(MAX_DELAY_NANOS)
            && self.trace.copied_until() > window.until
    }

    /// Cuts a window out of the past.
    fn cut(&mut self, window: Window) -> Job {
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
            recorder_threads: facts::own_threads(),
            ..self.meta.clone()
        };
        meta.captured.objects = !objects.is_empty();
        let known_until = BootNanos(boot_nanos().saturating_sub(MAX_HOLD_NANOS));
        Job {
            window,
            missed: MissedRequests::default(),
            rings,
            events: self.kernel.as_ref().map(KernelHistory::cut),
            objects,
            meta,
            kind,
            known_until,
            before: self.setting.before,
        }
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
