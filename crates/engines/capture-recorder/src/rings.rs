//! The trace of a capture: follows the rings, and writes their records.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture::{Meta, OwnerSnapshot, RingsWriter, SOCKETS};
use kernel_events::ProcessSet;
use scene::{Anchor, BootNanos};
use socket_requests::{SocketRequests, Totals};
use spdk_trace::{Follower, Lcore, Tail};
use sys::clock::boot_nanos;
use text::printable::path as printable;
use trace_source::{Batch, FileSource, Pressure, Reader, trace_of};

use super::clocks::{self, ReadBoth};
use super::facts;
use super::stored::{Checkpoint, Marks};

/// Time between two readings of the owners: readers of the capture hold records back for longer
/// than that.
const OWNER_REFRESH_INTERVAL: Duration = Duration::from_millis(25);

/// Number of attempts to open the trace file.
const MAX_TRIES: usize = 5;
/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Source of the requests of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestSource {
    /// The trace of SPDK that the process writes.
    Trace,
    /// Its sockets.
    Sockets,
}

/// Trace file that can be captured.
pub struct Rings {
    /// Path of the trace file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub source: FileSource,
    /// Follower that puts its records in order.
    pub follower: Follower,
    /// Source of the trace, if it is not the process itself.
    pub sockets: Option<SocketRequests>,
}

impl Rings {
    /// Opens the trace of this source. Only the first process may have one of SPDK.
    ///
    /// # Errors
    ///
    /// Fails if the process writes no trace, or its sockets can't be watched.
    pub fn open_source(source: RequestSource, processes: &ProcessSet) -> anyhow::Result<Self> {
        match source {
            RequestSource::Trace => Self::open(processes.first()),
            RequestSource::Sockets => Self::open_sockets(processes),
        }
    }

    /// Opens the trace file that the process writes. If the process has just been started, the file
    /// may be incomplete at first.
    fn open(pid: u32) -> anyhow::Result<Self> {
        for _ in 1..MAX_TRIES {
            if let Ok(rings) = Self::open_once(pid) {
                return Ok(rings);
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
        Self::open_once(pid)
    }

    fn open_once(pid: u32) -> anyhow::Result<Self> {
        let path = trace_of(pid)?;
        let reading = || format!("reading {}", printable(&path));
        let source = FileSource::open(&path).with_context(reading)?;
        let follower = Follower::new(&source).with_context(reading)?;
        Ok(Self {
            path,
            source,
            follower,
            sockets: None,
        })
    }

    /// Starts to record the requests that processes get at their sockets.
    fn open_sockets(processes: &ProcessSet) -> anyhow::Result<Self> {
        let sockets = SocketRequests::start(processes)?;
        let path = sockets.path().to_owned();
        let source = FileSource::open(&path).context("reading the requests")?;
        let follower = Follower::new(&source).context("reading the requests")?;
        Ok(Self {
            path,
            source,
            follower,
            sockets: Some(sockets),
        })
    }

    /// Returns the rings that threads of the process write, with the names of these.
    pub fn thread_rings(&self) -> impl Iterator<Item = (Lcore, &str)> {
        let has_own = self.sockets.is_none();
        self.follower.lcores().filter(move |_| has_own)
    }

    /// Describes the trace in the facts of a capture, whose process is described.
    pub fn describe(&self, meta: &mut Meta) {
        if self.sockets.is_some() {
            meta.requests = Some(SOCKETS.to_owned());
            return;
        }
        meta.process.trace_file = Some(facts::path(&self.path));
        meta.lcores = facts::lcore_threads(self.thread_rings(), &meta.process.threads);
    }

    /// Returns the function that reads the clock of its ticks together with the boot clock.
    pub fn clock(&self) -> ReadBoth {
        if self.sockets.is_some() {
            clocks::boot_reading
        } else {
            clocks::reading
        }
    }

    /// Starts to follow it.
    pub(crate) fn follow(self, file: File, is_prompt: bool) -> anyhow::Result<RingRecorder> {
        let mut writer = RingsWriter::begin(file).context("writing trace.rings")?;
        let around = OwnerSnapshot::begin(&self.source, &self.follower, &mut writer)
            .context("copying the trace's header")?;
        let lcores: Vec<Lcore> = self.follower.rings().map(|(lcore, _)| lcore).collect();
        let tail: Tail = self.follower.tail();
        let start = boot_nanos();
        let reader = Reader::start(tail, self.source.again()?, is_prompt)?;
        Ok(RingRecorder {
            writer,
            around,
            source: self.source,
            continuation_id: self.follower.tpoints().continuation_id(),
            lcores,
            reader,
            start,
            reached: BootNanos(0),
            is_idle: false,
            refreshed: Instant::now(),
            records: 0,
            lost: 0,
            wrote: BTreeSet::new(),
            marks: Marks::default(),
            sockets: self.sockets,
            seen: None,
        })
    }
}

/// Trace that is being followed.
pub(crate) struct RingRecorder {
    pub(crate) writer: RingsWriter<File>,
    around: OwnerSnapshot,
    source: FileSource,
    continuation_id: u16,
    lcores: Vec<Lcore>,
    reader: Reader,
    /// Start time of the reader, in nanoseconds of the boot clock.
    start: u64,
    /// Start of the last poll written; 0 if there is none yet.
    pub(crate) reached: BootNanos,
    /// True if the last call of [`Self::next`] returned nothing.
    pub(crate) is_idle: bool,
    refreshed: Instant,
    /// Records passed to the writer.
    pub(crate) records: u64,
    /// Slots lost before these.
    pub(crate) lost: u64,
    /// Lcores whose rings were written.
    pub(crate) wrote: BTreeSet<Lcore>,
    /// States that have reached the file.
    marks: Marks,
    /// Recording of sockets that writes the trace.
    sockets: Option<SocketRequests>,
    /// Its totals, once it has ended.
    seen: Option<Totals>,
}

impl RingRecorder {
    /// Returns the next batch, if it arrives in time.
    pub(crate) fn next(&self, at_most: Duration) -> Option<Batch> {
        self.reader.next(at_most)
    }

    /// Writes a batch.
    pub(crate) fn write(&mut self, batch: Batch) -> io::Result<()> {
        let Batch { copied, at, .. } = batch;
        if copied.is_empty() && at == Duration::MAX {
            return Ok(());
        }
        for run in copied.runs() {
            self.wrote.extend(self.lcores.get(run.ring));
            self.records += run.records(self.continuation_id).0;
            self.lost += run.lost;
        }
        let at = BootNanos(self.start + u64::try_from(at.as_nanos()).unwrap_or_default());
        let written = self.writer.poll(&copied, &self.lcores, at);
        self.reached = at;
        copied
            .into_buffers()
            .for_each(|bytes| self.reader.give_back(bytes));
        written
    }

    /// Writes the owners that have changed, if `must` or if it is time for that.
    pub(crate) fn refresh(&mut self, must: bool) -> io::Result<()> {
        if !must && self.refreshed.elapsed() < OWNER_REFRESH_INTERVAL {
            return Ok(());
        }
        self.refreshed = Instant::now();
        self.around.refresh(&self.source, &mut self.writer)
    }

    pub(crate) fn anchor(&mut self, anchor: Anchor) -> io::Result<()> {
        self.writer.anchor(anchor)
    }

    /// Writes the buffered chunks.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.marks.add(Checkpoint {
            bytes: self.writer.flushed(),
            records: self.records,
            lost: self.lost,
        });
        Ok(())
    }

    /// Returns true if the process itself writes the trace.
    pub(crate) fn is_of_process(&self) -> bool {
        self.sockets.is_none() && self.seen.is_none()
    }

    /// Makes the reader poll once more, and end. A recording of sockets is ended before.
    ///
    /// # Errors
    ///
    /// Fails if that recording has failed. The reader ends in any case.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        let seen = self.sockets.take().map(SocketRequests::finish).transpose();
        self.reader.stop();
        self.seen = seen.context("recording sockets")?;
        Ok(())
    }

    /// Ends the reader; returns the states that have reached the file, the reasons for lost slots,
    /// and the totals of a recording of sockets.
    pub(crate) fn finish(self) -> (Marks, Pressure, Option<Totals>) {
        (self.marks, self.reader.finish(), self.seen)
    }
}
