//! The framing of both streams: a file begins with 8 bytes that say what it is, and chunks follow.
//!
//! A chunk is its kind (u32) and the length of its payload in bytes (u32), the payload, and zeros up to a multiple of 8 bytes.
//! All numbers are little-endian. A chunk that the file does not hold wholly is where the capture was cut.

use std::io::{self, Write};

use spdk_trace::{FileOffset, ReadAt, StreamEnd};

/// Bytes before a chunk's payload.
pub const CHUNK_HEAD: usize = 8;
/// The longest payload in bytes: a reader keeps one chunk at once.
pub const MAX_PAYLOAD: usize = 1 << 24;
/// Bytes that are collected before they are written.
const ENOUGH: usize = 1 << 18;

/// Bytes that say what a file is; the last one is the version of its format.
pub(crate) type Magic = [u8; 8];

/// Appends chunks.
#[derive(Debug)]
pub(crate) struct ChunkWriter<W> {
    out: W,
    buffer: Vec<u8>,
    /// Bytes that were written, up to the end of a chunk.
    flushed: u64,
}

impl<W: Write> ChunkWriter<W> {
    pub(crate) fn begin(out: W, magic: Magic) -> io::Result<Self> {
        let mut this = Self { out, buffer: magic.to_vec(), flushed: 0 };
        this.flush()?;
        Ok(this)
    }

    /// Appends a chunk whose payload is these parts, [`MAX_PAYLOAD`] bytes at most.
    pub(crate) fn chunk(&mut self, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let stated = u32::try_from(length).ok().filter(|_| length <= MAX_PAYLOAD);
        let Some(stated) = stated else { return Err(io::ErrorKind::InvalidInput.into()) };
        self.buffer.extend_from_slice(&kind.to_le_bytes());
        self.buffer.extend_from_slice(&stated.to_le_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.resize(self.buffer.len() + padding(length), 0);
        if self.buffer.len() >= ENOUGH { self.flush() } else { Ok(()) }
    }

    /// Writes what was collected.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Bytes that are surely written, up to the end of a chunk: where to cut the file if writing more of it failed.
    pub(crate) fn flushed(&self) -> u64 {
        self.flushed
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(8) - length
}

/// A chunk's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) kind: u32,
    /// Where it begins.
    pub(crate) at: FileOffset,
    /// Bytes of its payload.
    pub(crate) length: usize,
}

/// Walks through the chunks of a file.
pub(crate) struct Chunks<'a> {
    source: &'a dyn ReadAt,
    at: u64,
    len: u64,
    ended: bool,
}

impl<'a> Chunks<'a> {
    /// Those behind a file's first bytes. Whether these are the right ones, [`check_magic`] has said.
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self::from(source, size_of::<Magic>() as u64)
    }

    /// Those from there on.
    pub(crate) fn from(source: &'a dyn ReadAt, at: u64) -> Self {
        let len = source.len();
        Self { source, at, len, ended: false }
    }

    /// The next one. `None` at the end of the file and after an error.
    pub(crate) fn next(&mut self) -> Option<Result<Chunk, StreamEnd>> {
        if self.ended || self.at >= self.len {
            return None;
        }
        let chunk = self.head();
        match &chunk {
            Ok(chunk) => self.at += (CHUNK_HEAD + chunk.length + padding(chunk.length)) as u64,
            Err(_) => self.ended = true,
        }
        Some(chunk)
    }

    fn head(&self) -> Result<Chunk, StreamEnd> {
        let at = FileOffset(self.at);
        let mut head = [0; CHUNK_HEAD];
        fill(self.source, &mut head, at.0, at)?;
        let [kind, length] = [word(&head, 0), word(&head, 4)];
        let length = length as usize;
        if length > MAX_PAYLOAD {
            return Err(StreamEnd::Broken { at, what: "a chunk that is longer than any" });
        }
        if (CHUNK_HEAD + length + padding(length)) as u64 > self.len - self.at {
            return Err(StreamEnd::Cut { at });
        }
        Ok(Chunk { kind, at, length })
    }

    /// The first bytes of a chunk's payload, all of it if it is shorter.
    pub(crate) fn payload(&self, chunk: Chunk, at_most: usize) -> Result<Vec<u8>, StreamEnd> {
        let mut payload = vec![0; chunk.length.min(at_most)];
        fill(self.source, &mut payload, chunk.at.0 + CHUNK_HEAD as u64, chunk.at)?;
        Ok(payload)
    }
}

/// Whether a file begins so.
pub(crate) fn check_magic(source: &dyn ReadAt, magic: Magic) -> Result<(), StreamEnd> {
    let at = FileOffset(0);
    let mut found = Magic::default();
    fill(source, &mut found, 0, at)?;
    if found == magic { Ok(()) } else { Err(StreamEnd::Broken { at, what: "it is no such file of this version" }) }
}

/// Reads the bytes from there on; the chunk that they are of begins at `chunk`.
fn fill(source: &dyn ReadAt, mut buf: &mut [u8], mut offset: u64, chunk: FileOffset) -> Result<(), StreamEnd> {
    while !buf.is_empty() {
        let n = source.read_at(buf, offset).map_err(|source| StreamEnd::Failed { at: chunk, source })?;
        if n == 0 {
            return Err(StreamEnd::Cut { at: chunk });
        }
        buf = &mut buf[n..];
        offset += n as u64;
    }
    Ok(())
}

/// A number of 4 bytes; 0 if it is not there.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// A number of 8 bytes; 0 if it is not there.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
