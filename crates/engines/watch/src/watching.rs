//! Main loop of a watch: keeps everything that comes for a while, and looks for slow requests,
//! until there is a reason to stop.

use std::time::{Duration, Instant};

use capture::Meta;
use capture_recorder::facts;
use host::Watch;
use observer::Observer;
use records::Context;
use scene::{Absence, BootNanos, Clock, MIN_AWAY, Tid};
use spdk_trace::{Lcore, Ticks};
use sys::clock::boot_nanos;

use super::detect::{Detector, SlowRequest};
use super::kernel::KernelHistory;
use super::known::ObjectNamer;
use super::sample::{Sample, Sampling};
use super::trace::{StepOutcome, WatchedTrace};
use super::window::{Gate, Incident, Reason};
use super::writing::{Job, JobResult, Writer, utc_text};

/// Longest wait for the next batch.
const BATCH_TIMEOUT: Duration = Duration::from_millis(20);
/// Time between two looks at the process.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at its threads, and for requests that are still open.
const THREAD_SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum delay of records and events of other CPUs, in nanoseconds.
const MAX_DELAY_NANOS: u64 = 100_000_000;
/// Longest wait at the end for the rest of the captures.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(400);
/// Maximum time for which the recorder holds events back, in nanoseconds.
const MAX_HOLD_NANOS: u64 = 60_000_000;
/// Limit on the past that is kept before the oldest request of interest, in nanoseconds.
const MAX_EXTRA_PAST_NANOS: u64 = 1_000_000_000;

/// State of a watch.
pub(crate) struct WatchSession {
    pub(crate) trace: WatchedTrace,
    pub(crate) kernel: Option<KernelHistory>,
    pub(crate) known: ObjectNamer,
    pub(crate) detector: Detector,
    pub(crate) gate: Gate,
    pub(crate) writer: Writer,
    /// Facts of the machine and the process for captures.
    pub(crate) meta: Meta,
    pub(crate) lcores: Vec<(Lcore, String)>,
    pub(crate) tpoints: Vec<(u16, String)>,
    pub(crate) setting: Setting,
    pub(crate) sampling: Sampling,
    /// Times away of threads that write rings, until the records after them have come.
    pub(crate) pending: Vec<(Tid, Absence)>,
    pub(crate) observer: Observer,
}

/// Settings of a watch, with times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) pid: u32,
    pub(crate) slow: u64,
    pub(crate) before: u64,
    /// Time from which on an open request counts as hanging.
    pub(crate) open: u64,
    pub(crate) after: Option<Duration>,
}

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
struct ReportedNotes {
    slots_lost: u64,
    is_short: bool,
    has_few_events: bool,
    has_failed: bool,
}

impl WatchSession {
    /// Watches until there is a reason to stop.
    pub(crate) fn until_end(mut self, watch: &Watch) -> anyhow::Result<Totals> {
        let (started, mut alive, mut looked) = (Instant::now(), Instant::now(), Instant::now());
        let (mut totals, mut said) = (Totals::default(), ReportedNotes::default());
        self.look_after_writers();
        let why = loop {
            let came = self.step()?;
            self.report(&mut totals, &mut said);
            if let Some(error) = came.failed {
                break format!("the trace can't be read any more: {error:#}");
            }
            if came.is_last {
                break "the trace can't be read any more".to_owned();
            }
            if totals.unheard.is_some() {
                break "nobody reads the lines".to_owned();
            }
            if self.observer.is_stop_requested() {
                break "stopped".to_owned();
            }
            if self
                .setting
                .after
                .is_some_and(|after| started.elapsed() >= after)
            {
                break "the time is over".to_owned();
            }
            if alive.elapsed() >= LIVENESS_INTERVAL {
                alive = Instant::now();
                if let Some(why) = watch.ended() {
                    break why;
                }
            }
            if looked.elapsed() >= THREAD_SCAN_INTERVAL {
                looked = Instant::now();
                self.now_and_then();
            }
        };
        self.finish(why, totals, said)
    }

    /// Takes the next batch, and all that follows from it.
    fn step(&mut self) -> anyhow::Result<StepOutcome> {
        let oldest = BootNanos(
            boot_nanos()
                .saturating_sub(self.setting.before + self.setting.open + MAX_EXTRA_PAST_NANOS),
        );
        let came = self.trace.next(BATCH_TIMEOUT, oldest)?;
        self.learn()?;
        if let Some(kernel) = &mut self.kernel {
            kernel.next(Duration::ZERO, oldest)?;
            self.pending.extend(kernel.take_away());
        }
        self.detect(came.is_last);
        self.take_absences();
        self.write_if_due(false);
        self.sample_if_due();
        Ok(came)
    }

    /// Learns the owners of records.
    fn learn(&mut self) -> anyhow::Result<()> {
        let (known, rate) = (&mut self.known, self.trace.rate());
        self.trace
            .refresh(|owners| known.know_owners(owners, rate))?;
        let clock = self.trace.clock();
        let oldest = clock.map_or(Ticks(0), |clock| clock.ticks(self.trace.past.since()));
        self.known.learn(oldest);
        self.known.count_losses(self.trace.lost);
        Ok(())
    }

    fn detect(&mut self, all: bool) {
        let Self {
            trace,
            known,
            detector,
            ..
        } = self;
        let context = Context {
            rate: trace.rate(),
            annotator: Some(&known.annotator),
        };
        trace.give(all, |record| {
            known.annotator.observe(record);
            detector.record(record, &context);
        });
        self.take_cases();
    }

    /// Hands slow requests that have ended to the gate.
    fn take_cases(&mut self) {
        let found = self.detector.take();
        if found.is_empty() {
            return;
        }
        // In the first moment there is no clock, and no slow request began within it.
        let Some(clock) = self.trace.clock() else {
            return;
        };
        for slow in found {
            let case = case(slow, &clock);
            if case.length() >= self.setting.slow {
                self.gate.case(case, self.writer.is_free(), Instant::now());
            }
        }
    }

    /// Hands times away to the gate: those of at least the slow time, after which a request began.
    /// If none begins, nobody uses the target, and nobody waited. A reader that got no CPU has the
    /// records later than the events, so a time away waits until the records after it are read.
    fn take_absences(&mut self) {
        let now = boot_nanos();
        let is_early = |away: &Absence| away.to.0.saturating_add(MAX_DELAY_NANOS) > now;
        if self.pending.iter().all(|(_, away)| is_early(away)) {
            return;
        }
        let Some(clock) = self.trace.clock() else {
            return;
        };
        let given_until = self.trace.given_until(&clock).0;
        for (tid, away) in std::mem::take(&mut self.pending) {
            let mut lcores = self
                .meta
                .lcores
                .iter()
                .filter(|lcore| lcore.tid == Some(tid.0));
            let is_used = lcores.any(|lcore| {
                self.detector
                    .has_begun(Lcore(lcore.lcore), clock.ticks(away.to))
            });
            let is_decided = is_used || given_until >= away.to.0.saturating_add(MAX_DELAY_NANOS);
            if is_early(&away) || !is_decided {
                self.pending.push((tid, away));
                continue;
            }
            let case = Incident {
                reason: Reason::Away(tid),
                begin: away.from,
                end: away.to,
            };
            if is_used && case.length() >= self.setting.slow.max(MIN_AWAY) {
                self.gate.case(case, self.writer.is_free(), Instant::now());
            }
        }
    }

    /// Makes the kernel's part track the absences of threads that write rings.
    fn look_after_writers(&mut self) {
        let writers = self
            .meta
            .lcores
            .iter()
            .filter_map(|lcore| lcore.tid)
            .map(Tid);
        if let Some(kernel) = &mut self.kernel {
            kernel.look_after(writers);
        }
    }

    /// Does what is not done with each step.
    fn now_and_then(&mut self) {
        if let Some(clock) = self.trace.clock() {
            // One of these requests may have ended in records that have not been read, or are held
            // back.
            let now = BootNanos(boot_nanos().saturating_sub(MAX_DELAY_NANOS))
                .min(self.trace.given_until(&clock));
            let open = clock.rate().ticks(self.setting.open).0;
            self.detector.still_open(clock.ticks(now), open, |slow| {
                let case = case(slow, &clock);
                case.length() >= self.setting.slow
                    && self.gate.case(case, self.writer.is_free(), Instant::now())
            });
            self.detector.forget(clock.ticks(self.trace.past.since()));
        }
        let known = |meta: &Meta| {
            meta.lcores
                .iter()
                .filter(|lcore| lcore.tid.is_some())
                .count()
        };
        if known(&self.meta) < self.lcores.len() {
            let threads = facts::of_threads(self.setting.pid);
            let lcores = self
                .lcores
                .iter()
                .map(|(lcore, name)| (*lcore, name.as_str()));
            self.meta.lcores = facts::lcore_threads(lcores, &threads);
            self.meta.process.threads = threads;
            self.look_after_writers();
        }
    }

    /// Hands the time around slow requests to the writer when all of it has come, or at the end.
    fn write_if_due(&mut self, is_end: bool) {
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
    fn sample_if_due(&mut self) {
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

    /// Counts the writer's results, and makes each note once.
    fn report(&mut self, totals: &mut Totals, said: &mut ReportedNotes) {
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

    /// Ends all parts: examines what has come, and writes the rest of the captures.
    fn finish(
        mut self,
        why: String,
        mut totals: Totals,
        mut said: ReportedNotes,
    ) -> anyhow::Result<Totals> {
        // Requests that were slow just now are still written: the events of their time come a
        // moment later.
        let until = Instant::now() + SHUTDOWN_TIMEOUT;
        while (self.gate.window().is_some() || !self.pending.is_empty()) && Instant::now() < until {
            self.observer.step();
            if self.step()?.is_last {
                break;
            }
        }
        self.trace.stop();
        loop {
            self.observer.step();
            if self.trace.next(BATCH_TIMEOUT, BootNanos(0))?.is_last {
                break;
            }
        }
        self.learn()?;
        let failed = self
            .kernel
            .as_mut()
            .and_then(|kernel| kernel.next(Duration::ZERO, BootNanos(0)).err());
        self.detect(true);
        self.take_absences();
        self.write_if_due(true);
        self.writer
            .finish()
            .into_iter()
            .for_each(|done| totals.count(done, &mut said, &self.observer));
        (totals.records, totals.slots_lost) = (self.trace.records, self.trace.lost);
        (totals.requests, totals.slow, totals.away) =
            (self.detector.ended, self.gate.slow, self.gate.away);
        (totals.without, totals.unsure) = (self.gate.missed().count, self.detector.unsure);
        if let Some(kernel) = self.kernel {
            (totals.events, totals.events_lost) = (kernel.events, kernel.lost);
            let _ = kernel.finish();
        }
        self.known.finish();
        let _ = self.trace.finish();
        totals.why = why;
        totals.failed = totals.failed.or(failed);
        Ok(totals)
    }
}

impl Totals {
    fn count(&mut self, done: JobResult, said: &mut ReportedNotes, observer: &Observer) {
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

fn case(slow: SlowRequest, clock: &Clock) -> Incident {
    Incident {
        reason: Reason::Slow(slow),
        begin: clock.nanos(slow.wanted.begin),
        end: clock.nanos(slow.end),
    }
}
