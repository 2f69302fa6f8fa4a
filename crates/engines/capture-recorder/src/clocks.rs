//! Readings of both clocks during a capture: the clock's anchors, and checks of how well they put
//! both on one line.
//!
//! A thread of its own reads them: the writer may wait for a disk, and anchors that are far apart
//! make a bad clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use scene::{Anchor, BootNanos, ClockCheck, ClockErrors};
use spdk_trace::Ticks;
use sys::clock::{Moment, boot_nanos, monotonic_nanos};
use trace_source::anchor;

/// Time between two anchors.
const ANCHOR_INTERVAL: Duration = Duration::from_millis(100);
/// Time between the first two anchors, which then doubles up to [`ANCHOR_INTERVAL`]: a clock needs two, and a
/// capture may be killed soon.
const INITIAL_INTERVAL: Duration = Duration::from_millis(2);
/// Time between two readings that only check the clock.
const CHECK: Duration = Duration::from_millis(10);
/// Number of tries for a reading, of which the one with the narrowest bracket counts. A `Moment`
/// tries several times itself.
const MAX_TRIES: usize = 4;

/// Reader of both clocks.
pub(crate) struct Clocks {
    check: ClockCheck,
    readings: Receiver<Reading>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Nanoseconds to add to `CLOCK_MONOTONIC` for the boot clock.
    offset: u64,
    read_both: ReadBoth,
}

/// Function that reads the clock of a trace and the boot clock.
pub type ReadBoth = fn() -> Anchor;

/// Reading of both clocks.
enum Reading {
    Anchor(Anchor),
    /// Reading to compare with the clock of the anchors around it.
    Check(Anchor),
}

impl Clocks {
    /// Starts the thread; returns the first anchor.
    pub(crate) fn start(read_both: ReadBoth) -> anyhow::Result<(Self, Anchor)> {
        let (check, offset, stop) = (
            ClockCheck::default(),
            boot_offset(),
            Arc::new(AtomicBool::new(false)),
        );
        let (send, readings) = channel();
        let first = read_both();
        let seen = Arc::clone(&stop);
        let thread = Builder::new()
            .name("clocks".to_owned())
            .spawn(move || read(read_both, &send, &seen));
        let thread = Some(thread.context("starting the thread that reads the clocks")?);
        let mut this = Self {
            check,
            readings,
            stop,
            thread,
            offset,
            read_both,
        };
        this.check.anchor(first);
        Ok((this, first))
    }

    /// Returns the anchors read since the last call.
    pub(crate) fn next(&mut self) -> Vec<Anchor> {
        let mut anchors = Vec::new();
        for reading in self.readings.try_iter() {
            match reading {
                Reading::Anchor(anchor) => {
                    self.check.anchor(anchor);
                    anchors.push(anchor);
                }
                Reading::Check(reading) => self.check.reading(reading),
            }
        }
        anchors
    }

    /// Stops the thread, and reads one last anchor. Returns it with those read since the last call.
    pub(crate) fn stop(&mut self) -> Vec<Anchor> {
        self.stop.store(true, Ordering::Release);
        // This waits for one reading at most.
        let _ = self.thread.take().map(JoinHandle::join);
        let mut anchors = self.next();
        let last = (self.read_both)();
        self.check.anchor(last);
        anchors.push(last);
        anchors
    }

    /// Compares hits of probes, each with its own ticks and the kernel's time (`CLOCK_MONOTONIC`).
    pub(crate) fn hits(&mut self, hits: Vec<(u64, u64)>) {
        let offset = self.offset;
        self.check.hits(
            hits.into_iter()
                .map(|(ticks, nanos)| (Ticks(ticks), BootNanos(nanos + offset))),
        );
    }

    /// Returns how well the anchors put both clocks on one line.
    pub(crate) fn finish(self) -> ClockErrors {
        self.stop.store(true, Ordering::Release);
        self.check.finish()
    }
}

/// Reads until requested to stop, or until the receiver is gone.
fn read(read_both: ReadBoth, send: &Sender<Reading>, stop: &AtomicBool) {
    let (mut pause, mut due) = (INITIAL_INTERVAL, Instant::now() + INITIAL_INTERVAL);
    loop {
        std::thread::sleep(CHECK.min(due.saturating_duration_since(Instant::now())));
        if stop.load(Ordering::Acquire) {
            return;
        }
        let now = Instant::now();
        let reading = if now >= due {
            pause = (2 * pause).min(ANCHOR_INTERVAL);
            due = now + pause;
            Reading::Anchor(read_both())
        } else {
            Reading::Check(read_both())
        };
        if send.send(reading).is_err() {
            return;
        }
    }
}

/// Reads both clocks now, for a trace whose ticks are those of the processor.
pub(crate) fn reading() -> Anchor {
    let tries = [(); MAX_TRIES].map(|()| Moment::now(boot_nanos));
    let best = tries.into_iter().reduce(|best, next| {
        if next.bracket < best.bracket {
            next
        } else {
            best
        }
    });
    anchor(best.unwrap_or(tries[0]))
}

/// Reads the boot clock for a trace whose ticks are its nanoseconds.
pub(crate) fn boot_reading() -> Anchor {
    let now = boot_nanos();
    Anchor {
        ticks: Ticks(now),
        nanos: BootNanos(now),
        bracket: Ticks(0),
    }
}

/// Returns the difference between the boot clock and the monotonic one: the time that the machine
/// slept. Both run at one rate, so each try narrows it down further.
fn boot_offset() -> u64 {
    let (mut least, mut most) = (0, u64::MAX);
    for _ in 0..100 {
        let before = monotonic_nanos();
        let boot = boot_nanos();
        let after = monotonic_nanos();
        (least, most) = (
            least.max(boot.saturating_sub(after)),
            most.min(boot.saturating_sub(before)),
        );
    }
    least + most.saturating_sub(least) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "deep truth: two clocks must be read within a millisecond of each other"]
    fn readings_come_by_themselves() {
        let (mut clocks, _) = Clocks::start(reading).unwrap();
        let hit = || {
            let moment = Moment::now(monotonic_nanos);
            (moment.ticks, moment.nanos)
        };
        let (mut anchors, begun) = (0, Instant::now());
        while anchors < 5 && begun.elapsed() < Duration::from_mins(1) {
            std::thread::sleep(Duration::from_millis(5));
            clocks.hits(vec![hit()]);
            anchors += clocks.next().len();
        }
        anchors += clocks.stop().len();
        let ClockErrors {
            between, at_hits, ..
        } = clocks.finish();
        assert!(
            anchors >= 6 && at_hits.count() >= 4,
            "{anchors}, {at_hits:?}"
        );
        // Both readings of each are in one bracket, on a machine that may do something else
        // meanwhile.
        assert!(
            at_hits.quantile(0.5) < 1_000_000 && between.quantile(0.5) < 1_000_000,
            "{at_hits:?} {between:?}"
        );
    }
}
