//! Follower of the trace of one process until it ends, which counts the times of its requests.

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
use trace_source::{Batch, FileSource, HOLD_TIME, RateMeasurement, Reader};

use super::naming::ConnectionResolver;
use super::stages::{ClockReading, Stages};
use super::store::Shared;
use super::{LOST_REQUESTS, LOST_SLOTS};

/// Longest wait for records, after which the process is checked to be alive.
const BATCH_TIMEOUT: Duration = Duration::from_millis(250);
/// Limit on the bytes of slots that wait: beyond it the rings are not polled.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Time for which records are held back if half of [`MAX_QUEUED_BYTES`] waits.
const BUSY_HOLD_TIME: Duration = Duration::from_millis(5);
/// Time between two readings of the owners: records are held back for longer than that.
const OWNER_REFRESH_INTERVAL: Duration = Duration::from_millis(25);
/// Number of finished objects that are counted at once.
const COUNT_BATCH: usize = 4096;
/// Time between two measurements of the ticks' rate.
const RATE_INTERVAL: Duration = Duration::from_secs(1);
/// Age in seconds from which on objects may be forgotten.
const FORGET_AGE_SECONDS: u64 = 60;

/// Process and trace to follow.
pub(crate) struct FollowTask<'a> {
    pub(crate) pid: u32,
    pub(crate) path: &'a Path,
    /// Name under which it is counted.
    pub(crate) process: &'a str,
    /// True if records that are in the rings now count.
    pub(crate) from_beginning: bool,
    pub(crate) probes: bool,
    pub(crate) is_prompt: bool,
    /// Set while it is being followed.
    pub(crate) reads: &'a AtomicBool,
}

/// Trace that is being followed.
struct Trace {
    source: FileSource,
    follower: Follower,
    reader: Reader,
    rate: Rate,
    refreshed: Option<Instant>,
    /// Number of changes of the owners that are known.
    changes: u64,
    /// Time up to which the reader's last batch goes.
    until: Duration,
    is_over: bool,
}

/// Knowledge of connections beside the trace.
struct ConnectionLookup {
    session: Option<Session>,
    annotator: Annotator,
    observer: Observer,
}

/// Rate of the ticks, measured continuously.
struct Rate {
    stated: TickRate,
    measuring: RateMeasurement,
    measured: TickRate,
    at: Instant,
}

/// Follows a trace until the process ends or `stop` is set.
///
/// # Errors
///
/// Fails if the trace can't be read any more.
pub(crate) fn follow(
    what: &FollowTask<'_>,
    specs: &[ObjectSpec],
    shared: &Shared,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let failing = || format!("reading {}", printable::path(what.path));
    let source = FileSource::open(what.path).with_context(failing)?;
    let follower = Follower::new(&source).with_context(failing)?;
    let tpoints = follower.tpoints().all();
    let mut stages = Stages::new(
        tpoints,
        ConnectionResolver::new(specs, tpoints)?,
        Queues::new(specs)?,
    );
    let mut annotator = annotate_quietly("", specs.to_vec(), follower.tpoints());
    annotator.extend_from(Ticks(sys::clock::ticks()));
    // Before the first record is read: the objects found name all later records.
    let session = Objects::start(what.pid, specs, what.probes, SMALL_RING, &shared.observer)
        .map(|objects| objects.session);
    if let Err(error) = &session {
        shared.observer.note(&format!(
            "process {}: connections have only the names in its trace: {}",
            what.pid,
            shared.observer.explain(error)
        ));
    }
    let mut known = ConnectionLookup {
        session: session.ok(),
        annotator,
        observer: shared.observer.clone(),
    };
    let mut trace = Trace::start(source, follower, what).with_context(failing)?;
    let writers = trace
        .follower
        .lcores()
        .map(|(lcore, name)| thread_name(lcore, name));
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
    fn start(
        source: FileSource,
        follower: Follower,
        what: &FollowTask<'_>,
    ) -> anyhow::Result<Self> {
        let mut tail = follower.tail();
        if !what.from_beginning {
            tail.skip(&source)?;
        }
        let rate = Rate::new(follower.tick_rate());
        let reader = Reader::start_within(tail, source.again()?, what.is_prompt, MAX_QUEUED_BYTES)?;
        let (refreshed, changes, until) = (None, 0, Duration::ZERO);
        Ok(Self {
            source,
            follower,
            reader,
            rate,
            refreshed,
            changes,
            until,
            is_over: false,
        })
    }

    /// Takes the next batch; returns the number of slots lost before it.
    fn next(&mut self) -> anyhow::Result<u64> {
        let Some(batch) = self.reader.next(BATCH_TIMEOUT) else {
            return Ok(0);
        };
        let Batch {
            copied,
            at,
            is_last,
            failed,
        } = batch;
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

    /// Learns the owners of records.
    fn learn(&mut self, known: &mut ConnectionLookup, stages: &mut Stages) -> anyhow::Result<()> {
        if self
            .refreshed
            .is_none_or(|refreshed| refreshed.elapsed() >= OWNER_REFRESH_INTERVAL)
        {
            self.refreshed = Some(Instant::now());
            self.follower.refresh_owners(&self.source)?;
            let changes = self.follower.owners().changes();
            if changes != self.changes {
                self.changes = changes;
                let owners = self.follower.owners();
                known.annotator.know_owners(
                    owners.all(),
                    owners.are_all(),
                    self.follower.tick_rate(),
                );
                stages.renew();
            }
            if known.learn(self.follower.given()) {
                stages.renew();
            }
            self.rate.measure();
        }
        Ok(())
    }

    /// Counts the records that were held back for long enough.
    fn give(
        &mut self,
        known: &mut ConnectionLookup,
        stages: &mut Stages,
        shared: &Shared,
        process: &str,
    ) {
        let hold = if self.reader.waiting() > MAX_QUEUED_BYTES / 2 {
            BUSY_HOLD_TIME
        } else {
            HOLD_TIME
        };
        let context = Context {
            rate: self.rate.measured,
            annotator: Some(&known.annotator),
        };
        let now = self.rate.now();
        let mut records = 0;
        let each = |record: &Record<'_>| {
            records += 1;
            known.annotator.observe(record);
            stages.record(record, &context, |key| shared.lock().groups.id(key));
            if stages.waiting() >= COUNT_BATCH {
                count(stages, shared, process, now, &mut records);
            }
            ControlFlow::Continue(())
        };
        let _ = if self.is_over {
            self.follower.give_all(each)
        } else {
            self.follower.give(hold, each)
        };
        count(stages, shared, process, now, &mut records);
        let long_ago = self.rate.measured.get().saturating_mul(FORGET_AGE_SECONDS);
        stages.forget(Ticks(self.follower.given().0.saturating_sub(long_ago)));
        let reader = &self.reader;
        self.follower
            .spare()
            .for_each(|bytes| reader.give_back(bytes));
    }
}

/// Counts the objects found since the last call.
fn count(
    stages: &mut Stages,
    shared: &Shared,
    process: &str,
    now: ClockReading,
    records: &mut u64,
) {
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

impl ConnectionLookup {
    /// Takes what was found of objects; returns true if that was anything. Forgets objects that
    /// ended before `oldest` if there are many.
    fn learn(&mut self, oldest: Ticks) -> bool {
        let Some(session) = &mut self.session else {
            return false;
        };
        let lines = session.next(Duration::ZERO);
        if lines.is_empty() {
            return false;
        }
        self.annotator.learn(&lines);
        self.annotator.forget_if_many(oldest);
        true
    }
}

impl Drop for ConnectionLookup {
    fn drop(&mut self) {
        if let Some((_, Some(Err(error)))) = self.session.take().map(Session::finish) {
            self.observer.note(&format!("objects: {error}"));
        }
    }
}

impl Rate {
    fn new(stated: TickRate) -> Self {
        let mut rate = Self {
            stated,
            measuring: RateMeasurement::now(),
            measured: stated,
            at: Instant::now(),
        };
        rate.renew();
        rate
    }

    /// Measures the rate, if it is time for that.
    fn measure(&mut self) {
        if self.at.elapsed() >= RATE_INTERVAL {
            self.at = Instant::now();
            self.renew();
        }
    }

    fn renew(&mut self) {
        let right = self.measuring.finish(self.stated);
        // After the counter fell back, as on a machine that slept, the measurement begins anew.
        if right.is_none() {
            self.measuring = RateMeasurement::now();
        }
        self.measured = right.map_or(self.stated, |measured| measured.rate);
    }

    /// Returns the present ticks with the time of day.
    fn now(&self) -> ClockReading {
        ClockReading {
            ticks: Ticks(sys::clock::ticks()),
            utc: real_nanos(),
            rate: self.measured,
        }
    }
}
