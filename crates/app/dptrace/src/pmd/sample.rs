//! Takes a sample: the kernel's events and the daemon's answers over the same time.

use std::time::{Duration, Instant};

use capture_recorder::plain;
use kernel_events::{Facts, Found, Intervals, Keep};
use observer::Progress;
use scene::{BootNanos, Tid};
use sys::clock::{boot_nanos, monotonic_nanos};

use super::ask::{Answers, Asked};
use super::subject::Subject;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Bytes of the ring between the kernel and us.
const RING: u32 = 4 << 20;
/// The longest wait for events.
const TURN: Duration = Duration::from_millis(50);
/// Intervals that are kept of a thread: 25 MiB.
const MOST: usize = 1 << 20;

/// What was seen.
pub(super) struct Sample {
    pub(super) found: Found,
    pub(super) answers: Answers,
    /// What is added to `CLOCK_MONOTONIC`, the clock of Open vSwitch's history, to get that of the intervals.
    pub(super) offset: u64,
}

/// Looks at the threads for that time, or until a signal comes.
pub(super) fn take(subject: &Subject, length: Duration, interrupt: Interrupt) -> anyhow::Result<Sample> {
    let facts = Facts::read().map_err(plain)?;
    let tids: Vec<Tid> = subject.threads.iter().map(|thread| Tid(thread.tid)).collect();
    let keep = Keep { at_least: 0, most: MOST };
    let mut intervals = Intervals::start(&facts, subject.pid, &tids, RING, keep).map_err(plain)?;
    let offset = boot_nanos().saturating_sub(monotonic_nanos());
    let is_ovs = subject.threads.iter().any(|thread| thread.core.is_some());
    let asking = Asked::of(subject.pid, &subject.sockets).start(is_ovs)?;
    let (begun, mut progress) = (Instant::now(), Progress::expected(&terminal::observer(), length));
    while begun.elapsed() < length && !interrupt.is_requested() {
        intervals.next(TURN.min(length.saturating_sub(begun.elapsed()))).map_err(plain)?;
        progress.show(|since| format!("looking, {:.1} s left", length.saturating_sub(since).as_secs_f64()));
    }
    asking.end();
    while !asking.is_over() {
        intervals.next(TURN).map_err(plain)?;
        crate::interrupt::step();
    }
    let answers = asking.answers();
    let found = intervals.finish(BootNanos(boot_nanos())).map_err(plain)?;
    Ok(Sample { found, answers, offset })
}
