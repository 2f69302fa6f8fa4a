//! Follows the trace of one process until it ends, and counts what its requests took.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture_recorder::facts::thread_name;
use capture_recorder::{Objects, SMALL_RING};
use host::Watch;
use live_objects::{Session, annotate_quietly};
use objects::{Annotator, ObjectSpec};
use observer::Observer;
use records::Context;
use requests::Queues;
use spdk_trace::{Follower, Record, TickRate, Ticks};
use sys::clock::real_nanos;
use text::printable;
use trace_source::{Batch, FileSource, HOLD, Measuring, Reader};

use super::naming::Naming;
use super::stages::{Now, Stages};
use super::store::Shared;
use super::{LOST_REQUESTS, LOST_SLOTS};

/// The longest wait for records, after which it is seen whether the process still lives.
const WAIT: Duration = Duration::from_millis(250);
/// Bytes of slots that may wait: then the rings are not polled.
const WAITING: usize = 8 << 20;
/// Records are held back for this long if half of that waits.
const HURRIED: Duration = Duration::from_millis(5);
/// Time between two readings of the owners: records are held back for longer than that.
const OWNERS: Duration = Duration::from_millis(25);
/// Objects that are counted at once.
const AT_ONCE: usize = 4096;
/// Time between two measurements of the ticks' rate.
const MEASURED: Duration = Duration::from_secs(1);
/// Objects that began this long ago may be forgotten, in seconds.
const LONG_AGO: u64 = 60;

/// What is to be followed.
pub(crate) struct Following<'a> {
    pub(crate) pid: u32,
    pub(crate) path: &'a Path,
    /// The name under which it is counted.
    pub(crate) process: &'a str,
    /// Whether what is in the rings now counts.
    pub(crate) from_beginning: bool,
    pub(crate) probes: bool,
    pub(crate) is_prompt: bool,
    /// Set while it is being followed.
    pub(crate) reads: &'a AtomicBool,
}

/// A trace that is being followed.
struct Trace {
    source: FileSource,
    follower: Follower,
    reader: Reader,
    rate: Rate,
    refreshed: Option<Instant>,
    /// Changes of the owners that are known.
    changes: u64,
    /// Until when the reader's last batch went.
    until: Duration,
    is_over: bool,
}

/// What is known of connections beside the trace.
struct Known {
    session: Option<Session>,
    annotator: Annotator,
    observer: Observer,
}

/// The rate of the ticks, measured for as long as it takes.
struct Rate {
    stated: TickRate,
    measuring: Measuring,
    measured: TickRate,
    at: Instant,
}

/// Follows it until the process ends, `stop` is set, or the trace can't be read any more, which is an error.
pub(crate) fn follow(
    what: &Following<'_>,
    specs: &[ObjectSpec],
    shared: &Shared,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let failing = || format!("reading {}", printable::path(what.path));
    let source = FileSource::open(what.path).with_context(failing)?;
    let follower = Follower::new(&source).with_context(failing)?;
    let tpoints = follower.tpoints().all();
    let mut stages = Stages::new(tpoints, Naming::new(specs, tpoints)?, Queues::new(specs)?);
    let mut annotator = annotate_quietly("", specs.to_vec(), follower.tpoints());
    annotator.extend_from(Ticks(sys::clock::ticks()));
    // Before the first record is read: what was found names all that come from then on.
    let session =
        Objects::start(what.pid, specs, what.probes, SMALL_RING, &shared.observer).map(|objects| objects.session);
    if let Err(error) = &session {
        shared.observer.note(&format!(
            "process {}: connections have only the names that its trace has: {}",
            what.pid,
            shared.observer.explain(error)
        ));
    }
    let mut known = Known { session: session.ok(), annotator, observer: shared.observer.clone() };
    let mut trace = Trace::start(source, follower, what).with_context(failing)?;
    let writers = trace.follower.lcores().map(|(lcore, name)| thread_name(lcore, name));
    shared.lock().threads.write_trace(what.process, writers);
    let watch = Watch::new(what.pid, std::iter::empty())?;
    what.reads.store(true, Ordering::Release);
    loop {
        let lost = trace.next()?;
        if lost > 0 {
            known.annotator.lose_until(Ticks(sys::clock::ticks()));
        }
        trace.learn(&mut known, &mut stages)?;
        if lost > 0 {
            shared.lock().counts(what.process).lost[LOST_SLOTS] += lost;
        }
        trace.give(&mut known, &mut stages, shared, what.process);
        if trace.is_over {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) || watch.ended().is_some() {
            trace.reader.stop();
        }
    }
}

impl Trace {
    fn start(source: FileSource, follower: Follower, what: &Following<'_>) -> anyhow::Result<Self> {
        let mut tail = follower.tail();
        if !what.from_beginning {
            tail.skip(&source)?;
        }
        let rate = Rate::new(follower.tick_rate());
        let reader = Reader::start_within(tail, source.again()?, what.is_prompt, WAITING)?;
        let (refreshed, changes, until) = (None, 0, Duration::ZERO);
        Ok(Self { source, follower, reader, rate, refreshed, changes, until, is_over: false })
    }

    /// Takes over what came; how many slots were lost before it.
    fn next(&mut self) -> anyhow::Result<u64> {
        let Some(batch) = self.reader.next(WAIT) else { return Ok(0) };
        let Batch { copied, at, is_last, failed } = batch;
        self.is_over = is_last;
        if let Some(error) = failed {
            return Err(error.into());
        }
        let lost = copied.runs().map(|run| run.lost).sum();
        // The last one goes until the end.
        if at != Duration::MAX {
            self.until = at;
        }
        self.follower.take(copied, self.until);
        Ok(lost)
    }

    /// Learns whose records are.
    fn learn(&mut self, known: &mut Known, stages: &mut Stages) -> anyhow::Result<()> {
        if self.refreshed.is_none_or(|refreshed| refreshed.elapsed() >= OWNERS) {
            self.refreshed = Some(Instant::now());
            self.follower.refresh_owners(&self.source)?;
            let changes = self.follower.owners().changes();
            if changes != self.changes {
                self.changes = changes;
                let owners = self.follower.owners();
                known.annotator.know_owners(owners.all(), owners.are_all(), self.follower.tick_rate());
                stages.renew();
            }
            if known.learn(self.follower.given()) {
                stages.renew();
            }
            self.rate.measure();
        }
        Ok(())
    }

    /// Counts what was held back for long enough.
    fn give(&mut self, known: &mut Known, stages: &mut Stages, shared: &Shared, process: &str) {
        let hold = if self.reader.waiting() > WAITING / 2 { HURRIED } else { HOLD };
        let context = Context { rate: self.rate.measured, annotator: Some(&known.annotator) };
        let now = self.rate.now();
        let mut records = 0;
        let each = |record: &Record<'_>| {
            records += 1;
            known.annotator.observe(record);
            stages.record(record, &context, |key| shared.lock().groups.id(key));
            if stages.waiting() >= AT_ONCE {
                count(stages, shared, process, now, &mut records);
            }
            ControlFlow::Continue(())
        };
        let _ = if self.is_over { self.follower.give_all(each) } else { self.follower.give(hold, each) };
        count(stages, shared, process, now, &mut records);
        let long_ago = self.rate.measured.get().saturating_mul(LONG_AGO);
        stages.forget(Ticks(self.follower.given().0.saturating_sub(long_ago)));
        let reader = &self.reader;
        self.follower.spare().for_each(|bytes| reader.give_back(bytes));
    }
}

/// Counts what was found since the last call.
fn count(stages: &mut Stages, shared: &Shared, process: &str, now: Now, records: &mut u64) {
    if *records == 0 && stages.waiting() == 0 {
        return;
    }
    let mut store = shared.lock();
    let aside = stages.count(&mut store.groups, now);
    let counts = store.counts(process);
    counts.records += std::mem::take(records);
    counts.excluded += aside.excluded;
    counts.lost[LOST_REQUESTS] += aside.lost;
}

impl Known {
    /// Learns what has come; whether that was anything. What ended before that time is forgotten, when there is much.
    fn learn(&mut self, oldest: Ticks) -> bool {
        let Some(session) = &mut self.session else { return false };
        let lines = session.next(Duration::ZERO);
        if lines.is_empty() {
            return false;
        }
        self.annotator.learn(&lines);
        self.annotator.forget_if_many(oldest);
        true
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some((_, Some(Err(error)))) = self.session.take().map(Session::finish) {
            self.observer.note(&format!("objects: {error}"));
        }
    }
}

impl Rate {
    fn new(stated: TickRate) -> Self {
        let mut rate = Self { stated, measuring: Measuring::now(), measured: stated, at: Instant::now() };
        rate.renew();
        rate
    }

    /// Measures it, if it is time for that.
    fn measure(&mut self) {
        if self.at.elapsed() >= MEASURED {
            self.at = Instant::now();
            self.renew();
        }
    }

    fn renew(&mut self) {
        let right = self.measuring.finish(self.stated);
        // A counter that fell back, on a machine that slept, begins anew.
        if right.is_none() {
            self.measuring = Measuring::now();
        }
        self.measured = right.map_or(self.stated, |measured| measured.rate);
    }

    /// Ticks and the time of day, now.
    fn now(&self) -> Now {
        Now { ticks: Ticks(sys::clock::ticks()), utc: real_nanos(), rate: self.measured }
    }
}
