//! The trace's stream: the rings of a live trace, copied continuously, and the parts of its file
//! around them.

use std::io::{self, Write};

use scene::{Anchor, BootNanos};
use spdk_trace::{CopiedSlots, FileOffset, Lcore};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U64;

use crate::chunk::{MAX_PAYLOAD, Stream, StreamWriter};
use crate::layout;

/// Stream of a trace, `trace.rings`.
#[derive(Debug)]
pub struct Rings;

/// Kinds of its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingsKind {
    /// Bytes of the trace file outside its rings' slots: the file's length (u64), their offset
    /// (u64), the bytes.
    Head = 1,
    /// Changed bytes outside the slots: their offset (u64), the bytes.
    Section,
    /// Slots of one ring: its lcore (u32), 0 (u32), the number of the first slot's write (u64),
    /// slots lost before it (u64), the slots.
    Run,
    /// End of one or more polls of all rings: the start of the last one (u64).
    Poll,
    /// Reading of both clocks: ticks, nanoseconds, ticks between the readings of the counter before
    /// and after (u64 each).
    Anchor,
}

impl Stream for Rings {
    type Kind = RingsKind;
    const FILE: &'static str = "trace.rings";
    const MAGIC: [u8; 8] = *b"dpRINGS\x01";
    const KINDS: &'static [RingsKind] = &[
        RingsKind::Head,
        RingsKind::Section,
        RingsKind::Run,
        RingsKind::Poll,
        RingsKind::Anchor,
    ];

    fn number(kind: RingsKind) -> u32 {
        kind as u32
    }
}

/// Size of a run's payload before its slots, in bytes.
pub(crate) const RUN_HEAD: usize = size_of::<layout::Run>();
/// Size of a slot, in bytes.
pub(crate) const SLOT: usize = 32;
/// Limit on the piece written as one chunk, in bytes: a multiple of a slot's size, so that readers
/// keep little at once.
const MAX_CHUNK_BYTES: usize = 1 << 20;

const _: () =
    assert!(MAX_CHUNK_BYTES + RUN_HEAD <= MAX_PAYLOAD && MAX_CHUNK_BYTES.is_multiple_of(SLOT));

/// Returns the chunks of a batch of polls, for a stream that is written later, in the form of
/// [`RingsWriter::poll`].
pub(crate) fn poll_chunks(
    copied: &CopiedSlots,
    lcores: &[Lcore],
    at: BootNanos,
    mut memory: Vec<u8>,
) -> io::Result<Vec<u8>> {
    memory.clear();
    // Room for a head for each run, and the mark at the end.
    let bytes = copied.bytes() + 256;
    if memory.capacity() > bytes + bytes / 4 {
        memory = Vec::new();
    }
    memory.reserve_exact(bytes);
    let mut writer = RingsWriter::detached(memory);
    writer.poll(copied, lcores, at)?;
    writer.finish()
}

/// Writer of a trace's stream: first [`Self::head`] for each part of the file, then polls.
pub type RingsWriter<W> = StreamWriter<W, Rings>;

impl<W: Write> RingsWriter<W> {
    /// Writes bytes outside the rings' slots of a trace file with this length. Parts must be
    /// written in the order of the file.
    pub fn head(&mut self, file_len: u64, at: FileOffset, bytes: &[u8]) -> io::Result<()> {
        for (index, piece) in bytes.chunks(MAX_CHUNK_BYTES).enumerate() {
            let at = at.0 + (index * MAX_CHUNK_BYTES) as u64;
            let head = layout::HeadPart {
                file_len: file_len.into(),
                at: at.into(),
            };
            self.chunk(RingsKind::Head, &[head.as_bytes(), piece])?;
        }
        Ok(())
    }

    /// Writes changed bytes outside the slots.
    pub fn section(&mut self, at: FileOffset, bytes: &[u8]) -> io::Result<()> {
        for (index, piece) in bytes.chunks(MAX_CHUNK_BYTES).enumerate() {
            let at = at.0 + (index * MAX_CHUNK_BYTES) as u64;
            self.chunk(
                RingsKind::Section,
                &[layout::Section { at: at.into() }.as_bytes(), piece],
            )?;
        }
        Ok(())
    }

    /// Writes a batch of polls, the last of which began at `at`. `lcores` are those of the rings,
    /// in the order of the [`spdk_trace::Follower`].
    pub fn poll(
        &mut self,
        copied: &CopiedSlots,
        lcores: &[Lcore],
        at: BootNanos,
    ) -> io::Result<()> {
        for run in copied.runs() {
            let Some(lcore) = lcores.get(run.ring) else {
                continue;
            };
            let (mut seq, mut lost, mut rest) = (run.seq, run.lost, run.slots);
            loop {
                let (piece, behind) = rest.split_at(rest.len().min(MAX_CHUNK_BYTES));
                let head = layout::Run {
                    lcore: u64::from(lcore.0).into(),
                    seq: seq.into(),
                    lost: lost.into(),
                };
                self.chunk(RingsKind::Run, &[head.as_bytes(), piece])?;
                (seq, lost, rest) = (seq + (piece.len() / SLOT) as u64, 0, behind);
                if rest.is_empty() {
                    break;
                }
            }
        }
        self.chunk(
            RingsKind::Poll,
            &[layout::Time { nanos: at.0.into() }.as_bytes()],
        )
    }

    /// Writes a reading of both clocks.
    pub fn anchor(&mut self, anchor: Anchor) -> io::Result<()> {
        let Anchor {
            ticks,
            nanos,
            bracket,
        } = anchor;
        let [ticks, nanos, bracket] = [ticks.0, nanos.0, bracket.0].map(U64::from);
        self.chunk(
            RingsKind::Anchor,
            &[layout::Reading {
                ticks,
                nanos,
                bracket,
            }
            .as_bytes()],
        )
    }
}
