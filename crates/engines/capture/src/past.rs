//! The latest part of a live trace, in bounded memory: for a capture that is requested only after
//! the event.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use scene::{Anchor, BootNanos, Clock, ClockError};
use spdk_trace::{CopiedSlots, FileOffset, Lcore, ReadAt};

use crate::around::{Changes, OwnerSnapshot};
use crate::rings::{RingsWriter, poll_chunks};

/// Limit on the readings of both clocks: the last 25 seconds, at one reading per 100 ms.
const MAX_ANCHORS: usize = 256;
/// Limit on the dropped pieces that keep their memory: usually as many as are dropped for a new
/// one.
const MAX_SPARE_CHUNKS: usize = 2;
/// Approximate overhead of a piece, in bytes.
const BATCH_OVERHEAD_BYTES: usize = 128;

/// Newest polls of a trace's rings, as chunks of a stream, with the owners that its records name.
///
/// A piece holds one batch of polls. The oldest pieces are dropped: those that are too old, and
/// those for which there is no room.
#[derive(Debug)]
pub struct RingHistory {
    lcores: Vec<Lcore>,
    continuation_id: u16,
    /// Owners before the first piece.
    front: OwnerSnapshot,
    /// Owners as last read.
    now: OwnerSnapshot,
    /// Owners that have changed since the last piece.
    changed: Changes,
    pieces: VecDeque<Piece>,
    bytes: usize,
    most: usize,
    /// Memory of dropped pieces, for the next ones.
    spare: Vec<Vec<u8>>,
    anchors: VecDeque<Anchor>,
    /// Time since which it is complete, except for losses that it reports.
    since: BootNanos,
}

/// One batch of polls.
#[derive(Clone, Debug)]
struct Piece {
    /// Start of the last of its polls.
    at: BootNanos,
    chunks: Arc<Vec<u8>>,
    /// Owners that have changed since the piece before.
    changes: Arc<Changes>,
    records: u64,
    lost: u64,
}

impl Piece {
    fn bytes(&self) -> usize {
        let changes = self
            .changes
            .iter()
            .map(|(_, owner)| BATCH_OVERHEAD_BYTES + owner.len())
            .sum::<usize>();
        BATCH_OVERHEAD_BYTES + self.chunks.len() + changes
    }
}

/// Part of the past that shares its memory, and can be written while the past goes on.
#[derive(Clone, Debug)]
pub struct RingSlice {
    front: OwnerSnapshot,
    pieces: Vec<Piece>,
    anchors: Vec<Anchor>,
    /// Time from which it is complete.
    pub since: BootNanos,
    /// Time until which it is complete.
    pub until: BootNanos,
    /// Number of records.
    pub records: u64,
    /// Number of slots within it that were overwritten before they were copied.
    pub lost: u64,
}

impl RingHistory {
    /// Creates an empty past of a trace whose rings have these lcores, in the order of the
    /// [`spdk_trace::Follower`]. It takes at most `most` bytes.
    pub fn new(
        around: OwnerSnapshot,
        lcores: Vec<Lcore>,
        continuation_id: u16,
        since: BootNanos,
        most: usize,
    ) -> Self {
        let (front, now) = (around.clone(), around);
        Self {
            lcores,
            continuation_id,
            front,
            now,
            changed: Changes::new(),
            pieces: VecDeque::new(),
            bytes: 0,
            most,
            spare: Vec::new(),
            anchors: VecDeque::new(),
            since,
        }
    }

    /// Adds a batch of polls, the last of which began at `at`, and drops pieces older than
    /// `oldest`. Returns the number of slots lost before it.
    pub fn push(
        &mut self,
        copied: &CopiedSlots,
        at: BootNanos,
        oldest: BootNanos,
    ) -> io::Result<u64> {
        let (mut records, mut lost) = (0, 0);
        for run in copied.runs() {
            records += run.records(self.continuation_id).0;
            lost += run.lost;
        }
        let chunks = Arc::new(poll_chunks(
            copied,
            &self.lcores,
            at,
            self.spare.pop().unwrap_or_default(),
        )?);
        let changes = Arc::new(std::mem::take(&mut self.changed));
        self.add(Piece {
            at,
            chunks,
            changes,
            records,
            lost,
        });
        // After a quiet time, the last piece before it shows that nothing is missing since.
        let is_old = |pieces: &VecDeque<Piece>| pieces.get(1).is_some_and(|next| next.at < oldest);
        while self.bytes > self.most || is_old(&self.pieces) {
            self.drop_first();
        }
        Ok(lost)
    }

    /// Reads the owners that have changed, and passes each to `each`.
    pub fn refresh<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        mut each: impl FnMut(FileOffset, &[u8]),
    ) -> io::Result<()> {
        let changes = self.now.changes(source)?;
        for (at, owner) in &changes {
            each(*at, owner);
        }
        // Of several changes of an owner, the last one counts.
        self.changed
            .retain(|(before, _)| changes.iter().all(|(at, _)| at != before));
        self.changed.extend(changes);
        Ok(())
    }

    /// Adds a reading of both clocks.
    pub fn anchor(&mut self, anchor: Anchor) {
        if self.anchors.len() >= MAX_ANCHORS {
            self.anchors.pop_front();
        }
        self.anchors.push_back(anchor);
    }

    /// Returns the clock of the newest readings.
    pub fn clock(&self) -> Result<Clock, ClockError> {
        Clock::new(self.anchors.iter().copied().collect())
    }

    /// Returns the time since which it is complete.
    pub fn since(&self) -> BootNanos {
        self.since
    }

    /// Returns the time until which it has everything that was written in time.
    pub fn until(&self) -> BootNanos {
        self.pieces.back().map_or(self.since, |piece| piece.at)
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the part between these two times.
    pub fn cut(&self, from: BootNanos, until: BootNanos) -> RingSlice {
        let mut cut = RingSlice {
            front: self.front.clone(),
            pieces: Vec::new(),
            anchors: self.anchors.iter().copied().collect(),
            since: self.since,
            until: self.since,
            records: 0,
            lost: 0,
        };
        // A poll copies everything written until it ends. That time is unknown, but lies before the
        // next poll begins.
        let next = self
            .pieces
            .iter()
            .skip(1)
            .map(|next| Some(next.at))
            .chain([None]);
        for (piece, next) in self.pieces.iter().zip(next) {
            if let Some(next) = next.filter(|next| *next < from) {
                piece
                    .changes
                    .iter()
                    .for_each(|change| cut.front.apply(change));
                cut.since = next;
                continue;
            }
            cut.until = piece.at;
            cut.records += piece.records;
            // Slots lost before its first piece are not missing in it.
            cut.lost += if cut.pieces.is_empty() { 0 } else { piece.lost };
            cut.pieces.push(piece.clone());
            if piece.at > until {
                break;
            }
        }
        cut
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += piece.bytes();
        self.pieces.push_back(piece);
    }

    fn drop_first(&mut self) {
        let Some(piece) = self.pieces.pop_front() else {
            return;
        };
        self.bytes -= piece.bytes();
        piece
            .changes
            .iter()
            .for_each(|change| self.front.apply(change));
        self.since = self.pieces.front().map_or(piece.at, |next| next.at);
        // Memory that a cut still shares is freed with it.
        if let Ok(chunks) = Arc::try_unwrap(piece.chunks)
            && self.spare.len() < MAX_SPARE_CHUNKS
        {
            self.spare.push(chunks);
        }
    }
}

impl RingSlice {
    /// Adds a reading of both clocks that came later.
    pub fn anchor(&mut self, anchor: Anchor) {
        self.anchors.push(anchor);
    }

    /// Returns the size of its pieces in bytes: the part of [`Self::write`]'s output beside the
    /// parts around the rings.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes() as u64).sum()
    }

    /// Writes it as the stream of a capture. The parts around the rings are read from `source`, the
    /// trace file.
    pub fn write<S: ReadAt + ?Sized, W: Write>(
        &self,
        source: &S,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<()> {
        self.front.write(source, writer)?;
        self.anchors
            .iter()
            .try_for_each(|anchor| writer.anchor(*anchor))?;
        for piece in &self.pieces {
            piece
                .changes
                .iter()
                .try_for_each(|(at, owner)| writer.section(*at, owner))?;
            writer.made(&piece.chunks)?;
        }
        writer.flush()
    }
}
