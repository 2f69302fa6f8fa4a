//! Trace of the process: its rings, followed; its past; and its clock.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture::{RingHistory, RingSlice};
use capture_recorder::{ReadBoth, Rings};
use scene::{BootNanos, Clock};
use socket_requests::SocketRequests;
use spdk_trace::{Follower, Owners, Record, TickRate};
use sys::clock::boot_nanos;
use text::printable;
use trace_source::{Batch, FileSource, HOLD_TIME, Pressure, Reader};

/// Limit on the bytes of slots that are kept.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Limit on the bytes of slots that wait to be taken: beyond it the rings are not polled.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Time for which records are held back if half of [`MAX_QUEUED_BYTES`] waits, since held-back slots wait,
/// too. Then more records may come in another order than their times.
const BUSY_HOLD_TIME: Duration = Duration::from_millis(5);
/// Longest time between two readings of both clocks.
const ANCHOR_INTERVAL: Duration = Duration::from_millis(100);
/// Time between the first two readings of both clocks: a clock needs two.
const FIRST_ANCHOR: Duration = Duration::from_millis(2);
/// Time between two readings of the owners: records are held back for longer than that.
const OWNER_REFRESH_INTERVAL: Duration = Duration::from_millis(25);

/// Trace that is being watched.
pub(crate) struct WatchedTrace {
    pub(crate) source: FileSource,
    follower: Follower,
    reader: Reader,
    pub(crate) past: RingHistory,
    read_both: ReadBoth,
    /// Recording of sockets that writes the trace, if it is not the process itself.
    sockets: Option<WatchedSockets>,
    /// Time of the last reading of the clocks.
    anchored: Instant,
    /// Time until the next reading of the clocks.
    pause: Duration,
    /// Start of the reader, in nanoseconds since boot.
    start: u64,
    refreshed: Option<Instant>,
    /// Time until which a trace without new records has been read.
    quiet_until: BootNanos,
    /// Number of records that came.
    pub(crate) records: u64,
    /// Number of slots that were lost.
    pub(crate) lost: u64,
}

/// Recording of sockets: it writes records later than they happen.
struct WatchedSockets {
    recording: SocketRequests,
    /// Time up to which all records were copied.
    copied: BootNanos,
    /// A later such time, which holds once the rings are polled after the first of these times.
    next: Option<(BootNanos, BootNanos)>,
}

impl WatchedSockets {
    fn new(recording: SocketRequests) -> Self {
        Self {
            recording,
            copied: BootNanos(0),
            next: None,
        }
    }

    /// Takes note that the rings were polled at this time.
    fn polled(&mut self, at: BootNanos) {
        if let Some((_, copied)) = self.next.take_if(|(read, _)| *read <= at) {
            self.copied = copied;
        }
        if self.next.is_none() {
            let complete = BootNanos(self.recording.complete());
            self.next = Some((BootNanos(boot_nanos()), complete));
        }
    }
}

/// Result of a step.
#[derive(Debug, Default)]
pub(crate) struct StepOutcome {
    /// True if no more will come.
    pub(crate) is_last: bool,
    /// Error that kept the reader from reading on.
    pub(crate) failed: Option<anyhow::Error>,
}

impl WatchedTrace {
    /// Starts to follow the trace; skips what is in the rings now.
    pub(crate) fn start(rings: Rings, is_prompt: bool) -> anyhow::Result<Self> {
        let read_both = rings.clock();
        let Rings {
            source,
            follower,
            path,
            sockets,
        } = rings;
        let failing = || format!("reading {}", printable::path(&path));
        let mut tail = follower.tail();
        let around = capture::OwnerSnapshot::read_now(&source, &follower).with_context(failing)?;
        let lcores = follower.rings().map(|(lcore, _)| lcore).collect();
        let first = read_both();
        let since = boot_nanos();
        tail.skip(&source).with_context(failing)?;
        let continuation_id = follower.tpoints().continuation_id();
        let mut past = RingHistory::new(
            around,
            lcores,
            continuation_id,
            BootNanos(since),
            MAX_KEPT_BYTES,
        );
        past.anchor(first);
        let again = source.again()?;
        let start = boot_nanos();
        let reader = Reader::start_within(tail, again, is_prompt, MAX_QUEUED_BYTES)?;
        let (anchored, pause) = (Instant::now(), FIRST_ANCHOR);
        Ok(Self {
            source,
            follower,
            reader,
            past,
            read_both,
            sockets: sockets.map(WatchedSockets::new),
            anchored,
            pause,
            start,
            refreshed: None,
            quiet_until: BootNanos(start),
            records: 0,
            lost: 0,
        })
    }

    pub(crate) fn rate(&self) -> TickRate {
        self.follower.tick_rate()
    }

    /// Takes the next batch, waiting at most `at_most`, and drops slots older than `oldest`.
    pub(crate) fn next(
        &mut self,
        at_most: Duration,
        oldest: BootNanos,
    ) -> anyhow::Result<StepOutcome> {
        if self.anchored.elapsed() >= self.pause {
            self.anchored = Instant::now();
            self.pause = (2 * self.pause).min(ANCHOR_INTERVAL);
            self.past.anchor((self.read_both)());
        }
        // Batches that were sent before this time are taken before `next` returns none.
        let quiet_until = self.boot_time(self.reader.quiet_until());
        let Some(batch) = self.reader.next(at_most) else {
            self.quiet_until = quiet_until;
            self.note_poll();
            return Ok(StepOutcome::default());
        };
        let Batch {
            copied,
            at,
            is_last,
            failed,
        } = batch;
        if at != Duration::MAX {
            let at_boot = self.boot_time(at);
            self.lost += self.past.push(&copied, at_boot, oldest)?;
            self.note_poll();
        }
        self.follower.take(copied, at);
        Ok(StepOutcome {
            is_last,
            failed: failed.map(Into::into),
        })
    }

    /// Reads the owners, if it is time for that; calls `known` with them at first, and if they have
    /// changed.
    pub(crate) fn refresh(&mut self, known: impl FnOnce(&Owners)) -> anyhow::Result<()> {
        let is_first = self.refreshed.is_none();
        if self
            .refreshed
            .is_some_and(|refreshed| refreshed.elapsed() < OWNER_REFRESH_INTERVAL)
        {
            return Ok(());
        }
        self.refreshed = Some(Instant::now());
        let mut has_changed = is_first;
        let follower = &mut self.follower;
        self.past.refresh(&self.source, |at, owner| {
            follower.change(at, owner);
            has_changed = true;
        })?;
        if has_changed {
            known(self.follower.owners());
        }
        Ok(())
    }

    /// Hands out the records that were held back for long enough, or all.
    pub(crate) fn give(&mut self, all: bool, mut each: impl FnMut(&Record<'_>)) {
        let records = &mut self.records;
        let each = |record: &Record<'_>| {
            *records += 1;
            each(record);
            ControlFlow::Continue(())
        };
        let hold = if self.reader.waiting() > MAX_QUEUED_BYTES / 2 {
            BUSY_HOLD_TIME
        } else {
            HOLD_TIME
        };
        let _ = if all {
            self.follower.give_all(each)
        } else {
            self.follower.give(hold, each)
        };
        let reader = &self.reader;
        self.follower
            .spare()
            .for_each(|bytes| reader.give_back(bytes));
    }

    /// Converts a time of the reader, which counts from its start.
    fn boot_time(&self, at: Duration) -> BootNanos {
        let nanos = u64::try_from(at.as_nanos()).unwrap_or_default();
        BootNanos(self.start + nanos)
    }

    /// Returns the time up to which all records were handed out, however late the reader is.
    pub(crate) fn given_until(&self, clock: &Clock) -> BootNanos {
        let quiet = match &self.sockets {
            Some(sockets) => self.quiet_until.min(sockets.copied),
            None => self.quiet_until,
        };
        clock.nanos(self.follower.given()).max(quiet)
    }

    /// Returns the time up to which all records were copied, however late the reader is.
    pub(crate) fn copied_until(&self) -> BootNanos {
        self.sockets
            .as_ref()
            .map_or_else(|| self.polled_until(), |sockets| sockets.copied)
    }

    /// Returns the time of the last poll of the rings.
    fn polled_until(&self) -> BootNanos {
        self.past.until().max(self.quiet_until)
    }

    fn note_poll(&mut self) {
        let polled = self.polled_until();
        self.sockets.iter_mut().for_each(|it| it.polled(polled));
    }

    /// Returns the clock that converts ticks to the kernel's time; `None` in the first moment.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.past.clock().ok()
    }

    /// Returns the records that are kept of the time between these two.
    pub(crate) fn cut(&mut self, from: BootNanos, until: BootNanos) -> RingSlice {
        // Records of sockets were written later than the polls of their time.
        let until = self.sockets.as_ref().map_or(until, |_| BootNanos(u64::MAX));
        let mut cut = self.past.cut(from, until);
        cut.anchor((self.read_both)());
        cut
    }

    /// Makes the reader poll once more, and end.
    pub(crate) fn stop(&self) {
        self.reader.stop();
    }

    /// Ends the reader, and returns why slots were lost.
    pub(crate) fn finish(self) -> Pressure {
        self.reader.finish()
    }
}
