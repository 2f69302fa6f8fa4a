//! The objects of a process as they appear: in its memory, and from its probes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use objects::Frame;
use spdk_trace::Ticks;

use super::finder::Finder;
use super::lines::{Readings, last};
use super::pointers::Pointers;
use crate::probes::{Error, Recorder, Totals};

/// Delay of a reading's lines, for events from before it: events can arrive as late as this.
const SETTLE_TIME: Duration = Duration::from_millis(60);
/// Time between two readings if nothing else reports ends.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time between two readings if records wait for the next one to be named.
pub const SHORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two checks for lost hits.
const LOSS_INTERVAL: Duration = Duration::from_millis(100);
/// Pause after a reading, as a multiple of its duration: readings take at most 1/50 of the time.
const PAUSE_FACTOR: u32 = 50;

/// First delay between attempts to find objects by addresses. It doubles with each attempt that
/// finds nothing.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Limit of that delay.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Finder that is being opened: the debug information of a large program takes its time, and probes
/// are attached meanwhile.
pub struct PendingFinder(Option<Receiver<Option<Finder>>>);

impl PendingFinder {
    /// Opens nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Wraps a finder that is open already.
    pub fn ready(finder: Option<Finder>) -> Self {
        let (sender, receiver) = channel();
        // The receiver still exists.
        drop(sender.send(finder));
        Self(Some(receiver))
    }

    /// Opens a finder on a thread of its own.
    pub fn start(open: impl FnOnce() -> Option<Finder> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        // The caller may be gone by then.
        std::thread::spawn(move || drop(sender.send(open())));
        Self(Some(receiver))
    }

    /// Returns true if nothing is being opened.
    fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the finder if it is ready within this time.
    pub fn wait(&mut self, at_most: Duration) -> Option<Finder> {
        match self.0.as_ref()?.recv_timeout(at_most) {
            Ok(finder) => {
                self.0 = None;
                finder
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.0 = None;
                None
            }
        }
    }

    /// Waits for the finder without a time limit.
    pub fn finish(mut self) -> Option<Finder> {
        self.0.take()?.recv().ok().flatten()
    }
}

/// Function that finds objects from addresses.
type FindBy = dyn Fn(&Pointers) -> Option<Finder> + Send + Sync;

/// Retry of the search if no objects were found at first, with addresses that the trace has by
/// then.
struct SearchRetry {
    open: Arc<FindBy>,
    wait: Duration,
    next: Instant,
}

/// Recording from both sources: readings of the memory, and probes.
pub struct Session {
    opening: PendingFinder,
    finder: Option<Finder>,
    recorder: Option<Recorder>,
    readings: Readings,
    /// Time since which probes report each beginning and end, in ticks; 0 without probes.
    watched: u64,
    interval: Duration,
    /// Time of the next reading. Probes make further readings unnecessary.
    next: Option<Instant>,
    /// Lines of readings, with the times when they are due.
    pending: Vec<(Instant, Vec<String>)>,
    again: Option<SearchRetry>,
    /// Time of the next check for lost hits; `None` once some were found.
    next_loss: Option<Instant>,
    /// True once [`Self::first_found`] has returned a number.
    is_reported: bool,
}

impl Session {
    /// Starts with attached probes, so that nothing is missed between them and the first reading.
    /// With probes, a finder that takes longer than `patience` joins later.
    pub fn start(
        mut opening: PendingFinder,
        recorder: Option<Recorder>,
        patience: Duration,
    ) -> Self {
        let watched = recorder.as_ref().map_or(0, |_| sys::clock::ticks());
        let finder = opening.wait(patience);
        let mut this = Self {
            opening,
            finder,
            recorder,
            readings: Readings::default(),
            watched,
            interval: INTERVAL,
            next: Some(Instant::now()),
            pending: Vec::new(),
            again: None,
            next_loss: Some(Instant::now()),
            is_reported: false,
        };
        this.read_if_due();
        this
    }

    /// Sets the function that finds objects by later addresses of the trace ([`Self::look_at`]).
    #[must_use]
    pub fn or_later(
        mut self,
        open: impl Fn(&Pointers) -> Option<Finder> + Send + Sync + 'static,
    ) -> Self {
        self.again = Some(SearchRetry {
            open: Arc::new(open),
            wait: FIRST_WAIT,
            next: Instant::now(),
        });
        self
    }

    /// Returns true if addresses help now: objects are not found from globals.
    pub fn wants_addresses(&self) -> bool {
        match (&self.finder, &self.again) {
            (Some(finder), _) => finder.is_of_pointers(),
            (None, Some(again)) => self.opening.is_idle() && Instant::now() >= again.next,
            (None, None) => false,
        }
    }

    /// Returns true if the finder is open.
    pub fn has_finder(&self) -> bool {
        self.finder.is_some()
    }

    /// Returns true if objects can be found now or later.
    pub fn may_find(&self) -> bool {
        self.finder.is_some() || self.again.is_some() || !self.opening.is_idle()
    }

    /// Adds addresses of unknown objects to the search.
    pub fn look_at(&mut self, pointers: Pointers) {
        match (&self.finder, &mut self.again) {
            (Some(finder), _) => finder.add(&pointers),
            (None, Some(again)) if self.opening.is_idle() => {
                again.next = Instant::now() + again.wait;
                again.wait = MAX_WAIT.min(2 * again.wait);
                let open = Arc::clone(&again.open);
                self.opening = PendingFinder::start(move || open(&pointers));
            }
            _ => {}
        }
    }

    /// Reads the memory more often: records wait for the next reading.
    pub fn hurry(&mut self) {
        self.interval = SHORT_INTERVAL;
    }

    /// Returns true if only readings report ends.
    pub fn is_unwatched(&self) -> bool {
        self.watched == 0 && self.finder.is_some()
    }

    /// Returns the number of objects found alive; only once, at the first reading that has any.
    pub fn first_found(&mut self) -> Option<usize> {
        let found = self.readings.object_count();
        (found > 0 && !std::mem::replace(&mut self.is_reported, found > 0)).then_some(found)
    }

    /// Waits until the first reading may be used.
    pub fn settle(&self) {
        if !self.pending.is_empty() {
            std::thread::sleep(SETTLE_TIME);
        }
    }

    /// Returns the lines that are due, in the order of time as far as it is known. Waits at most
    /// `at_most` for more.
    pub fn next(&mut self, at_most: Duration) -> Vec<String> {
        let lines = if let Some(recorder) = &mut self.recorder {
            recorder.next(at_most)
        } else {
            std::thread::sleep(at_most);
            Vec::new()
        };
        self.with_readings(lines)
    }

    /// Returns all lines that have arrived.
    pub fn next_unordered(&mut self) -> Vec<String> {
        let recorder = self.recorder.as_mut();
        let lines = recorder
            .map(|recorder| recorder.next_unordered(Duration::ZERO))
            .unwrap_or_default();
        self.with_readings(lines)
    }

    fn with_readings(&mut self, mut lines: Vec<String>) -> Vec<String> {
        self.read_if_due();
        let now = Instant::now();
        while self.pending.first().is_some_and(|(when, _)| *when <= now) {
            lines.extend(self.pending.remove(0).1);
        }
        lines.extend(self.first_loss(now));
        lines
    }

    /// Returns the line about lost hits, once there are any: a killed recording has no end that
    /// reports them.
    fn first_loss(&mut self, now: Instant) -> Option<String> {
        let recorder = self
            .recorder
            .as_ref()
            .filter(|_| self.next_loss.is_some_and(|next| next <= now))?;
        self.next_loss = Some(now + LOSS_INTERVAL);
        // A number that can't be read is an error at the recording's end.
        let lost = recorder.totals().ok()?.missing();
        (lost > 0).then(|| {
            self.next_loss = None;
            Frame::End {
                at: Ticks(sys::clock::ticks()),
                lost,
            }
            .line()
        })
    }

    fn read_if_due(&mut self) {
        if self.finder.is_none() {
            self.finder = self.opening.wait(Duration::ZERO);
        }
        let Some(finder) = &self.finder else { return };
        if self.next.is_none_or(|next| Instant::now() < next) {
            return;
        }
        let begun = Instant::now();
        let snapshot = finder.read();
        let lines = self.readings.lines(finder, &snapshot, self.watched);
        let now = Instant::now();
        self.pending.push((now + SETTLE_TIME, lines));
        self.next =
            (self.watched == 0).then(|| now + self.interval.max(PAUSE_FACTOR * (now - begun)));
    }

    /// Takes the ticks and nanoseconds (`CLOCK_MONOTONIC`) of hits with their own ticks since the
    /// last call.
    pub fn take_pairs(&mut self) -> Vec<(u64, u64)> {
        self.recorder
            .as_mut()
            .map(Recorder::take_pairs)
            .unwrap_or_default()
    }

    /// Detaches the probes; returns the remaining lines and the totals of the probes.
    pub fn finish(mut self) -> (Vec<String>, Option<Result<Totals, Error>>) {
        let mut lines = Vec::new();
        let until = sys::clock::ticks();
        let totals = self.recorder.take().map(|recorder| {
            let (rest, totals) = recorder.finish();
            lines = rest;
            totals
        });
        lines.extend(self.pending.drain(..).flat_map(|(_, lines)| lines));
        if let Some(finder) = self.finder.filter(|_| self.watched > 0) {
            lines.extend(last(&finder, until));
        }
        let lost = totals
            .as_ref()
            .and_then(|totals| totals.as_ref().ok())
            .map_or(0, Totals::missing);
        if lost > 0 {
            lines.push(
                Frame::End {
                    at: Ticks(until),
                    lost,
                }
                .line(),
            );
        }
        (lines, totals)
    }
}
