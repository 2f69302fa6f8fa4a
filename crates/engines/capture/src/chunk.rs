//! The framing of both streams: a file begins with 8 bytes that say what it is, and chunks follow.
//!
//! A chunk is its kind (u32) and the length of its payload in bytes (u32), the payload, and zeros up to a multiple of 8 bytes.
//! All numbers are little-endian. A chunk that the file does not hold wholly is where the capture was cut.

use std::io::{self, Write};
use std::marker::PhantomData;

use spdk_trace::{FileOffset, ReadAt, StreamEnd};

/// Bytes before a chunk's payload.
pub const CHUNK_HEAD: usize = 8;
/// The longest payload in bytes: a reader keeps one chunk at once.
pub const MAX_PAYLOAD: usize = 1 << 24;
/// Bytes that are collected before they are written.
const ENOUGH: usize = 1 << 18;

/// Bytes that say what a file is; the last one is the version of its format.
type Magic = [u8; 8];

/// What distinguishes one stream from another: its file, and its kinds of chunks.
pub trait Stream {
    /// The kinds of its chunks.
    type Kind: Copy + 'static;
    /// The file's name in the folder of a capture.
    const FILE: &'static str;
    /// The first bytes of the file.
    const MAGIC: Magic;
    /// All of these kinds. A reader rejects others: a new one makes a new version of the format.
    const KINDS: &'static [Self::Kind];
    /// The number that the file has for a kind.
    fn number(kind: Self::Kind) -> u32;
}

/// Writes a stream: a chunk is appended, and written with others.
#[derive(Debug)]
pub struct StreamWriter<W, S> {
    out: W,
    buffer: Vec<u8>,
    /// Bytes that were written, up to the end of a chunk.
    flushed: u64,
    stream: PhantomData<S>,
}

impl<W: Write, S: Stream> StreamWriter<W, S> {
    /// Begins the file.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut this = Self { out, buffer: S::MAGIC.to_vec(), flushed: 0, stream: PhantomData };
        this.flush()?;
        Ok(this)
    }

    /// Makes chunks that go into a file later: [`Self::made`].
    pub(crate) fn detached(out: W) -> Self {
        Self { out, buffer: Vec::new(), flushed: 0, stream: PhantomData }
    }

    /// Appends chunks that were made before.
    pub(crate) fn made(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.out.write_all(chunks)?;
        self.flushed += chunks.len() as u64;
        Ok(())
    }

    /// Writes what was collected, and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }

    /// Appends a chunk whose payload is these parts, [`MAX_PAYLOAD`] bytes at most.
    pub(crate) fn chunk(&mut self, kind: S::Kind, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let stated = u32::try_from(length).ok().filter(|_| length <= MAX_PAYLOAD);
        let Some(stated) = stated else { return Err(io::ErrorKind::InvalidInput.into()) };
        self.buffer.extend_from_slice(&S::number(kind).to_le_bytes());
        self.buffer.extend_from_slice(&stated.to_le_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.resize(self.buffer.len() + padding(length), 0);
        if self.buffer.len() >= ENOUGH { self.flush() } else { Ok(()) }
    }

    /// Writes what was collected.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Bytes of the file, with those that were not written yet.
    pub fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Bytes that are surely written, up to the end of a chunk: where to cut the file if writing more of it failed.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(8) - length
}

/// A chunk's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<K> {
    pub(crate) kind: K,
    /// Where it begins.
    pub(crate) at: FileOffset,
    /// Bytes of its payload.
    pub(crate) length: usize,
}

impl<K> Chunk<K> {
    /// That it is not what it should be.
    pub(crate) fn broken(&self, what: &'static str) -> StreamEnd {
        StreamEnd::Broken { at: self.at, what }
    }
}

/// Walks through the chunks of a file.
pub(crate) struct Chunks<'a, S> {
    source: &'a dyn ReadAt,
    at: u64,
    len: u64,
    ended: bool,
    stream: PhantomData<S>,
}

impl<'a, S: Stream> Chunks<'a, S> {
    /// Those behind a file's first bytes.
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self { source, at: size_of::<Magic>() as u64, len: source.len(), ended: false, stream: PhantomData }
    }

    /// Hands each chunk to `take`, up to the first error: that is returned if the file does not just end, or is none of this stream.
    pub(crate) fn each(
        source: &'a dyn ReadAt,
        mut take: impl FnMut(&Self, Chunk<S::Kind>) -> Result<(), StreamEnd>,
    ) -> Option<StreamEnd> {
        if let Err(end) = check_magic::<S>(source) {
            return Some(end);
        }
        let mut chunks = Self::new(source);
        while let Some(chunk) = chunks.next() {
            if let Err(end) = chunk.and_then(|chunk| take(&chunks, chunk)) {
                return Some(end);
            }
        }
        None
    }

    /// The next one. `None` at the end of the file and after an error.
    pub(crate) fn next(&mut self) -> Option<Result<Chunk<S::Kind>, StreamEnd>> {
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

    fn head(&self) -> Result<Chunk<S::Kind>, StreamEnd> {
        let at = FileOffset(self.at);
        let mut head = [0; CHUNK_HEAD];
        fill(self.source, &mut head, at.0, at)?;
        let [number, length] = [word(&head, 0), word(&head, 4)];
        let length = length as usize;
        if length > MAX_PAYLOAD {
            return Err(StreamEnd::Broken { at, what: "a chunk that is longer than any" });
        }
        if (CHUNK_HEAD + length + padding(length)) as u64 > self.len - self.at {
            return Err(StreamEnd::Cut { at });
        }
        let kind = S::KINDS.iter().copied().find(|kind| S::number(*kind) == number);
        let kind = kind.ok_or(StreamEnd::Broken { at, what: "a chunk of an unknown kind" })?;
        Ok(Chunk { kind, at, length })
    }

    /// The first bytes of a chunk's payload, all of it if it is shorter.
    pub(crate) fn payload(&self, chunk: Chunk<S::Kind>, at_most: usize) -> Result<Vec<u8>, StreamEnd> {
        let mut payload = vec![0; chunk.length.min(at_most)];
        fill(self.source, &mut payload, chunk.at.0 + CHUNK_HEAD as u64, chunk.at)?;
        Ok(payload)
    }
}

/// Whether a file is that of this stream.
pub(crate) fn check_magic<S: Stream>(source: &dyn ReadAt) -> Result<(), StreamEnd> {
    let at = FileOffset(0);
    let mut found = Magic::default();
    fill(source, &mut found, 0, at)?;
    if found == S::MAGIC { Ok(()) } else { Err(StreamEnd::Broken { at, what: "it is no such file of this version" }) }
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
