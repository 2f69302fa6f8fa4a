//! Activities of threads: each interval, and sums by the minute.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use scene::{Activity, BootNanos, Interval, Tid, Waker};
use tables::rows;
use timeline::source::Source;
use timeline::words;

use super::consumer::Facts;
use super::files::Files;

const MINUTE: i64 = 60_000_000_000;
/// Limit on the sums kept. Beyond it, all are written: the sums of one minute may then span several
/// rows.
const MAX_SUMS: usize = 65_536;

/// Returns the start of a time's minute.
pub(crate) fn minute_of(utc: i64) -> i64 {
    utc.div_euclid(MINUTE) * MINUTE
}

/// Returns the name of an activity.
fn name(activity: Activity) -> &'static str {
    match activity {
        Activity::Runs => "runs",
        Activity::Calls(_) => "calls",
        Activity::Interrupted(_) => "interrupted",
        Activity::Waits(_) => "preempted",
        Activity::Woken(_) => "woken",
        Activity::Blocked { .. } => "blocked",
        Activity::Stopped(_) => "stopped",
        Activity::Ended => "ended",
        Activity::Unknown => "unknown",
    }
}

/// Names the system call, the interrupt, the thread that ran instead, or the sender of the signal
/// that stopped it. A call that blocks is one cause, whoever wakes the thread.
fn cause(source: &Source, activity: Activity, at: BootNanos) -> Option<String> {
    match activity {
        Activity::Calls(call)
        | Activity::Blocked {
            call: Some(call), ..
        } => Some(source.call(call)),
        Activity::Interrupted(interrupt) => Some(words::interrupt(interrupt)),
        Activity::Waits(tid) | Activity::Woken(tid) => Some(source.thread(tid, at)),
        Activity::Stopped(Some(by)) => Some(source.sender_name(by, at)),
        _ => None,
    }
}

fn other(activity: Activity) -> Option<Tid> {
    match activity {
        Activity::Waits(tid)
        | Activity::Woken(tid)
        | Activity::Stopped(Some(tid))
        | Activity::Blocked {
            by: Waker::Thread(tid),
            ..
        } => Some(tid),
        _ => None,
    }
}

/// Names the thread or the interrupt that ended a wait.
fn waker(source: &Source, activity: Activity, at: BootNanos) -> Option<String> {
    match activity {
        Activity::Blocked {
            by: Waker::Thread(tid),
            ..
        } => Some(source.thread(tid, at)),
        Activity::Blocked {
            by: Waker::Interrupt(interrupt),
            ..
        } => Some(words::interrupt(interrupt)),
        _ => None,
    }
}

/// Writes each interval.
pub(crate) struct Intervals {
    pub(crate) files: Files,
    lcores: HashMap<Tid, i64>,
}

impl Intervals {
    pub(crate) fn new(files: Files, source: &Source) -> Self {
        let lcores = source
            .lcores
            .iter()
            .map(|(lcore, tid)| (*tid, i64::from(lcore.0)))
            .collect();
        Self { files, lcores }
    }

    pub(crate) fn write(
        &mut self,
        tid: Tid,
        interval: Interval,
        facts: &Facts<'_>,
    ) -> anyhow::Result<()> {
        let Interval { from, to, activity } = interval;
        let source = facts.source;
        let (thread, cause) = (source.thread(tid, from), cause(source, activity, from));
        let (start_ns, other) = (facts.times.utc(from), other(activity));
        self.files.row(
            start_ns,
            &rows::KernelInterval {
                hostname: &facts.hostname,
                capture: &facts.capture,
                start_ns,
                interval_ns: (to.0 - from.0).cast_signed(),
                pid: facts.pid,
                tid: tid.0.into(),
                thread: &thread,
                lcore: self.lcores.get(&tid).copied(),
                activity: name(activity),
                taken: activity.is_taken(),
                caused_by: cause.as_deref(),
                woken_by: waker(source, activity, to).as_deref(),
                cause_tid: other.map(|tid| tid.0.into()),
                cause_is_own: other.map(|tid| source.is_own(tid)),
            },
        )
    }
}

/// Activity of one thread in one minute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ActivityKey {
    minute: i64,
    tid: Tid,
    activity: &'static str,
    /// Name of the cause: threads with one name count as one, since a compiler has many. A thread
    /// may change its name.
    cause: Option<String>,
}

/// Times of an activity.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Time at which it was first seen, for the name of the thread.
    seen: BootNanos,
    taken: bool,
    total: i64,
    times: i64,
    longest: i64,
}

/// Sums up activities by the minute, and writes the sums.
pub(crate) struct Budgets {
    files: Files,
    sums: HashMap<ActivityKey, Sum, RandomState>,
}

impl Budgets {
    pub(crate) fn new(files: Files) -> Self {
        Self {
            files,
            sums: HashMap::default(),
        }
    }

    /// Adds an interval to the minutes in which it lies. It counts in the minute in which it began.
    pub(crate) fn add(
        &mut self,
        tid: Tid,
        interval: Interval,
        facts: &Facts<'_>,
    ) -> anyhow::Result<()> {
        let Interval {
            from: seen,
            to,
            activity,
        } = interval;
        let (mut from, end) = (facts.times.utc(seen), facts.times.utc(to));
        let cause = cause(facts.source, activity, seen);
        let mut times = 1;
        while from < end {
            let minute = minute_of(from);
            let to = end.min(minute + MINUTE);
            let what = ActivityKey {
                minute,
                tid,
                activity: name(activity),
                cause: cause.clone(),
            };
            let sum = self.sums.entry(what);
            let sum = sum.or_insert_with(|| Sum {
                seen,
                taken: activity.is_taken(),
                ..Sum::default()
            });
            sum.total += to - from;
            sum.times += times;
            sum.longest = sum.longest.max(to - from);
            (from, times) = (to, 0);
        }
        if self.sums.len() > MAX_SUMS {
            self.write(facts)
        } else {
            Ok(())
        }
    }

    /// Writes all sums, and starts over.
    fn write(&mut self, facts: &Facts<'_>) -> anyhow::Result<()> {
        for (what, sum) in self.sums.drain() {
            let row = rows::ThreadBudget {
                hostname: &facts.hostname,
                capture: &facts.capture,
                minute_ns: what.minute,
                pid: facts.pid,
                tid: what.tid.0.into(),
                thread: &facts.source.thread(what.tid, sum.seen),
                activity: what.activity,
                taken: sum.taken,
                caused_by: what.cause.as_deref(),
                total_ns: sum.total,
                times: Some(sum.times),
                longest_ns: Some(sum.longest),
            };
            self.files.row(what.minute, &row)?;
        }
        Ok(())
    }

    /// Writes the remaining sums.
    pub(crate) fn finish(mut self, facts: &Facts<'_>) -> anyhow::Result<Files> {
        self.write(facts)?;
        Ok(self.files)
    }
}
