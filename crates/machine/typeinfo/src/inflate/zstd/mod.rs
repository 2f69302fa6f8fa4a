//! Zstandard frames (RFC 8878), without dictionaries and without checking checksums.
//!
//! This is our own decoder because the existing one in safe Rust (`ruzstd` 0.8) trusts the stream: one block of 128 KiB makes it
//! write 8 GB, and integer overflows end the program. This decoder never writes more than the caller allows, and a block that
//! decodes to more than the format allows is an error. All output is in one buffer, so no window is needed.

mod bits;
mod fse;
mod huffman;
mod sequences;

use std::fmt;

use fse::FseTable;
use huffman::HuffmanTable;

/// The first bytes of a frame (section 3.1.1).
const MAGIC: u32 = 0xfd2f_b528;
/// The first bytes of a frame to skip, without the lowest four bits (section 3.1.2).
const MAGIC_SKIPPED: u32 = 0x184d_2a50;
/// Limit on the bytes of a block, compressed or not (section 3.1.1.2.3).
const MAX_BLOCK: usize = 128 << 10;
/// Number of blocks allowed beyond one per KiB of the result: a block of a few bytes can have
/// tables of some thousand entries to build. Encoders fill their blocks with 128 KiB.
const FREE_BLOCKS: usize = 1024;

/// Error for a malformed stream: the expectation that it breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MalformedStream(pub(super) &'static str);

impl fmt::Display for MalformedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

/// Output, which can't grow beyond its limit.
struct OutputBuffer<'out> {
    bytes: &'out mut Vec<u8>,
    /// Start of the frame: matches do not reach before it.
    frame: usize,
    /// Limit on the end of the block.
    block_end: usize,
    /// Limit on the end of the output.
    end: usize,
}

impl OutputBuffer<'_> {
    fn room(&self, count: usize) -> Result<(), MalformedStream> {
        let limit = self.end.min(self.block_end);
        if count <= limit.saturating_sub(self.bytes.len()) {
            Ok(())
        } else {
            Err(MalformedStream("no more than it states"))
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), MalformedStream> {
        self.room(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn fill(&mut self, byte: u8, count: usize) -> Result<(), MalformedStream> {
        self.room(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        Ok(())
    }

    /// Repeats the bytes written `offset` bytes ago; the copy may read bytes that it has written.
    fn repeat(&mut self, offset: usize, count: usize) -> Result<(), MalformedStream> {
        self.room(count)?;
        let written = self.bytes.len() - self.frame;
        if offset == 0 || offset > written {
            return Err(MalformedStream("a match within the frame"));
        }
        let mut left = count;
        while left > 0 {
            let step = left.min(offset);
            let from = self.bytes.len() - offset;
            self.bytes.extend_from_within(from..from + step);
            left -= step;
        }
        Ok(())
    }
}

/// Tables that a block may take over from the block before.
#[derive(Default)]
struct Tables {
    huffman: Option<HuffmanTable>,
    literal_lengths: Option<FseTable>,
    offsets: Option<FseTable>,
    match_lengths: Option<FseTable>,
}

/// Appends the contents of all frames, at most `size` bytes.
pub(super) fn decode(
    mut data: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), MalformedStream> {
    let end = out.len().saturating_add(size);
    let mut blocks = FREE_BLOCKS.saturating_add(size / 1024);
    while !data.is_empty() {
        let magic = u32::from_le_bytes(
            *data
                .first_chunk()
                .ok_or(MalformedStream("a frame's first bytes"))?,
        );
        data = &data[4..];
        if magic & !0xf == MAGIC_SKIPPED {
            let length = u32::from_le_bytes(
                *data
                    .first_chunk()
                    .ok_or(MalformedStream("a skipped frame's length"))?,
            );
            data = data
                .get(4 + length as usize..)
                .ok_or(MalformedStream("all of a skipped frame"))?;
            continue;
        }
        if magic != MAGIC {
            return Err(MalformedStream("a Zstandard frame"));
        }
        let frame = out.len();
        data = decode_frame(
            data,
            OutputBuffer {
                bytes: out,
                frame,
                block_end: end,
                end,
            },
            &mut blocks,
        )?;
    }
    Ok(())
}

/// Decodes a frame; returns the bytes behind it.
fn decode_frame<'data>(
    data: &'data [u8],
    mut out: OutputBuffer<'_>,
    blocks: &mut usize,
) -> Result<&'data [u8], MalformedStream> {
    let (mut data, checksum) = skip_header(data)?;
    let mut tables = Tables::default();
    let mut history = sequences::FIRST_OFFSETS;
    loop {
        *blocks = blocks
            .checked_sub(1)
            .ok_or(MalformedStream("blocks of some length"))?;
        let header = data
            .first_chunk::<3>()
            .ok_or(MalformedStream("a block's header"))?;
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        data = &data[3..];
        let length = (header >> 3) as usize;
        if length > MAX_BLOCK {
            return Err(MalformedStream("a block of at most 128 KiB"));
        }
        out.block_end = out.bytes.len().saturating_add(MAX_BLOCK);
        let kind = header >> 1 & 3;
        let stored = if kind == 1 { 1 } else { length };
        let (content, rest) = data
            .split_at_checked(stored)
            .ok_or(MalformedStream("all of a block"))?;
        data = rest;
        match (kind, content) {
            (0, content) => out.push(content)?,
            (1, [byte]) => out.fill(*byte, length)?,
            (2, content) => sequences::decode_block(content, &mut tables, &mut history, &mut out)?,
            _ => return Err(MalformedStream("a kind of block that there is")),
        }
        if header & 1 == 1 {
            return data
                .get(if checksum { 4 } else { 0 }..)
                .ok_or(MalformedStream("the frame's checksum"));
        }
    }
}

/// Skips the frame's header; returns the bytes behind it, and true if a checksum ends the frame
/// (section 3.1.1.1).
fn skip_header(data: &[u8]) -> Result<(&[u8], bool), MalformedStream> {
    let (&descriptor, data) = data
        .split_first()
        .ok_or(MalformedStream("a frame's descriptor"))?;
    let single = descriptor & 0x20 != 0;
    if descriptor & 8 != 0 {
        return Err(MalformedStream("a frame of a version that there is"));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = match descriptor >> 6 {
        0 => usize::from(single),
        flag => 1 << flag,
    };
    let at = usize::from(!single);
    let id = data
        .get(at..at + dictionary)
        .ok_or(MalformedStream("a frame's header"))?;
    if id.iter().any(|byte| *byte != 0) {
        return Err(MalformedStream("a frame without a dictionary"));
    }
    let rest = data
        .get(at + dictionary + content_size..)
        .ok_or(MalformedStream("a frame's header"))?;
    Ok((rest, descriptor & 4 != 0))
}

#[cfg(test)]
mod tests;
