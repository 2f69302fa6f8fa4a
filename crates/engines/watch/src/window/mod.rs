//! Parts of the past that are kept: the time around slow requests and times away, and the limit on
//! their rate.

use std::collections::VecDeque;
use std::time::Duration;

use scene::{BootNanos, Tid};

use super::detect::SlowRequest;

/// Time after the end of a request that its capture has, in nanoseconds.
const TAIL_NANOS: u64 = 1_000_000;
/// Time after the end of the first slow request within which others join its capture, in
/// nanoseconds.
const MERGE_WINDOW_NANOS: u64 = 10_000_000;
/// Limit on the captures that wait to be written. Each shares the memory of the past, which has a
/// limit, too.
const MAX_WAITING_CAPTURES: usize = 4;

/// Reason for a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Request that was slow.
    Slow(SlowRequest),
    /// Thread that writes a ring and was away.
    Away(Tid),
}

impl Reason {
    /// Returns the request that was slow, if one was.
    pub(crate) fn slow(&self) -> Option<&SlowRequest> {
        match self {
            Self::Slow(slow) => Some(slow),
            Self::Away(_) => None,
        }
    }

    /// Returns true if the reason is a request that is still open.
    pub(crate) fn is_open(&self) -> bool {
        self.slow().is_some_and(|slow| slow.is_open)
    }

    /// Returns true if the reason is an open request that may wait by design.
    fn is_open_on_unknown_queue(&self) -> bool {
        self.slow()
            .is_some_and(|slow| slow.is_open && !slow.is_queue_known)
    }
}

/// A slow request or a time away, on the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incident {
    pub(crate) reason: Reason,
    pub(crate) begin: BootNanos,
    pub(crate) end: BootNanos,
}

impl Incident {
    pub(crate) fn length(&self) -> u64 {
        self.end.0.saturating_sub(self.begin.0)
    }

    /// Returns the key by which the worst of several is chosen: a request goes before a time away,
    /// an open one before others, and then the longest.
    fn rank(&self) -> (bool, bool, u64) {
        let reason = &self.reason;
        (reason.slow().is_some(), reason.is_open(), self.length())
    }
}

/// Time that one capture covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: BootNanos,
    pub(crate) until: BootNanos,
    /// Latest end of a case that joins it.
    latest: BootNanos,
    /// Slowest request, an open one before others; without any, the longest time away.
    pub(crate) subject: Incident,
    /// Number of other slow requests.
    pub(crate) more: u64,
}

impl Window {
    fn new(case: Incident, before: u64) -> Self {
        Self {
            from: BootNanos(case.begin.0.saturating_sub(before)),
            until: BootNanos(case.end.0.saturating_add(TAIL_NANOS)),
            latest: BootNanos(case.end.0.saturating_add(MERGE_WINDOW_NANOS)),
            subject: case,
            more: 0,
        }
    }

    /// Joins one more case if it belongs to the same time; returns false if not.
    fn join(&mut self, case: Incident, before: u64) -> bool {
        if case.end > self.latest {
            return false;
        }
        self.from = self
            .from
            .min(BootNanos(case.begin.0.saturating_sub(before)));
        self.until = self
            .until
            .max(BootNanos(case.end.0.saturating_add(TAIL_NANOS)));
        let both_slow = case.reason.slow().is_some() && self.subject.reason.slow().is_some();
        self.more += u64::from(both_slow);
        if case.rank() > self.subject.rank() {
            self.subject = case;
        }
        true
    }
}

/// Decides which slow requests and times away get a capture.
///
/// The first one gets a capture at once. Those of the next time of `every` compete for one capture,
/// which the slowest gets when that time is over. All times are of the trace, so a reader that gets
/// its CPU late finds the same.
#[derive(Debug)]
pub(crate) struct Gate {
    before: u64,
    /// Minimum time between captures, in nanoseconds.
    every: u64,
    /// Minimum time between captures of requests that are still open on unknown queues, in
    /// nanoseconds.
    every_unknown: u64,
    last: Option<BootNanos>,
    last_unknown: Option<BootNanos>,
    /// Windows whose captures are to be written, oldest first.
    ready: VecDeque<Window>,
    /// Window of the slowest case since the last capture.
    candidate: Option<Window>,
    /// Slow requests since the last capture that got none.
    missed: MissedRequests,
    /// Number of all slow requests.
    pub(crate) slow: u64,
    /// Number of all times away, and nanoseconds of them.
    pub(crate) away: (u64, u64),
}

/// Slow requests without a capture: their number, and the longest time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissedRequests {
    pub(crate) count: u64,
    pub(crate) longest: u64,
}

impl Gate {
    pub(crate) fn new(before: u64, every: Duration, every_unknown: Duration) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            before,
            every: nanos(every),
            every_unknown: nanos(every_unknown),
            last: None,
            last_unknown: None,
            ready: VecDeque::new(),
            candidate: None,
            missed: MissedRequests::default(),
            slow: 0,
            away: (0, 0),
        }
    }

    /// Takes a slow request or a time away; `writing` captures are being written. Returns false if
    /// an open request must be handed over again: it hangs, and gets its capture later.
    pub(crate) fn case(&mut self, case: Incident, writing: usize) -> bool {
        self.advance(case.end, writing);
        let before = self.before;
        let mut windows = self.ready.iter_mut().chain(&mut self.candidate);
        if windows.any(|window| window.join(case, before)) {
            self.count(&case);
            return true;
        }
        let is_unknown = case.reason.is_open_on_unknown_queue();
        if is_unknown && !is_over(self.last_unknown, self.every_unknown, case.end) {
            self.miss(&case);
            return true;
        }
        let is_taken = if !is_over(self.last, self.every, case.end) {
            self.propose(case)
        } else if self.has_room(writing) {
            self.last = Some(case.end);
            self.ready.push_back(Window::new(case, before));
            true
        } else {
            false
        };
        if is_taken {
            self.count(&case);
            if is_unknown {
                self.last_unknown = Some(case.end);
            }
        } else if !case.reason.is_open() {
            self.miss(&case);
        }
        is_taken || !case.reason.is_open()
    }

    /// Makes a case the candidate for the next capture if it is worse than the present one. An open
    /// request stays the candidate: it is handed over only once.
    fn propose(&mut self, case: Incident) -> bool {
        if let Some(present) = &self.candidate
            && (present.subject.reason.is_open() || present.subject.rank() >= case.rank())
        {
            return false;
        }
        let replaced = self.candidate.replace(Window::new(case, self.before));
        self.drop_window(replaced);
        true
    }

    /// Makes the candidate's capture due if the time until then is over at `now`.
    pub(crate) fn advance(&mut self, now: BootNanos, writing: usize) {
        if self.candidate.is_none() || !is_over(self.last, self.every, now) {
            return;
        }
        let candidate = self.candidate.take();
        // The next capture is as far from this one as from one that was taken at once.
        self.last = self
            .last
            .map(|last| BootNanos(last.0.saturating_add(self.every)));
        if self.has_room(writing) {
            self.ready.extend(candidate);
        } else {
            self.drop_window(candidate);
        }
    }

    /// Returns true if one more capture may wait to be written.
    fn has_room(&self, writing: usize) -> bool {
        self.ready.len() + writing < MAX_WAITING_CAPTURES
    }

    fn count(&mut self, case: &Incident) {
        match case.reason {
            Reason::Slow(_) => self.slow += 1,
            Reason::Away(_) => {
                self.away = (self.away.0 + 1, self.away.1.saturating_add(case.length()));
            }
        }
    }

    /// Counts a case that gets no capture.
    fn miss(&mut self, case: &Incident) {
        self.count(case);
        self.missed.add(case, 0);
    }

    /// Counts the requests of a window that gets no capture.
    fn drop_window(&mut self, window: Option<Window>) {
        if let Some(window) = window {
            self.missed.add(&window.subject, window.more);
        }
    }

    /// Returns the next time for which a capture is to be written.
    pub(crate) fn ready(&self) -> Option<&Window> {
        self.ready.front()
    }

    /// Returns the time that gets the next capture unless a slower request comes.
    pub(crate) fn candidate(&self) -> Option<&Window> {
        self.candidate.as_ref()
    }

    /// Takes the next window, with the slow requests since the last one that got no capture.
    pub(crate) fn take(&mut self) -> Option<(Window, MissedRequests)> {
        self.ready
            .pop_front()
            .map(|window| (window, std::mem::take(&mut self.missed)))
    }

    /// Returns the slow requests since the last capture that got none.
    pub(crate) fn missed(&self) -> MissedRequests {
        self.missed
    }
}

impl MissedRequests {
    /// Counts a case, if it is a request, and `more` other requests.
    fn add(&mut self, case: &Incident, more: u64) {
        if case.reason.slow().is_some() {
            self.count += 1 + more;
            self.longest = self.longest.max(case.length());
        }
    }
}

/// Returns true if `every` nanoseconds have passed since the last time.
fn is_over(last: Option<BootNanos>, every: u64, now: BootNanos) -> bool {
    last.is_none_or(|last| now.0 >= last.0.saturating_add(every))
}

#[cfg(test)]
mod tests;
