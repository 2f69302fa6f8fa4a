//! The trace's stream, read: its polls one after the other, and in one pass before them what concerns all of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use spdk_trace::{CapturedPoll, CopiedRun, FileOffset, Follower, Lcore, Polls, ReadAt, StreamEnd, Tables, Ticks};
use timeline::{Anchor, BootNanos};

use crate::chunk::{Chunk, Chunks, MAX_PAYLOAD, long, word};
use crate::rings::{HEAD_HEAD, RUN_HEAD, SECTION_HEAD, SLOT, kind};

/// The most bytes that the polls between two marks can have: what the reader keeps at once. The first poll has all rings.
const MAX_POLL: usize = 1 << 30;
/// Polls are given together until they have this many bytes for each ring: one costs some time for each of these.
const BYTES_A_RING: u64 = 64;

/// What one pass over the heads of all chunks finds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) tables: Tables,
    /// What has changed of them, in this order.
    pub(crate) changes: Vec<(FileOffset, Vec<u8>)>,
    pub(crate) anchors: Vec<Anchor>,
    /// The newest of the rings' oldest slots at the first poll, of rings that had wrapped by then.
    pub(crate) common_start: Ticks,
    /// When the last poll began.
    pub(crate) last: Option<BootNanos>,
    /// Why there is no more, if the file does not just end.
    pub(crate) end: Option<StreamEnd>,
}

impl Scan {
    /// Reads the heads of all chunks, and what is in the small ones.
    pub(crate) fn of(source: &dyn ReadAt) -> Self {
        let mut this = Self::default();
        let mut chunks = Chunks::new(source);
        while let Some(chunk) = chunks.next() {
            if let Err(end) = chunk.and_then(|chunk| this.take(&chunks, chunk)) {
                this.end = Some(end);
                break;
            }
        }
        this
    }

    fn take(&mut self, chunks: &Chunks<'_>, chunk: Chunk) -> Result<(), StreamEnd> {
        let broken = |what| Err(StreamEnd::Broken { at: chunk.at, what });
        match chunk.kind {
            kind::HEAD => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                let Some(bytes) = payload.get(HEAD_HEAD..) else { return broken("a head without a place") };
                if self.tables.has_nothing() {
                    self.tables = Tables::new(long(&payload, 0));
                }
                if !self.tables.push(FileOffset(long(&payload, 8)), bytes) {
                    return broken("a part of the trace's header that overlaps another one, or lies outside its file");
                }
            }
            kind::SECTION => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                self.changes.push(section(&payload, chunk)?);
            }
            kind::RUN if self.last.is_none() => {
                let payload = chunks.payload(chunk, RUN_HEAD + SLOT)?;
                if long(&payload, 8) > 0 {
                    self.common_start = self.common_start.max(Ticks(long(&payload, RUN_HEAD)));
                }
            }
            // The records of a stream are read for their own sake.
            kind::RUN => {}
            kind::POLL => self.last = Some(poll(chunks, chunk)?),
            kind::ANCHOR => {
                let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
                if payload.len() != 24 {
                    return broken("a reading of both clocks that is too short or too long");
                }
                let [ticks, nanos, bracket] = [0, 8, 16].map(|at| long(&payload, at));
                self.anchors.push(Anchor { ticks: Ticks(ticks), nanos: BootNanos(nanos), bracket: Ticks(bracket) });
            }
            _ => return broken("a chunk of an unknown kind"),
        }
        Ok(())
    }
}

fn section(payload: &[u8], chunk: Chunk) -> Result<(FileOffset, Vec<u8>), StreamEnd> {
    let bytes = payload.get(SECTION_HEAD..);
    let broken = StreamEnd::Broken { at: chunk.at, what: "a changed part without a place" };
    Ok((FileOffset(long(payload, 0)), bytes.ok_or(broken)?.to_vec()))
}

fn poll(chunks: &Chunks<'_>, chunk: Chunk) -> Result<BootNanos, StreamEnd> {
    let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
    let broken = StreamEnd::Broken { at: chunk.at, what: "a poll whose time is too short or too long" };
    if payload.len() == 8 { Ok(BootNanos(long(&payload, 0))) } else { Err(broken) }
}

/// The polls of a stream, read again for each pass.
pub(crate) struct RingsStream {
    source: Arc<dyn ReadAt + Send + Sync>,
    /// The place of each lcore's ring among all.
    rings: HashMap<Lcore, usize>,
}

impl RingsStream {
    /// For the rings that the tables describe.
    pub(crate) fn new(source: Arc<dyn ReadAt + Send + Sync>, head: &Follower) -> Self {
        Self { source, rings: head.rings().map(|(lcore, _)| lcore).zip(0..).collect() }
    }
}

impl Polls for RingsStream {
    fn polls(&self) -> Box<dyn Iterator<Item = Result<CapturedPoll, StreamEnd>> + '_> {
        let chunks = Chunks::new(self.source.as_ref());
        Box::new(PollIter { chunks, rings: &self.rings, at: Duration::ZERO, end: None, ended: false })
    }
}

struct PollIter<'a> {
    chunks: Chunks<'a>,
    rings: &'a HashMap<Lcore, usize>,
    at: Duration,
    /// What is to be reported next.
    end: Option<StreamEnd>,
    ended: bool,
}

impl Iterator for PollIter<'_> {
    type Item = Result<CapturedPoll, StreamEnd>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(end) = self.end.take() {
            return Some(Err(end));
        }
        if self.ended {
            return None;
        }
        let mut poll = CapturedPoll::default();
        let (mut read, enough) = (0, self.rings.len() as u64 * BYTES_A_RING);
        loop {
            match self.chunks.next().map(|chunk| chunk.and_then(|chunk| self.take(chunk, &mut poll))) {
                Some(Ok(Taken { bytes, is_mark })) => {
                    read += bytes as u64;
                    if is_mark && read >= enough {
                        break;
                    }
                }
                // What was copied before the end counts, although the mark behind it is missing.
                Some(Err(end)) => {
                    (self.end, self.ended) = (Some(end), true);
                    break;
                }
                None => {
                    self.ended = true;
                    break;
                }
            }
        }
        poll.at = self.at;
        if poll.copied.is_empty() && poll.changes.is_empty() && self.ended {
            return self.end.take().map(Err);
        }
        Some(Ok(poll))
    }
}

/// What became of a chunk.
struct Taken {
    /// Its bytes in the file.
    bytes: usize,
    /// Whether a poll ends with it.
    is_mark: bool,
}

impl PollIter<'_> {
    fn take(&mut self, chunk: Chunk, poll: &mut CapturedPoll) -> Result<Taken, StreamEnd> {
        let broken = |what| StreamEnd::Broken { at: chunk.at, what };
        match chunk.kind {
            kind::RUN => {
                if poll.copied.bytes() > MAX_POLL {
                    return Err(broken("more slots than a poll can have"));
                }
                let payload = self.chunks.payload(chunk, MAX_PAYLOAD)?;
                let Some(slots) = payload.get(RUN_HEAD..) else { return Err(broken("a run without a place")) };
                if !slots.len().is_multiple_of(SLOT) {
                    return Err(broken("a run that ends within a slot"));
                }
                let lcore = u16::try_from(word(&payload, 0)).map(Lcore).ok();
                let ring = lcore.and_then(|lcore| self.rings.get(&lcore));
                let Some(&ring) = ring else { return Err(broken("a run of an lcore that has no ring")) };
                poll.copied.push(&CopiedRun { ring, seq: long(&payload, 8), lost: long(&payload, 16), slots });
            }
            kind::SECTION => {
                let payload = self.chunks.payload(chunk, MAX_PAYLOAD)?;
                poll.changes.push(section(&payload, chunk)?);
            }
            kind::POLL => self.at = Duration::from_nanos(self::poll(&self.chunks, chunk)?.0),
            kind::HEAD | kind::ANCHOR => {}
            _ => return Err(broken("a chunk of an unknown kind")),
        }
        Ok(Taken { bytes: chunk.length, is_mark: chunk.kind == kind::POLL })
    }
}
