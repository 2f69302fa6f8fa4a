//! Parts of the past that are kept: the time around slow requests and times away, and the limit on
//! their rate.

use std::time::{Duration, Instant};

use scene::{BootNanos, Tid};

use super::detect::SlowRequest;

/// Time after the end of a request that its capture has, in nanoseconds.
const TAIL_NANOS: u64 = 1_000_000;
/// Time after the end of the first slow request within which others join its capture, in
/// nanoseconds.
const MERGE_WINDOW_NANOS: u64 = 10_000_000;

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
        let rank = |it: &Incident| {
            let reason = &it.reason;
            (reason.slow().is_some(), reason.is_open(), it.length())
        };
        let both_slow = case.reason.slow().is_some() && self.subject.reason.slow().is_some();
        self.more += u64::from(both_slow);
        if rank(&case) > rank(&self.subject) {
            self.subject = case;
        }
        true
    }
}

/// Decides which slow requests and times away get a capture.
#[derive(Debug)]
pub(crate) struct Gate {
    before: u64,
    every: Duration,
    /// Minimum time between captures of requests that are still open on unknown queues.
    every_unknown: Duration,
    last: Option<Instant>,
    last_unknown: Option<Instant>,
    window: Option<Window>,
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
        let (last, last_unknown, window, missed) = (None, None, None, MissedRequests::default());
        Self {
            before,
            every,
            every_unknown,
            last,
            last_unknown,
            window,
            missed,
            slow: 0,
            away: (0, 0),
        }
    }

    /// Takes a slow request or a time away; `is_free` is true if a capture can be written now.
    /// Returns false if an open request must be handed over again: it hangs, and gets its capture
    /// when the one before is done.
    pub(crate) fn case(&mut self, case: Incident, is_free: bool, now: Instant) -> bool {
        let is_joined = self
            .window
            .as_mut()
            .is_some_and(|window| window.join(case, self.before));
        if is_joined {
            self.count(&case);
            return true;
        }
        let is_over = |last: Option<Instant>, every| {
            last.is_none_or(|last| now.duration_since(last) >= every)
        };
        let is_unknown = case.reason.is_open_on_unknown_queue();
        if is_unknown && !is_over(self.last_unknown, self.every_unknown) {
            self.miss(&case);
            return true;
        }
        if self.window.is_some() || !is_free || !is_over(self.last, self.every) {
            if !case.reason.is_open() {
                self.miss(&case);
            }
            return !case.reason.is_open();
        }
        self.count(&case);
        self.last = Some(now);
        if is_unknown {
            self.last_unknown = Some(now);
        }
        self.window = Some(Window::new(case, self.before));
        true
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
        if case.reason.slow().is_some() {
            self.missed.count += 1;
            self.missed.longest = self.missed.longest.max(case.length());
        }
    }

    /// Returns the time for which a capture is to be written.
    pub(crate) fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// Takes this window, with the slow requests since the last one that got no capture.
    pub(crate) fn take(&mut self) -> Option<(Window, MissedRequests)> {
        self.window
            .take()
            .map(|window| (window, std::mem::take(&mut self.missed)))
    }

    /// Returns the slow requests since the last capture that got none.
    pub(crate) fn missed(&self) -> MissedRequests {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use spdk_trace::{Lcore, Ticks};

    use super::*;
    use timeline::judge::RequestId;

    fn case(begin: u64, end: u64, is_open: bool) -> Incident {
        let wanted = RequestId {
            begin: Ticks(begin),
            lcore: Lcore(0),
            first: 1,
        };
        let slow = SlowRequest {
            wanted,
            end: Ticks(end),
            is_open,
            is_queue_known: !is_open,
        };
        Incident {
            reason: Reason::Slow(slow),
            begin: BootNanos(begin),
            end: BootNanos(end),
        }
    }

    fn away(begin: u64, end: u64) -> Incident {
        Incident {
            reason: Reason::Away(Tid(7)),
            begin: BootNanos(begin),
            end: BootNanos(end),
        }
    }

    #[test]
    fn a_slow_request_goes_before_a_time_away() {
        let now = Instant::now();
        let gate = || Gate::new(0, Duration::from_secs(1), Duration::from_mins(1));
        let (request, away) = (case(100 * MS, 120 * MS, false), away(100 * MS, 130 * MS));
        for (first, second) in [(request, away), (away, request)] {
            let mut gate = gate();
            gate.case(first, true, now);
            gate.case(second, true, now);
            let (window, _) = gate.take().unwrap();
            assert_eq!((window.subject, window.more), (request, 0));
            assert_eq!((gate.slow, gate.away), (1, (1, 30 * MS)));
        }
        // A time away without a capture is counted, but not among the slow requests without one.
        let mut gate = gate();
        gate.case(away, false, now);
        assert_eq!(
            (gate.take(), gate.missed(), gate.away),
            (None, MissedRequests::default(), (1, 30 * MS))
        );
    }

    #[test]
    fn an_open_request_goes_before_one_that_ended_and_waits_for_its_capture() {
        let start = Instant::now();
        let mut gate = Gate::new(0, Duration::from_secs(1), Duration::from_mins(1));
        let (ended, open) = (case(0, 1_500 * MS, false), case(400 * MS, 1_500 * MS, true));
        assert!(gate.case(ended, true, start));
        assert!(gate.case(open, true, start));
        let (window, _) = gate.take().unwrap();
        assert_eq!((window.subject, window.more, gate.slow), (open, 1, 2));
        // While a capture is written, and for a while after it, the request comes again.
        let mut gate = Gate::new(0, Duration::from_secs(1), Duration::from_mins(1));
        assert!(gate.case(case(0, 150 * MS, false), true, start));
        assert!(!gate.case(open, true, start));
        assert!(gate.take().is_some());
        assert!(!gate.case(open, false, start));
        assert!(!gate.case(open, true, start));
        assert!(gate.case(open, true, start + Duration::from_secs(1)));
        let (window, missed) = gate.take().unwrap();
        assert_eq!((window.subject, gate.slow), (open, 2));
        assert_eq!(missed, MissedRequests::default());
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn requests_that_end_together_are_one_capture() {
        let mut gate = Gate::new(5 * MS, Duration::from_secs(1), Duration::from_mins(1));
        let now = Instant::now();
        gate.case(case(100 * MS, 102 * MS, false), true, now);
        // It is slower, and began earlier.
        gate.case(case(90 * MS, 103 * MS, false), true, now);
        gate.case(case(101 * MS, 104 * MS, false), true, now);
        // Another time.
        gate.case(case(120 * MS, 125 * MS, false), true, now);
        let (window, missed) = gate.take().unwrap();
        assert_eq!(
            (window.from.0, window.until.0, window.more),
            (85 * MS, 105 * MS, 2)
        );
        assert_eq!(window.subject.length(), 13 * MS);
        assert_eq!(
            (missed, gate.slow),
            (
                MissedRequests {
                    count: 1,
                    longest: 5 * MS
                },
                4
            )
        );
        assert_eq!(
            (gate.take(), gate.missed()),
            (None, MissedRequests::default())
        );
    }

    #[test]
    fn a_storm_is_counted() {
        let mut gate = Gate::new(0, Duration::from_secs(1), Duration::from_mins(1));
        let start = Instant::now();
        let (mut captures, mut missed) = (0, 0);
        for ms in (0..10_000_u64).step_by(100) {
            // Each tenth time, the last one is still being written.
            let is_free = ms % 1_000 != 0 || ms == 0;
            gate.case(
                case(ms * MS, (ms + 2) * MS, false),
                is_free,
                start + Duration::from_millis(ms),
            );
            if let Some((_, before)) = gate.take() {
                (captures, missed) = (captures + 1, missed + before.count);
            }
        }
        missed += gate.missed().count;
        assert_eq!((captures, captures + missed, gate.slow), (10, 100, 100));
        // Async events of an unknown queue.
        let mut gate = Gate::new(0, Duration::from_secs(1), Duration::from_mins(1));
        let captures = (0..120).filter(|second| {
            gate.case(
                case(0, second * 1_000 * MS, true),
                true,
                start + Duration::from_secs(*second),
            );
            gate.take().is_some()
        });
        assert_eq!(captures.count(), 2);
    }
}
