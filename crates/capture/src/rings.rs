//! The trace's stream: the rings of a live trace, copied continuously, and what of its file lies around them.

use std::io::{self, Write};

use spdk_trace::{Copied, FileOffset, Lcore};
use timeline::{Anchor, BootNanos};

use crate::chunk::{ChunkWriter, MAX_PAYLOAD, Magic};

/// The first bytes of the file.
pub(crate) const MAGIC: Magic = *b"dpRINGS\x01";

/// Kinds of chunks. A reader refuses others: a new one makes a new version of the format.
pub(crate) mod kind {
    /// Bytes of the trace file outside its rings' slots: the file's length (u64), where these bytes are (u64), the bytes.
    pub(crate) const HEAD: u32 = 1;
    /// Bytes there that have changed: where (u64), the bytes.
    pub(crate) const SECTION: u32 = 2;
    /// Slots of one ring: its lcore (u32), 0 (u32), the number of the first slot's write (u64), slots lost before it (u64), the
    /// slots.
    pub(crate) const RUN: u32 = 3;
    /// The end of one poll of all rings, or several: when the last one began (u64).
    pub(crate) const POLL: u32 = 4;
    /// A reading of both clocks: ticks, nanoseconds, ticks between the readings of the counter before and after (u64 each).
    pub(crate) const ANCHOR: u32 = 5;
}

/// Bytes of a run's payload before its slots.
pub(crate) const RUN_HEAD: usize = 24;
/// Bytes of a head's payload before those of the file.
pub(crate) const HEAD_HEAD: usize = 16;
/// Bytes of a section's payload before those of the file.
pub(crate) const SECTION_HEAD: usize = 8;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 32;
/// The longest piece that is written as one chunk: a multiple of a slot's size, so that readers keep little at once.
const PIECE: usize = 1 << 20;

const _: () = assert!(PIECE + RUN_HEAD <= MAX_PAYLOAD && PIECE.is_multiple_of(SLOT));

/// Writes a trace's stream: first [`Self::head`] for each part of the file, then polls.
#[derive(Debug)]
pub struct RingsWriter<W> {
    chunks: ChunkWriter<W>,
}

impl<W: Write> RingsWriter<W> {
    /// Begins the file.
    pub fn begin(out: W) -> io::Result<Self> {
        Ok(Self { chunks: ChunkWriter::begin(out, MAGIC)? })
    }

    /// Bytes of the trace file outside its rings' slots, which has that length. Parts are written in the order of the file.
    pub fn head(&mut self, file_len: u64, at: FileOffset, bytes: &[u8]) -> io::Result<()> {
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let at = at.0 + (index * PIECE) as u64;
            self.chunks.chunk(kind::HEAD, &[&file_len.to_le_bytes(), &at.to_le_bytes(), piece])?;
        }
        Ok(())
    }

    /// Bytes there that have changed.
    pub fn section(&mut self, at: FileOffset, bytes: &[u8]) -> io::Result<()> {
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let at = at.0 + (index * PIECE) as u64;
            self.chunks.chunk(kind::SECTION, &[&at.to_le_bytes(), piece])?;
        }
        Ok(())
    }

    /// What polls copied, the last of which began at `at`. `lcores` are those of the rings, in the order of the
    /// [`spdk_trace::Follower`].
    pub fn poll(&mut self, copied: &Copied, lcores: &[Lcore], at: BootNanos) -> io::Result<()> {
        for run in copied.runs() {
            let Some(lcore) = lcores.get(run.ring) else { continue };
            let (mut seq, mut lost, mut rest) = (run.seq, run.lost, run.slots);
            loop {
                let (piece, behind) = rest.split_at(rest.len().min(PIECE));
                let lcore = u64::from(lcore.0).to_le_bytes();
                self.chunks.chunk(kind::RUN, &[&lcore, &seq.to_le_bytes(), &lost.to_le_bytes(), piece])?;
                (seq, lost, rest) = (seq + (piece.len() / SLOT) as u64, 0, behind);
                if rest.is_empty() {
                    break;
                }
            }
        }
        self.chunks.chunk(kind::POLL, &[&at.0.to_le_bytes()])
    }

    /// A reading of both clocks.
    pub fn anchor(&mut self, anchor: Anchor) -> io::Result<()> {
        let Anchor { ticks, nanos, bracket } = anchor;
        let numbers = [ticks.0, nanos.0, bracket.0].map(u64::to_le_bytes);
        self.chunks.chunk(kind::ANCHOR, &[numbers.as_flattened()])
    }

    /// Writes what was collected.
    pub fn flush(&mut self) -> io::Result<()> {
        self.chunks.flush()
    }

    /// Bytes of the file, with those that were not written yet.
    pub fn bytes(&self) -> u64 {
        self.chunks.bytes()
    }

    /// Bytes that are surely written, up to the end of a chunk: where to cut the file if writing more of it failed.
    pub fn flushed(&self) -> u64 {
        self.chunks.flushed()
    }
}
