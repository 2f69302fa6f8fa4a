//! The trace's stream, read: its polls one after the other, and in one pass before them the data
//! that concerns all of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use scene::{Anchor, BootNanos};
use spdk_trace::{
    CapturedPoll, CopiedRun, FileOffset, Follower, Lcore, Polls, ReadAt, StreamEnd, Tables, Ticks,
};
use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use crate::chunk::{Chunk, Chunks, MAX_PAYLOAD};
use crate::layout;
use crate::rings::{RUN_HEAD, Rings, RingsKind, SLOT};

/// Description of a run that is shorter than its beginning.
const NO_PLACE_OF_RUN: &str = "a run without a place";
/// Limit on the bytes of the polls between two marks, which the reader keeps at once. The first
/// poll has all rings.
const MAX_POLL: usize = 1 << 30;
/// Number of bytes per ring at which a group of polls is complete: each group costs some time for
/// each ring.
const BYTES_A_RING: u64 = 64;

/// Size limit of a trace's header, in bytes: its owners and tracepoints take 9 MiB (`struct
/// spdk_trace_file`, include/spdk/trace.h).
const MAX_HEAD: usize = 1 << 25;
/// Limit on the bytes of changed owners kept for lists of all owners, with their overhead. A
/// record's own owner is known from the stream all the same.
const MAX_CHANGES: usize = 1 << 25;
/// Memory overhead of a change, in bytes: its offset and its allocation.
const CHANGE_HEAD: usize = 48;
/// Limit on the anchors kept, of 24 bytes each: those of 7 hours. Beyond it, every second one is
/// dropped.
const MAX_POLL_ANCHORS: usize = 1 << 18;

/// Result of one pass over the heads of all chunks.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) tables: Tables,
    head_bytes: usize,
    /// Changes to the tables, in their order.
    pub(crate) changes: Vec<(FileOffset, Vec<u8>)>,
    change_bytes: usize,
    /// Number of changes left out because there are too many.
    pub(crate) changes_left_out: u64,
    pub(crate) anchors: Vec<Anchor>,
    /// Exponent of the thinning: one of `1 << anchor_step` anchors is kept.
    anchor_step: u32,
    /// Number of all anchors, with those left out.
    all_anchors: u64,
    /// Latest of the rings' oldest slots at the first poll, among rings that had wrapped by then.
    pub(crate) common_start: Ticks,
    /// Start of the last poll.
    pub(crate) last: Option<BootNanos>,
    /// Reason for the end, if it is not regular.
    pub(crate) end: Option<StreamEnd>,
}

impl Scan {
    /// Reads the heads of all chunks, and the content of the small ones.
    pub(crate) fn read(source: &dyn ReadAt) -> Self {
        let mut this = Self::default();
        this.end = Chunks::each(source, |chunks, chunk| this.take(chunks, chunk));
        this
    }

    fn take(
        &mut self,
        chunks: &Chunks<'_, Rings>,
        chunk: Chunk<RingsKind>,
    ) -> Result<(), StreamEnd> {
        match chunk.kind {
            RingsKind::Head => self.head(chunk, &chunks.payload(chunk, MAX_PAYLOAD)?)?,
            RingsKind::Section => {
                self.change(section(&chunks.payload(chunk, MAX_PAYLOAD)?, chunk)?);
            }
            RingsKind::Run if self.last.is_none() => {
                let payload = chunks.payload(chunk, RUN_HEAD + SLOT)?;
                let (run, slots) = chunk.split::<layout::Run>(&payload, NO_PLACE_OF_RUN)?;
                // A run that only counts losses has no slot, and so no time.
                if run.seq.get() > 0
                    && let Ok((tsc, _)) = U64::ref_from_prefix(slots)
                {
                    self.common_start = self.common_start.max(Ticks(tsc.get()));
                }
            }
            // The records of a stream are read in a pass of their own.
            RingsKind::Run => {}
            RingsKind::Poll => self.last = Some(poll(chunks, chunk)?),
            RingsKind::Anchor => self.anchor(chunk, &chunks.payload(chunk, MAX_PAYLOAD)?)?,
        }
        Ok(())
    }

    fn head(&mut self, chunk: Chunk<RingsKind>, payload: &[u8]) -> Result<(), StreamEnd> {
        let (head, bytes) = chunk.split::<layout::HeadPart>(payload, "a head without a place")?;
        self.head_bytes += bytes.len();
        if self.head_bytes > MAX_HEAD {
            return Err(chunk.broken("more of a header than a trace has"));
        }
        if self.tables.has_nothing() {
            self.tables = Tables::new(head.file_len.get());
        }
        let fits = self.tables.push(FileOffset(head.at.get()), bytes);
        if fits {
            Ok(())
        } else {
            Err(chunk.broken(
                "a part of the trace's header that overlaps another one, or lies outside its file",
            ))
        }
    }

    fn change(&mut self, change: (FileOffset, Vec<u8>)) {
        self.change_bytes = self
            .change_bytes
            .saturating_add(change.1.len() + CHANGE_HEAD);
        if self.change_bytes <= MAX_CHANGES {
            self.changes.push(change);
        } else {
            self.changes_left_out += 1;
        }
    }

    fn anchor(&mut self, chunk: Chunk<RingsKind>, payload: &[u8]) -> Result<(), StreamEnd> {
        let what = "a reading of both clocks that is too short or too long";
        let reading: &layout::Reading = chunk.whole(payload, what)?;
        let is_kept = self.all_anchors.is_multiple_of(1 << self.anchor_step);
        self.all_anchors += 1;
        if !is_kept {
            return Ok(());
        }
        if self.anchors.len() == MAX_POLL_ANCHORS {
            let mut index = 0;
            self.anchors.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.anchor_step += 1;
        }
        let [ticks, nanos, bracket] = [reading.ticks, reading.nanos, reading.bracket].map(U64::get);
        self.anchors.push(Anchor {
            ticks: Ticks(ticks),
            nanos: BootNanos(nanos),
            bracket: Ticks(bracket),
        });
        Ok(())
    }

    /// Returns the number of anchors left out because there are too many.
    pub(crate) fn anchors_left_out(&self) -> u64 {
        self.all_anchors - self.anchors.len() as u64
    }
}

fn section(payload: &[u8], chunk: Chunk<RingsKind>) -> Result<(FileOffset, Vec<u8>), StreamEnd> {
    let (section, bytes) =
        chunk.split::<layout::Section>(payload, "a changed part without a place")?;
    Ok((FileOffset(section.at.get()), bytes.to_vec()))
}

fn poll(chunks: &Chunks<'_, Rings>, chunk: Chunk<RingsKind>) -> Result<BootNanos, StreamEnd> {
    let payload = chunks.payload(chunk, MAX_PAYLOAD)?;
    let time: &layout::Time =
        chunk.whole(&payload, "a poll whose time is too short or too long")?;
    Ok(BootNanos(time.nanos.get()))
}

/// Polls of a stream, read again for each pass.
pub(crate) struct RingsStream {
    source: Arc<dyn ReadAt + Send + Sync>,
    /// Index of each lcore's ring.
    rings: HashMap<Lcore, usize>,
}

impl RingsStream {
    /// Creates a stream for the rings that the tables describe.
    pub(crate) fn new(source: Arc<dyn ReadAt + Send + Sync>, head: &Follower) -> Self {
        Self {
            source,
            rings: head.rings().map(|(lcore, _)| lcore).zip(0..).collect(),
        }
    }
}

impl Polls for RingsStream {
    fn polls(&self) -> Box<dyn Iterator<Item = Result<CapturedPoll, StreamEnd>> + '_> {
        let chunks = Chunks::new(self.source.as_ref());
        Box::new(PollIter {
            chunks,
            rings: &self.rings,
            at: Duration::ZERO,
            changed: 0,
            end: None,
            ended: false,
        })
    }
}

struct PollIter<'a> {
    chunks: Chunks<'a, Rings>,
    rings: &'a HashMap<Lcore, usize>,
    at: Duration,
    /// Bytes of the owners that have changed in this poll.
    changed: usize,
    /// Error to report next.
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
        self.changed = 0;
        let (mut read, enough) = (0, self.rings.len() as u64 * BYTES_A_RING);
        loop {
            match self
                .chunks
                .next()
                .map(|chunk| chunk.and_then(|chunk| self.take(chunk, &mut poll)))
            {
                Some(Ok(ChunkOutcome { bytes, is_mark })) => {
                    read += bytes as u64;
                    if is_mark && read >= enough {
                        break;
                    }
                }
                // Slots copied before the end count, although the mark after them is missing.
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

/// Result of taking in a chunk.
struct ChunkOutcome {
    /// Size of its payload, in bytes.
    bytes: usize,
    /// True if a poll ends with it.
    is_mark: bool,
}

impl PollIter<'_> {
    fn take(
        &mut self,
        chunk: Chunk<RingsKind>,
        poll: &mut CapturedPoll,
    ) -> Result<ChunkOutcome, StreamEnd> {
        match chunk.kind {
            RingsKind::Run => self.run(chunk, poll)?,
            RingsKind::Section => {
                let payload = self.chunks.payload(chunk, MAX_PAYLOAD)?;
                let change = section(&payload, chunk)?;
                self.changed = self.changed.saturating_add(change.1.len() + CHANGE_HEAD);
                if self.changed > MAX_CHANGES {
                    return Err(chunk.broken("more changed owners than a poll can have"));
                }
                poll.changes.push(change);
            }
            RingsKind::Poll => self.at = Duration::from_nanos(self::poll(&self.chunks, chunk)?.0),
            RingsKind::Head | RingsKind::Anchor => {}
        }
        Ok(ChunkOutcome {
            bytes: chunk.length,
            is_mark: chunk.kind == RingsKind::Poll,
        })
    }

    fn run(&mut self, chunk: Chunk<RingsKind>, poll: &mut CapturedPoll) -> Result<(), StreamEnd> {
        if poll.copied.bytes() > MAX_POLL {
            return Err(chunk.broken("more slots than a poll can have"));
        }
        let payload = self.chunks.payload(chunk, MAX_PAYLOAD)?;
        let (run, slots) = chunk.split::<layout::Run>(&payload, NO_PLACE_OF_RUN)?;
        if !slots.len().is_multiple_of(SLOT) {
            return Err(chunk.broken("a run that ends within a slot"));
        }
        let lcore = u16::try_from(run.lcore.get()).map(Lcore).ok();
        let ring = lcore.and_then(|lcore| self.rings.get(&lcore));
        let ring = *ring.ok_or(chunk.broken("a run of an lcore that has no ring"))?;
        poll.copied.push(&CopiedRun {
            ring,
            seq: run.seq.get(),
            lost: run.lost.get(),
            slots,
        });
        Ok(())
    }
}
