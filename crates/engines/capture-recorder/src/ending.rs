//! The end of a capture: the rest of each part is written, and cut if writing fails.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use capture::CaptureSummary;
use kernel_events::Totals;
use observer::Observer;
use scene::BootNanos;
use trace_source::Pressure;

use super::clocks::Clocks;
use super::facts;
use super::kernel::{KernelOutcome, KernelRecorder};
use super::objects::ObjectRecorder;
use super::recording::BATCH_TIMEOUT;
use super::rings::RingRecorder;
use super::stored::{Checkpoint, Marks};

/// Time limit for the disk to store the written bytes, once an end was requested.
const SYNC: Duration = Duration::from_mins(1);

/// Result of ending all parts.
#[derive(Default)]
pub(crate) struct ShutdownResult {
    pub(crate) end: CaptureSummary,
    pub(crate) pressure: Pressure,
    /// Part of the trace that has reached its file.
    pub(crate) marks: Marks,
    /// Start of the last poll of the rings.
    pub(crate) reached: BootNanos,
    /// True while the disk accepts writes.
    pub(crate) works: bool,
    pub(crate) failed: Option<anyhow::Error>,
}

impl ShutdownResult {
    pub(crate) fn end_trace(
        &mut self,
        mut rings: RingRecorder,
        file: Option<&File>,
        (clocks, room): (Option<&mut Clocks>, Option<u64>),
        until: Option<BootNanos>,
        observer: &Observer,
    ) {
        if self.works {
            self.failed = end_rings(&mut rings, clocks, room, until, observer);
        }
        self.reached = rings.reached;
        let seen;
        (self.marks, self.pressure, seen) = rings.finish();
        self.end.sockets = seen.map(facts::socket_totals);
        let Checkpoint {
            bytes,
            records,
            lost,
        } = self.marks.last();
        if !self.works || self.failed.is_some() {
            cut(file, bytes);
        }
        (self.end.records, self.end.slots_lost) = (records, lost);
        self.end.bytes += bytes;
    }

    pub(crate) fn end_kernel(&mut self, kernel: KernelRecorder, file: Option<&File>, room: u64) {
        let KernelOutcome {
            bytes,
            events,
            totals,
            failed,
            until,
        } = kernel.finish(self.works.then_some(room));
        self.end.events_until_boot_nanos = until.map(|until| until.0);
        if !self.works || failed.is_some() {
            cut(file, bytes);
        }
        (self.end.events, self.end.bytes) = (events, self.end.bytes + bytes);
        self.failed = self.failed.take().or(failed.map(Into::into));
        match totals {
            Ok(Totals {
                lost,
                skipped,
                late,
                ..
            }) => {
                self.end.events_lost = lost;
                (self.end.events_skipped, self.end.events_late) = (skipped, late);
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }

    pub(crate) fn end_objects(&mut self, objects: ObjectRecorder) {
        let (written, result) = objects.finish(self.works);
        if !self.works || result.is_err() {
            // If that fails, too, an incomplete line remains: readers leave it out with a note.
            let _ = written.cut();
        }
        self.failed = self.failed.take().or(result.err().map(Into::into));
        self.end.object_lines = written.lines;
        self.end.bytes += written.bytes;
    }
}

/// Makes the reader poll once more, and writes its copies as far as there is room.
fn end_rings(
    rings: &mut RingRecorder,
    clocks: Option<&mut Clocks>,
    room: Option<u64>,
    until: Option<BootNanos>,
    observer: &Observer,
) -> Option<anyhow::Error> {
    let stopped = rings.stop();
    // What sockets showed is written a moment later, up to the end.
    let until = until.filter(|_| rings.is_of_process());
    let begin = rings.writer.bytes();
    let write = || -> io::Result<()> {
        loop {
            observer.step();
            let Some(batch) = rings.next(BATCH_TIMEOUT) else {
                continue;
            };
            let is_last = batch.is_last;
            let written = rings.writer.bytes() - begin;
            let is_wanted = until.is_none_or(|until| rings.reached < until);
            if is_wanted && room.is_none_or(|room| written + (batch.copied.bytes() as u64) < room) {
                rings.write(batch)?;
            }
            if is_last {
                break;
            }
        }
        rings.refresh(true)?;
        for anchor in clocks.into_iter().flat_map(Clocks::stop) {
            rings.anchor(anchor)?;
        }
        rings.flush()
    };
    write().err().map(Into::into).or(stopped.err())
}

/// Waits until the disk has stored the files. That can take long for many bytes, and is progress: a
/// signal does not end it at once.
pub(crate) fn sync(files: Vec<File>, observer: &Observer) -> io::Result<()> {
    let begun = Instant::now();
    let syncing = std::thread::spawn(move || files.iter().try_for_each(File::sync_data));
    while !syncing.is_finished() && begun.elapsed() < SYNC {
        observer.step();
        std::thread::sleep(Duration::from_millis(2));
    }
    syncing
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that syncs the files panicked")))
}

/// Cuts a file after its last whole chunk.
pub(crate) fn cut(file: Option<&File>, bytes: u64) {
    // If that fails, too, readers take the incomplete chunk for the cut.
    let _ = file.map(|file| file.set_len(bytes));
}
