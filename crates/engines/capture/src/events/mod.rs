//! The kernel's stream: events of a process's threads and their CPUs, and the names of threads.
//!
//! An event has 32 bytes: its time (u64, nanoseconds since boot), a detail (u64), the CPU, the
//! kind, and two thread ids (u32 each).

mod encoding;

use std::io::{self, Write};

use scene::{BootNanos, KernelEvent, Tid};
use spdk_trace::{ReadAt, StreamEnd};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::chunk::{Chunk, Chunks, MAX_PAYLOAD, Stream, StreamWriter, check_magic};
use crate::events::encoding::{decode, decode_name, encode, encode_name};
use crate::layout::{self, ENTRY};

/// Stream of the kernel's events, `kernel.events`.
#[derive(Debug)]
pub struct Events;

/// Kinds of its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsKind {
    /// Events.
    Events = 1,
    /// Names of threads: start of the name's validity (u64), thread id (u32), 0 (u32), 16 bytes
    /// that end with the first 0.
    Names,
    /// Names of threads of the process, in the same form.
    Roster,
    /// Time from which nothing is missing (u64).
    Started,
}

impl Stream for Events {
    type Kind = EventsKind;
    const FILE: &'static str = "kernel.events";
    const MAGIC: [u8; 8] = *b"dpKEVTS\x01";
    const KINDS: &'static [EventsKind] = &[
        EventsKind::Events,
        EventsKind::Names,
        EventsKind::Roster,
        EventsKind::Started,
    ];

    fn number(kind: EventsKind) -> u32 {
        kind as u32
    }
}

/// Kinds of events, and their details.
mod event {
    pub(super) const SWITCH: u32 = 1;
    pub(super) const WAKE: u32 = 2;
    pub(super) const MIGRATE: u32 = 3;
    pub(super) const FOUND: u32 = 4;
    pub(super) const BEGIN: u32 = 5;
    pub(super) const END: u32 = 6;
    pub(super) const CALL_ENTER: u32 = 7;
    pub(super) const CALL_EXIT: u32 = 8;
    pub(super) const LOST: u32 = 9;
    pub(super) const UNSEEN: u32 = 10;
    pub(super) const INSIDE: u32 = 11;
    pub(super) const STOP_SIGNAL: u32 = 12;

    /// Reasons why a thread leaves its CPU: the detail of a switch, and of a thread that was found
    /// off its CPU.
    pub(super) const PREEMPTED: u64 = 1;
    pub(super) const BLOCKED: u64 = 2;
    pub(super) const STOPPED: u64 = 3;
    pub(super) const ENDED: u64 = 4;

    /// Kinds of [`KernelContext`]: the detail of a thread found in one.
    pub(super) const IN_CALL: u64 = 1;
    pub(super) const IN_INTERRUPT: u64 = 2;

    /// Classes of interrupts: the upper half of the detail. The lower half is the interrupt's
    /// number.
    pub(super) const HARD: u64 = 1 << 32;
    pub(super) const SOFT: u64 = 2 << 32;
    pub(super) const TICK: u64 = 3 << 32;
    pub(super) const CALL: u64 = 4 << 32;

    /// Further classes of causes of a wake-up: beside the CPU, its detail has the class of the
    /// cause, and the second thread id is the cause's number. A migration's detail has that of a
    /// thread if the second thread id is the one that has the CPU for which it waited.
    pub(super) const UNKNOWN_WAKER: u64 = 0;
    pub(super) const THREAD: u64 = 5 << 32;
}

/// Size of an event in the stream, and of a name, in bytes.
pub const EVENT_BYTES: u64 = ENTRY as u64;
/// Number of events or names written as one chunk.
const CHUNK_ENTRIES: usize = 32_768;

/// Thread and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedThread {
    /// Start of the name's validity, as far as known.
    pub since: BootNanos,
    /// Thread id.
    pub tid: Tid,
    /// Name of at most 15 bytes, which ends with the first 0, as the thread's owner chose it.
    pub name: [u8; 16],
}

/// Writer of the kernel's stream.
pub type EventsWriter<W> = StreamWriter<W, Events>;

impl<W: Write> EventsWriter<W> {
    /// Writes the time from which nothing is missing except events reported as lost.
    pub fn started(&mut self, at: BootNanos) -> io::Result<()> {
        self.chunk(
            EventsKind::Started,
            &[layout::Time { nanos: at.0.into() }.as_bytes()],
        )
    }

    /// Writes events, in the order of time.
    pub fn events(&mut self, events: impl IntoIterator<Item = KernelEvent>) -> io::Result<()> {
        self.entries(
            EventsKind::Events,
            events.into_iter().map(|event| encode(&event)),
        )
    }

    /// Writes names of threads of any process.
    pub fn names(&mut self, names: impl IntoIterator<Item = NamedThread>) -> io::Result<()> {
        self.entries(
            EventsKind::Names,
            names.into_iter().map(|thread| encode_name(&thread)),
        )
    }

    /// Writes threads of the process.
    pub fn roster(&mut self, threads: impl IntoIterator<Item = NamedThread>) -> io::Result<()> {
        self.entries(
            EventsKind::Roster,
            threads.into_iter().map(|thread| encode_name(&thread)),
        )
    }

    fn entries(
        &mut self,
        kind: EventsKind,
        entries: impl Iterator<Item: IntoBytes + Immutable>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.extend_from_slice(entry.as_bytes());
            if bytes.len() >= CHUNK_ENTRIES * ENTRY {
                self.chunk(kind, &[&bytes])?;
                bytes.clear();
            }
        }
        if bytes.is_empty() {
            Ok(())
        } else {
            self.chunk(kind, &[&bytes])
        }
    }
}

/// Events of a stream, in its order. The last item is an error if the stream does not end
/// regularly.
pub struct KernelEvents<'a> {
    chunks: Chunks<'a, Events>,
    /// Remaining events of the current chunk.
    read: std::vec::IntoIter<KernelEvent>,
    ended: bool,
}

impl<'a> KernelEvents<'a> {
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self {
            chunks: Chunks::new(source),
            read: Vec::new().into_iter(),
            ended: false,
        }
    }

    /// Reads the events of the next chunk that has any.
    fn chunk(&mut self) -> Option<Result<Vec<KernelEvent>, StreamEnd>> {
        loop {
            let events = self.chunks.next()?.and_then(|chunk| {
                if chunk.kind != EventsKind::Events {
                    return Ok(Vec::new());
                }
                let payload = self.chunks.payload(chunk, MAX_PAYLOAD)?;
                let events: Option<Vec<_>> = entries(chunk, &payload)?.iter().map(decode).collect();
                events.ok_or(chunk.broken("an event of an unknown kind"))
            });
            match events {
                Ok(events) if events.is_empty() => {}
                events => return Some(events),
            }
        }
    }
}

impl Iterator for KernelEvents<'_> {
    type Item = Result<KernelEvent, StreamEnd>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.read.next() {
            return Some(Ok(event));
        }
        if self.ended {
            return None;
        }
        match self.chunk() {
            Some(Ok(events)) => {
                self.read = events.into_iter();
                self.read.next().map(Ok)
            }
            Some(Err(end)) => {
                self.ended = true;
                Some(Err(end))
            }
            None => {
                self.ended = true;
                None
            }
        }
    }
}

/// Limit on the names of threads, of the process and others together: 16 MiB.
pub(crate) const MAX_NAMES: usize = 1 << 19;
/// Limit on the threads of the process.
pub(crate) const MAX_THREADS: usize = 1 << 16;

/// Result of one pass over the stream, without its events.
#[derive(Debug, Default)]
pub(crate) struct StreamSummary {
    /// True if the file is such a stream, even a damaged one.
    pub(crate) is_stream: bool,
    pub(crate) started: Option<BootNanos>,
    pub(crate) names: Vec<NamedThread>,
    pub(crate) roster: Vec<NamedThread>,
    /// Number of names left out because there are too many.
    pub(crate) left_out: u64,
    /// Time of the last chunk's first event, shortly before the last event.
    pub(crate) last: Option<BootNanos>,
    /// Number of events.
    pub(crate) events: u64,
    pub(crate) end: Option<StreamEnd>,
}

impl StreamSummary {
    pub(crate) fn read(source: &dyn ReadAt) -> Self {
        let mut this = Self {
            is_stream: check_magic::<Events>(source).is_ok(),
            ..Self::default()
        };
        this.end = Chunks::each(source, |chunks, chunk| this.take(chunks, chunk));
        this
    }

    fn take(
        &mut self,
        chunks: &Chunks<'_, Events>,
        chunk: Chunk<EventsKind>,
    ) -> Result<(), StreamEnd> {
        match chunk.kind {
            EventsKind::Events => {
                // The first event of each chunk is enough to know how far it goes.
                let payload = chunks.payload(chunk, ENTRY)?;
                if !payload.is_empty() {
                    let (first, _) = chunk.split::<layout::Event>(&payload, PART_OF_ENTRY)?;
                    self.last = self.last.max(Some(BootNanos(first.at.get())));
                }
                self.events += (chunk.length / ENTRY) as u64;
            }
            EventsKind::Names => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                self.left_out += keep(
                    &mut self.names,
                    entries(chunk, &payload)?,
                    MAX_NAMES - MAX_THREADS,
                );
            }
            EventsKind::Roster => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                self.left_out += keep(&mut self.roster, entries(chunk, &payload)?, MAX_THREADS);
            }
            EventsKind::Started => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                let time: &layout::Time =
                    chunk.whole(&payload, "a time that is too short or too long")?;
                self.started = Some(BootNanos(time.nanos.get()));
            }
        }
        Ok(())
    }
}

/// Keeps names up to the limit; returns the number left out.
fn keep(names: &mut Vec<NamedThread>, entries: &[layout::ThreadName], most: usize) -> u64 {
    let room = most.saturating_sub(names.len()).min(entries.len());
    names.extend(entries[..room].iter().map(decode_name));
    (entries.len() - room) as u64
}

/// Description of a chunk that is not made of whole entries.
const PART_OF_ENTRY: &str = "a chunk that ends within an entry";

/// Splits a payload into entries of this layout.
fn entries<T>(chunk: Chunk<EventsKind>, payload: &[u8]) -> Result<&[T], StreamEnd>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    <[T]>::ref_from_bytes(payload).map_err(|_| chunk.broken(PART_OF_ENTRY))
}
