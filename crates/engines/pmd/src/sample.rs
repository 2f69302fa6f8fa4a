//! Takes a sample: the kernel's events and the daemon's answers over the same time.

use std::time::{Duration, Instant};

use kernel_events::{IntervalLimits, Intervals, RecordedIntervals};
use observer::{Observer, Progress};
use scene::{BootNanos, Tid};
use sys::clock::{boot_nanos, monotonic_nanos};

use crate::Subject;
use crate::ask::{Answers, QueryTarget};

/// Size of the ring between the kernel and us, in bytes.
const RING: u32 = 4 << 20;
/// Limit on one wait for events.
const MAX_POLL_WAIT: Duration = Duration::from_millis(50);
/// Limit on the intervals kept of a thread: 25 MiB.
const MAX_INTERVALS: usize = 1 << 20;

/// Intervals and answers of the same time.
pub struct Sample {
    pub(crate) found: RecordedIntervals,
    pub(crate) answers: Answers,
    /// Nanoseconds to add to `CLOCK_MONOTONIC`, the clock of Open vSwitch's history, for that of
    /// the intervals.
    pub(crate) offset: u64,
}

impl Sample {
    /// Observes the threads for this time, or until the observer requests a stop.
    pub fn take(subject: &Subject, length: Duration, observer: &Observer) -> anyhow::Result<Self> {
        let facts = kernel_events::facts()?;
        let tids: Vec<Tid> = subject
            .threads
            .iter()
            .map(|thread| Tid(thread.tid))
            .collect();
        let keep = IntervalLimits {
            at_least: 0,
            most: MAX_INTERVALS,
        };
        let mut intervals = Intervals::start(&facts, subject.pid, &tids, RING, keep)?;
        let offset = boot_nanos().saturating_sub(monotonic_nanos());
        let is_ovs = subject.threads.iter().any(|thread| thread.core.is_some());
        let asking = QueryTarget::find(subject.pid, &subject.sockets).start(is_ovs)?;
        let (begun, mut progress) = (Instant::now(), Progress::expected(observer, length));
        while begun.elapsed() < length && !observer.is_stop_requested() {
            intervals.next(MAX_POLL_WAIT.min(length.saturating_sub(begun.elapsed())))?;
            progress.show(|since| {
                format!(
                    "looking, {:.1} s left",
                    length.saturating_sub(since).as_secs_f64()
                )
            });
        }
        asking.end();
        while !asking.is_over() {
            intervals.next(MAX_POLL_WAIT)?;
            observer.step();
        }
        let answers = asking.answers();
        let found = intervals.finish(BootNanos(boot_nanos()))?;
        Ok(Self {
            found,
            answers,
            offset,
        })
    }
}
