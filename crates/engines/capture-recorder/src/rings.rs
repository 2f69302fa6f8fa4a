//! The trace of a capture: follows the rings, and writes what comes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture::{Around, RingsWriter};
use scene::{Anchor, BootNanos};
use spdk_trace::{Follower, Lcore, Tail};
use sys::clock::boot_nanos;
use text::printable::path as printable;
use trace_source::{Batch, FileSource, Pressure, Reader, trace_of};

use super::stored::{Marks, Stored};

/// Time between two readings of the owners: records are held back for longer than that when the capture is read.
const OWNERS: Duration = Duration::from_millis(25);

/// How often the trace file is looked for,
const TRIES: usize = 5;
/// and the time between.
const PAUSE: Duration = Duration::from_millis(20);

/// A trace file that can be captured.
pub struct Rings {
    /// The trace file.
    pub path: PathBuf,
    /// The bytes of the file.
    pub source: FileSource,
    /// The follower that puts its records in order.
    pub follower: Follower,
}

impl Rings {
    /// The trace file that the process writes. That of one that has just been started may not be whole yet.
    pub fn open(pid: u32) -> anyhow::Result<Self> {
        for _ in 1..TRIES {
            if let Ok(rings) = Self::open_once(pid) {
                return Ok(rings);
            }
            std::thread::sleep(PAUSE);
        }
        Self::open_once(pid)
    }

    fn open_once(pid: u32) -> anyhow::Result<Self> {
        let path = trace_of(pid)?;
        let reading = || format!("reading {}", printable(&path));
        let source = FileSource::open(&path).with_context(reading)?;
        let follower = Follower::new(&source).with_context(reading)?;
        Ok(Self { path, source, follower })
    }

    /// Begins to follow it.
    pub(crate) fn follow(self, file: File, is_prompt: bool) -> anyhow::Result<Following> {
        let mut writer = RingsWriter::begin(file).context("writing trace.rings")?;
        let around = Around::begin(&self.source, &self.follower, &mut writer).context("copying the trace's header")?;
        let lcores: Vec<Lcore> = self.follower.rings().map(|(lcore, _)| lcore).collect();
        let tail: Tail = self.follower.tail();
        let start = boot_nanos();
        let reader = Reader::start(tail, self.source.again()?, is_prompt)?;
        Ok(Following {
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
        })
    }
}

/// A trace that is being followed.
pub(crate) struct Following {
    pub(crate) writer: RingsWriter<File>,
    around: Around,
    source: FileSource,
    continuation_id: u16,
    lcores: Vec<Lcore>,
    reader: Reader,
    /// When the reader was started, on the boot clock.
    start: u64,
    /// When the last poll began that was written; none yet if 0.
    pub(crate) reached: BootNanos,
    /// Nothing came when it was asked last.
    pub(crate) is_idle: bool,
    refreshed: Instant,
    /// Records that were handed to the writer.
    pub(crate) records: u64,
    /// Slots that were lost before these.
    pub(crate) lost: u64,
    /// The lcores whose rings were written.
    pub(crate) wrote: BTreeSet<Lcore>,
    /// Part of it that has reached the file.
    marks: Marks,
}

impl Following {
    /// What was copied, if it comes in time.
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
        copied.into_buffers().for_each(|bytes| self.reader.give_back(bytes));
        written
    }

    /// Writes which owners have changed, if it is time for that.
    pub(crate) fn refresh(&mut self, must: bool) -> io::Result<()> {
        if !must && self.refreshed.elapsed() < OWNERS {
            return Ok(());
        }
        self.refreshed = Instant::now();
        self.around.refresh(&self.source, &mut self.writer)
    }

    pub(crate) fn anchor(&mut self, anchor: Anchor) -> io::Result<()> {
        self.writer.anchor(anchor)
    }

    /// Writes what was collected.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.marks.add(Stored { bytes: self.writer.flushed(), records: self.records, lost: self.lost });
        Ok(())
    }

    /// Has the reader poll once more, and end.
    pub(crate) fn stop(&self) {
        self.reader.stop();
    }

    /// Ends the reader; returns what has reached the file, and why slots were lost.
    pub(crate) fn finish(self) -> (Marks, Pressure) {
        (self.marks, self.reader.finish())
    }
}
