//! The kernel's part of a capture: events of the processes' threads, and the names of all threads in
//! them.

mod roster;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture::{EVENT_BYTES, EventsWriter, NamedThread};
use kernel_events::{ProcessSet, RecordedEvent, Recorder, Totals};
use scene::{BootNanos, Tid};

use super::facts;
use roster::Roster;

/// Time between two readings of the processes' threads.
const ROSTER_INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the names remembered as written.
const MAX_NAMES: usize = 1 << 20;
/// Bytes reserved for the heads of chunks, of 8 bytes each.
const HEADS: u64 = 4096;

/// Kernel's events, which are recorded already.
pub struct Kernel {
    /// Recorder.
    pub recorder: Recorder,
}

impl Kernel {
    /// Attaches the programs for these processes.
    pub fn start(processes: &ProcessSet, ring_bytes: u32) -> anyhow::Result<Self> {
        let facts = kernel_events::facts()?;
        Ok(Self {
            recorder: Recorder::start(&facts, processes, ring_bytes)?,
        })
    }

    /// Starts the file.
    pub(crate) fn follow(self, file: File) -> anyhow::Result<KernelRecorder> {
        let mut writer = EventsWriter::begin(file).context("writing kernel.events")?;
        writer
            .started(self.recorder.started())
            .context("writing kernel.events")?;
        let mut watching = KernelRecorder {
            recorder: self.recorder,
            written: EventFile::new(writer),
            rest: Vec::new(),
            looked: Instant::now(),
            until: BootNanos(u64::MAX),
            later: Vec::new(),
        };
        watching.list_threads()?;
        Ok(watching)
    }
}

/// Events that are being recorded.
pub(crate) struct KernelRecorder {
    recorder: Recorder,
    written: EventFile,
    /// Events for which there was no room: there is more at the end.
    rest: Vec<RecordedEvent>,
    looked: Instant,
    /// End of the capture, as far as it is known. Later events wait in `later`.
    until: BootNanos,
    later: Vec<RecordedEvent>,
}

/// Output file with its state.
struct EventFile {
    writer: EventsWriter<File>,
    /// Names last written, by thread.
    names: HashMap<Tid, [u8; 16]>,
    /// Threads of the processes.
    roster: Roster,
    /// Error that ended the writing.
    failed: Option<io::Error>,
    /// Number of events.
    events: u64,
    /// Time of the last event.
    last: BootNanos,
    /// Time of the last event that has reached the file.
    flushed: BootNanos,
    /// Events and bytes that have reached the file.
    stored: (u64, u64),
}

/// Result of the kernel's part.
pub(crate) struct KernelOutcome {
    /// Size of the file in bytes, up to the end of a chunk.
    pub(crate) bytes: u64,
    /// Events in these bytes.
    pub(crate) events: u64,
    pub(crate) totals: anyhow::Result<Totals>,
    /// Error that kept the last events from being written.
    pub(crate) failed: Option<io::Error>,
    /// Time of the last event surely written, if others were to follow.
    pub(crate) until: Option<BootNanos>,
}

impl KernelRecorder {
    /// Writes the events that have arrived, as far as there is room; waits for more at most
    /// `at_most`. Returns false if there was not enough room.
    pub(crate) fn next(&mut self, at_most: Duration, room: u64) -> anyhow::Result<bool> {
        let mut events = self.recorder.next(at_most)?;
        // The events are in the order of time, except for a few.
        self.later
            .extend(events.extract_if(.., |recorded| recorded.event.at > self.until));
        let fitted = self.written.write(&events, room);
        self.rest.extend(events.drain(fitted..));
        if self.looked.elapsed() >= ROSTER_INTERVAL {
            self.looked = Instant::now();
            self.list_threads()?;
        }
        self.written.flush();
        match self.written.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(self.rest.is_empty()),
        }
    }

    /// Ends the capture at this time, even if the rest is written later. The time may be postponed.
    pub(crate) fn end_at(&mut self, until: BootNanos) {
        self.until = until;
    }

    /// Returns true if events have arrived. Each thread of a process yields one at the start.
    pub(crate) fn flows(&self) -> bool {
        self.written.events > 0
    }

    fn list_threads(&mut self) -> anyhow::Result<()> {
        let processes = self.recorder.processes()?;
        let threads = processes.into_iter().flat_map(facts::threads).collect();
        let news = self.written.roster.list(threads);
        self.written.note(|writer| writer.roster(news));
        Ok(())
    }

    /// Returns the size of the file in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.writer.bytes()
    }

    /// Detaches the programs, and writes the rest as far as there is room; nothing if `None`.
    pub(crate) fn finish(self, room: Option<u64>) -> KernelOutcome {
        let Self {
            recorder,
            mut written,
            mut rest,
            until,
            later,
            ..
        } = self;
        let totals = recorder
            .finish()
            .map_err(anyhow::Error::from)
            .map(|(events, totals)| {
                rest.extend(
                    later
                        .into_iter()
                        .chain(events)
                        .filter(|recorded| recorded.event.at <= until),
                );
                totals
            });
        let mut has_all = totals.is_ok() && room.is_some();
        if let Some(room) = room {
            has_all &= written.write(&rest, room) == rest.len();
            written.flush();
            has_all &= written.failed.is_none();
        }
        let ((events, bytes), until) = (written.stored, (!has_all).then_some(written.flushed));
        KernelOutcome {
            bytes,
            events,
            totals,
            failed: written.failed,
            until,
        }
    }
}

impl EventFile {
    fn new(writer: EventsWriter<File>) -> Self {
        let (names, none) = (HashMap::new(), BootNanos::default());
        Self {
            writer,
            names,
            roster: Roster::default(),
            failed: None,
            events: 0,
            last: none,
            flushed: none,
            stored: (0, 0),
        }
    }

    /// Writes the first events, with the names and the threads that they mention, as far as there is
    /// room. Returns their number.
    fn write(&mut self, events: &[RecordedEvent], room: u64) -> usize {
        if self.names.len() > MAX_NAMES {
            self.names.clear();
        }
        let (mut named, mut threads) = (Vec::new(), Vec::new());
        let (mut fitted, mut left) = (0, room.saturating_sub(HEADS));
        for recorded in events {
            let new = recorded
                .name
                .filter(|(tid, name)| self.names.get(tid) != Some(name));
            let own = self.roster.unlisted(recorded);
            let bytes = EVENT_BYTES * (1 + u64::from(new.is_some()) + u64::from(own.is_some()));
            if bytes > left {
                break;
            }
            (fitted, left) = (fitted + 1, left - bytes);
            self.last = self.last.max(recorded.event.at);
            if let Some((tid, name)) = new {
                self.names.insert(tid, name);
                named.push(NamedThread {
                    since: recorded.event.at,
                    tid,
                    name,
                });
            }
            if let Some(tid) = own {
                let known = self.names.get(&tid).copied();
                threads.push(self.roster.enter(recorded, tid, known));
            }
        }
        self.events += fitted as u64;
        let fit = events.iter().take(fitted).map(|recorded| recorded.event);
        self.note(|writer| {
            writer.roster(threads)?;
            writer.names(named)?;
            writer.events(fit)
        });
        fitted
    }

    fn flush(&mut self) {
        self.note(EventsWriter::flush);
        if self.failed.is_none() {
            self.flushed = self.last;
            self.stored = (self.events, self.writer.flushed());
        }
    }

    fn note(&mut self, write: impl FnOnce(&mut EventsWriter<File>) -> io::Result<()>) {
        if self.failed.is_none() {
            self.failed = write(&mut self.writer).err();
        }
    }
}
