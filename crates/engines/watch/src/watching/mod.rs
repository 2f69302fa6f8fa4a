//! Main loop of a watch: keeps everything that comes for a while, and looks for slow requests,
//! until there is a reason to stop.

mod handover;
mod totals;

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
use super::sample::Sampling;
use super::trace::{StepOutcome, WatchedTrace};
use super::window::{Gate, Incident, Reason};
use super::writing::{Job, Writer};

use totals::ReportedNotes;
pub use totals::Totals;

/// Longest wait for the next batch.
const BATCH_TIMEOUT: Duration = Duration::from_millis(20);
/// Time between two looks at the process.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at its threads, and for requests that are still open.
const THREAD_SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum delay of records and events of other CPUs, in nanoseconds.
const MAX_DELAY_NANOS: u64 = 100_000_000;
/// Time in nanoseconds after which no further record is expected of a request that may have ended.
const QUIET_NANOS: u64 = 250_000_000;
/// Longest wait at the end for the rest of the captures.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(400);

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
    /// Parts of the past of the gate's candidate, when all of them have come.
    pub(crate) held: Option<Job>,
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
                break "the time is up".to_owned();
            }
            if alive.elapsed() >= LIVENESS_INTERVAL {
                alive = Instant::now();
                if let Some(why) = watch.ended() {
                    break why;
                }
            }
            if looked.elapsed() >= THREAD_SCAN_INTERVAL {
                looked = Instant::now();
                self.on_tick();
            }
        };
        self.finish(why, totals, said)
    }

    /// Takes the next batch, and all that follows from it.
    fn step(&mut self) -> anyhow::Result<StepOutcome> {
        let oldest = self.oldest();
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

    /// Returns the time from which on the past is kept.
    fn oldest(&self) -> BootNanos {
        let kept = self.setting.before + self.setting.open + MAX_EXTRA_PAST_NANOS;
        let clock = self.trace.clock();
        let reached = clock.map(|clock| self.trace.given_until(&clock));
        let windows = self.gate.ready().into_iter().chain(self.gate.candidate());
        let uncut = windows.filter(|window| !self.is_held(window));
        let waiting = uncut.map(|window| window.from).min();
        oldest(BootNanos(boot_nanos()), reached, kept, waiting)
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
                self.gate.case(case, self.writer.waiting());
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
                self.gate.case(case, self.writer.waiting());
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
    fn on_tick(&mut self) {
        if let Some(clock) = self.trace.clock() {
            // One of these requests may have ended in records that have not been read, or are held
            // back.
            let now = BootNanos(boot_nanos().saturating_sub(MAX_DELAY_NANOS))
                .min(self.trace.given_until(&clock));
            let open = clock.rate().ticks(self.setting.open).0;
            self.detector.still_open(clock.ticks(now), open, |slow| {
                let case = case(slow, &clock);
                case.length() >= self.setting.slow && self.gate.case(case, self.writer.waiting())
            });
            let quiet = BootNanos(now.0.saturating_sub(QUIET_NANOS));
            self.detector.settle(clock.ticks(quiet));
            self.detector.forget(clock.ticks(self.trace.past.since()));
        }
        self.take_cases();
        let known = |meta: &Meta| {
            meta.lcores
                .iter()
                .filter(|lcore| lcore.tid.is_some())
                .count()
        };
        if known(&self.meta) < self.lcores.len() {
            let threads = facts::describe_threads(self.setting.pid);
            let lcores = self
                .lcores
                .iter()
                .map(|(lcore, name)| (*lcore, name.as_str()));
            self.meta.lcores = facts::lcore_threads(lcores, &threads);
            self.meta.process.threads = threads;
            self.look_after_writers();
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
        while self.is_waiting() && Instant::now() < until {
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

/// Returns the time from which on the past is kept: `kept` nanoseconds before the time up to which
/// the detector has the records, all if that is unknown. A reader that got its CPU late has only old
/// ones. The time from which on a capture waits to be written stays, too.
fn oldest(
    now: BootNanos,
    reached: Option<BootNanos>,
    kept: u64,
    waiting: Option<BootNanos>,
) -> BootNanos {
    let reached = reached.unwrap_or(BootNanos(0)).min(now);
    let oldest = BootNanos(reached.0.saturating_sub(kept));
    waiting.map_or(oldest, |from| oldest.min(from))
}

fn case(slow: SlowRequest, clock: &Clock) -> Incident {
    Incident {
        reason: Reason::Slow(slow),
        begin: clock.nanos(slow.wanted.begin),
        end: clock.nanos(slow.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_kept_for_a_detector_and_a_capture_that_are_late() {
        let oldest = |reached: Option<u64>, window: Option<u64>| {
            let (reached, window) = (reached.map(BootNanos), window.map(BootNanos));
            super::oldest(BootNanos(5000), reached, 1000, window).0
        };
        assert_eq!(oldest(Some(4900), None), 3900);
        assert_eq!(oldest(Some(2000), None), 1000, "the reader is late");
        assert_eq!(oldest(Some(9000), None), 4000, "clocks may differ a little");
        assert_eq!(oldest(None, None), 0, "there is no clock yet");
        assert_eq!(oldest(Some(4900), Some(3000)), 3000, "a capture waits");
    }
}
