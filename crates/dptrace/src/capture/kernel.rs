//! The kernel's part of a capture: events of the process's threads, and the names of all that they mention.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use ::capture::{EventsWriter, NamedThread};
use anyhow::Context as _;
use kernel_events::{EventsError, Facts, Recorded, Recorder, Totals};
use timeline::Tid;

use super::facts;

/// Time between two readings of the process's threads.
const ROSTER: Duration = Duration::from_secs(1);
/// The most names that are remembered as written.
const NAMES: usize = 1 << 20;

/// The kernel's events, which are recorded already.
pub(super) struct Kernel {
    recorder: Recorder,
}

impl Kernel {
    /// Attaches the programs.
    pub(super) fn start(pid: u32, ring_bytes: u32) -> anyhow::Result<Self> {
        let facts = Facts::read().map_err(plain)?;
        Ok(Self { recorder: Recorder::start(&facts, pid, ring_bytes).map_err(plain)? })
    }

    /// Begins the file.
    pub(super) fn follow(self, file: File, pid: u32) -> anyhow::Result<Watching> {
        let mut writer = EventsWriter::begin(file).context("writing kernel.events")?;
        writer.started(self.recorder.started()).context("writing kernel.events")?;
        let mut watching = Watching {
            recorder: self.recorder,
            written: Written { writer, names: HashMap::new(), failed: None },
            roster: HashMap::new(),
            pid,
            looked: Instant::now(),
        };
        watching.list_threads();
        Ok(watching)
    }
}

/// What a user can do about it is known of the error that another one passes on.
fn plain(error: EventsError) -> anyhow::Error {
    match error {
        EventsError::Session(error) => error.into(),
        other => other.into(),
    }
}

/// Events that are being recorded.
pub(super) struct Watching {
    recorder: Recorder,
    written: Written,
    roster: HashMap<Tid, [u8; 16]>,
    pid: u32,
    looked: Instant,
}

/// What goes to the file.
struct Written {
    writer: EventsWriter<File>,
    /// The names that were written last.
    names: HashMap<Tid, [u8; 16]>,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

impl Watching {
    /// Writes what has come; waits for more at most this long.
    pub(super) fn next(&mut self, at_most: Duration) -> anyhow::Result<()> {
        let events = self.recorder.next(at_most).map_err(plain)?;
        self.written.write(&events);
        if self.looked.elapsed() >= ROSTER {
            self.looked = Instant::now();
            self.list_threads();
        }
        match self.written.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn list_threads(&mut self) {
        let mut news = facts::threads(self.pid);
        news.retain(|thread| self.roster.insert(thread.tid, thread.name) != Some(thread.name));
        self.written.note(|writer| writer.roster(news));
    }

    pub(super) fn writer(&mut self) -> &mut EventsWriter<File> {
        &mut self.written.writer
    }

    /// Detaches the programs, and writes what remains.
    pub(super) fn finish(mut self, writes: bool) -> (EventsWriter<File>, anyhow::Result<Totals>) {
        let totals = match self.recorder.finish() {
            Ok((events, totals)) => {
                if writes {
                    self.written.write(&events);
                }
                Ok(totals)
            }
            Err(error) => Err(plain(error)),
        };
        let totals = match self.written.failed {
            Some(error) if writes => totals.and(Err(error.into())),
            _ => totals,
        };
        (self.written.writer, totals)
    }
}

impl Written {
    fn write(&mut self, events: &[Recorded]) {
        if self.names.len() > NAMES {
            self.names.clear();
        }
        let mut named = Vec::new();
        for recorded in events {
            if let Some((tid, name)) = recorded.name
                && self.names.insert(tid, name) != Some(name)
            {
                named.push(NamedThread { since: recorded.event.at, tid, name });
            }
        }
        self.note(|writer| {
            writer.names(named).and_then(|()| writer.events(events.iter().map(|recorded| recorded.event)))
        });
    }

    fn note(&mut self, write: impl FnOnce(&mut EventsWriter<File>) -> io::Result<()>) {
        if self.failed.is_none() {
            self.failed = write(&mut self.writer).err();
        }
    }
}
