//! The objects of a process as they come: what its memory has, and what its probes report.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use objects::Frame;
use spdk_trace::Ticks;

use super::finder::Finder;
use super::lines::{Readings, last};
use super::pointers::Pointers;
use crate::probes::{Error, Recorder, Totals};

/// How long lines of a reading wait for events from before it: events can arrive as late as this.
const SETTLE: Duration = Duration::from_millis(60);
/// The time between two readings if nothing else reports ends.
const INTERVAL: Duration = Duration::from_millis(500);
/// The same if records wait for the next reading to be named.
pub const SHORT_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two looks at how many hits were lost.
const LOSS_INTERVAL: Duration = Duration::from_millis(100);
/// Readings take at most this part of the time.
const SHARE: u32 = 50;

/// The time from an attempt to find objects by addresses to the next one. It doubles with each that finds nothing,
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// up to this.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A finder that is being opened: the debug information of a large program takes its time, and probes are attached meanwhile.
pub struct Opening(Option<Receiver<Option<Finder>>>);

impl Opening {
    /// Nothing is opened.
    pub fn none() -> Self {
        Self(None)
    }

    /// It is there already.
    pub fn ready(finder: Option<Finder>) -> Self {
        let (sender, receiver) = channel();
        // The receiver is there.
        drop(sender.send(finder));
        Self(Some(receiver))
    }

    /// Opens a finder on a thread of its own.
    pub fn start(open: impl FnOnce() -> Option<Finder> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        // Whoever asked may be gone by then.
        std::thread::spawn(move || drop(sender.send(open())));
        Self(Some(receiver))
    }

    /// Whether nothing is being opened.
    fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// The finder, if it is there within this time.
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

    /// The finder, however long that takes.
    pub fn finish(mut self) -> Option<Finder> {
        self.0.take()?.recv().ok().flatten()
    }
}

/// Finds objects, beginning at addresses.
type FindBy = dyn Fn(&Pointers) -> Option<Finder> + Send + Sync;

/// How objects are looked for again if none can be found at first: with addresses that the trace has by then.
struct Again {
    open: Arc<FindBy>,
    wait: Duration,
    next: Instant,
}

/// What a recording is made of: readings of the memory, and probes.
pub struct Session {
    opening: Opening,
    finder: Option<Finder>,
    recorder: Option<Recorder>,
    readings: Readings,
    /// Since when probes report each beginning and end, in ticks; 0 if they do not.
    watched: u64,
    interval: Duration,
    /// When to read the memory again. Probes make that unnecessary.
    next: Option<Instant>,
    /// Lines of readings, and when they may go out.
    pending: Vec<(Instant, Vec<String>)>,
    again: Option<Again>,
    /// Time of the next look at how many hits were lost; `None` once some were.
    next_loss: Option<Instant>,
    /// Whether [`Self::first_found`] has said it.
    is_reported: bool,
}

impl Session {
    /// Begins: the probes are attached already, so that nothing is missed between the two. With probes, a finder that takes longer
    /// than `patience` comes in later.
    pub fn start(mut opening: Opening, recorder: Option<Recorder>, patience: Duration) -> Self {
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

    /// Says how objects are looked for by addresses of the trace that come later ([`Self::look_at`]).
    #[must_use]
    pub fn or_later(mut self, open: impl Fn(&Pointers) -> Option<Finder> + Send + Sync + 'static) -> Self {
        self.again = Some(Again { open: Arc::new(open), wait: FIRST_WAIT, next: Instant::now() });
        self
    }

    /// Whether addresses help now: objects are not found from globals.
    pub fn wants_addresses(&self) -> bool {
        match (&self.finder, &self.again) {
            (Some(finder), _) => finder.is_of_pointers(),
            (None, Some(again)) => self.opening.is_idle() && Instant::now() >= again.next,
            (None, None) => false,
        }
    }

    /// Whether it is known how objects are found.
    pub fn has_finder(&self) -> bool {
        self.finder.is_some()
    }

    /// Whether objects may be found that are not found now.
    pub fn may_find(&self) -> bool {
        self.finder.is_some() || self.again.is_some() || !self.opening.is_idle()
    }

    /// Looks at addresses of objects of which nothing is known.
    pub fn look_at(&mut self, pointers: Pointers) {
        match (&self.finder, &mut self.again) {
            (Some(finder), _) => finder.add(&pointers),
            (None, Some(again)) if self.opening.is_idle() => {
                again.next = Instant::now() + again.wait;
                again.wait = LONGEST_WAIT.min(2 * again.wait);
                let open = Arc::clone(&again.open);
                self.opening = Opening::start(move || open(&pointers));
            }
            _ => {}
        }
    }

    /// Reads the memory more often: records wait for the next reading.
    pub fn hurry(&mut self) {
        self.interval = SHORT_INTERVAL;
    }

    /// Whether nothing but readings reports ends.
    pub fn is_unwatched(&self) -> bool {
        self.watched == 0 && self.finder.is_some()
    }

    /// The number of objects that were found alive, once: when there are any for the first time.
    pub fn first_found(&mut self) -> Option<usize> {
        let found = self.readings.object_count();
        (found > 0 && !std::mem::replace(&mut self.is_reported, found > 0)).then_some(found)
    }

    /// Waits until the first reading may be used.
    pub fn settle(&self) {
        if !self.pending.is_empty() {
            std::thread::sleep(SETTLE);
        }
    }

    /// The lines whose time has come, in the order of time as far as that is known; waits for more at most this long.
    pub fn next(&mut self, at_most: Duration) -> Vec<String> {
        let lines = if let Some(recorder) = &mut self.recorder {
            recorder.next(at_most)
        } else {
            std::thread::sleep(at_most);
            Vec::new()
        };
        self.with_readings(lines)
    }

    /// All lines that have come, at once.
    pub fn next_unordered(&mut self) -> Vec<String> {
        let recorder = self.recorder.as_mut();
        let lines = recorder.map(|recorder| recorder.next_unordered(Duration::ZERO)).unwrap_or_default();
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

    /// Returns the line about lost hits, once there are any: a recording that is killed has no end that says so.
    fn first_loss(&mut self, now: Instant) -> Option<String> {
        let recorder = self.recorder.as_ref().filter(|_| self.next_loss.is_some_and(|next| next <= now))?;
        self.next_loss = Some(now + LOSS_INTERVAL);
        // A number that can't be read is an error of the recording's end.
        let lost = recorder.totals().ok()?.missing();
        (lost > 0).then(|| {
            self.next_loss = None;
            Frame::End { at: Ticks(sys::clock::ticks()), lost }.line()
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
        self.pending.push((now + SETTLE, lines));
        self.next = (self.watched == 0).then(|| now + self.interval.max(SHARE * (now - begun)));
    }

    /// Ticks and nanoseconds (`CLOCK_MONOTONIC`) of hits of probes that pass their own ticks: those since this was called last.
    pub fn take_pairs(&mut self) -> Vec<(u64, u64)> {
        self.recorder.as_mut().map(Recorder::take_pairs).unwrap_or_default()
    }

    /// Detaches the probes; returns the remaining lines and what came of the probes.
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
        let lost = totals.as_ref().and_then(|totals| totals.as_ref().ok()).map_or(0, Totals::missing);
        if lost > 0 {
            lines.push(Frame::End { at: Ticks(until), lost }.line());
        }
        (lines, totals)
    }
}
