//! The framing of both streams: a file begins with 8 bytes that identify it, and chunks follow.
//!
//! A chunk consists of its kind (u32), the length of its payload in bytes (u32), the payload, and
//! zeros up to a multiple of 8 bytes. All numbers are little-endian. A chunk that is not wholly in
//! the file marks the place where the capture was cut.

use std::io::{self, Write};
use std::marker::PhantomData;

use spdk_trace::{FileOffset, ReadAt, StreamEnd};
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes as _, KnownLayout, Unaligned};

use crate::layout::ChunkHead;

/// Bytes before a chunk's payload.
pub const CHUNK_HEAD: usize = size_of::<ChunkHead>();
/// Limit on a payload, in bytes: a reader keeps one chunk at a time.
pub const MAX_PAYLOAD: usize = 1 << 24;
/// Number of buffered bytes that triggers a write.
const FLUSH_BYTES: usize = 1 << 18;

/// Bytes that identify a file; the last one is the version of its format.
type Magic = [u8; 8];

/// One of the two streams, with its file and its kinds of chunks.
pub trait Stream {
    /// Kinds of its chunks.
    type Kind: Copy + 'static;
    /// File name in the folder of a capture.
    const FILE: &'static str;
    /// First bytes of the file.
    const MAGIC: Magic;
    /// All kinds. A reader rejects others, so a new kind needs a new version of the format.
    const KINDS: &'static [Self::Kind];
    /// Returns the number of a kind in the file.
    fn number(kind: Self::Kind) -> u32;
}

/// Buffered writer of a stream of chunks.
#[derive(Debug)]
pub struct StreamWriter<W, S> {
    out: W,
    buffer: Vec<u8>,
    /// Bytes written, up to the end of a chunk.
    flushed: u64,
    stream: PhantomData<S>,
}

impl<W: Write, S: Stream> StreamWriter<W, S> {
    /// Starts the file.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut this = Self {
            out,
            buffer: S::MAGIC.to_vec(),
            flushed: 0,
            stream: PhantomData,
        };
        this.flush()?;
        Ok(this)
    }

    /// Creates a writer for chunks that go into a file later: [`Self::made`].
    pub(crate) fn detached(out: W) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            flushed: 0,
            stream: PhantomData,
        }
    }

    /// Appends chunks that were made before.
    pub(crate) fn made(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.out.write_all(chunks)?;
        self.flushed += chunks.len() as u64;
        Ok(())
    }

    /// Writes the buffered bytes, and returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }

    /// Appends a chunk with these parts as payload, [`MAX_PAYLOAD`] bytes at most.
    pub(crate) fn chunk(&mut self, kind: S::Kind, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let stated = u32::try_from(length).ok().filter(|_| length <= MAX_PAYLOAD);
        let Some(stated) = stated else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let head = ChunkHead {
            kind: S::number(kind).into(),
            length: stated.into(),
        };
        self.buffer.extend_from_slice(head.as_bytes());
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.buffer.resize(self.buffer.len() + padding(length), 0);
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes the buffered bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the size of the file in bytes, with the buffered ones.
    pub fn bytes(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Returns the number of bytes surely written, up to the end of a chunk. The file can be cut
    /// there if a later write failed.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(8) - length
}

/// Position of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<K> {
    pub(crate) kind: K,
    /// Offset of its start.
    pub(crate) at: FileOffset,
    /// Size of its payload, in bytes.
    pub(crate) length: usize,
}

impl<K> Chunk<K> {
    /// Returns an error that says what is wrong with this chunk.
    pub(crate) fn broken(&self, what: &'static str) -> StreamEnd {
        StreamEnd::Broken { at: self.at, what }
    }

    /// Splits the beginning of this layout off the chunk's payload; `what` is the error if it is
    /// shorter.
    pub(crate) fn split<'b, T>(
        &self,
        payload: &'b [u8],
        what: &'static str,
    ) -> Result<(&'b T, &'b [u8]), StreamEnd>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        T::ref_from_prefix(payload).map_err(|_| self.broken(what))
    }

    /// Reads a payload that has this layout; `what` is the error if it is shorter or longer.
    pub(crate) fn whole<'b, T>(
        &self,
        payload: &'b [u8],
        what: &'static str,
    ) -> Result<&'b T, StreamEnd>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        T::ref_from_bytes(payload).map_err(|_| self.broken(what))
    }
}

/// Reader of the chunks of a file.
pub(crate) struct Chunks<'a, S> {
    source: &'a dyn ReadAt,
    at: u64,
    len: u64,
    ended: bool,
    stream: PhantomData<S>,
}

impl<'a, S: Stream> Chunks<'a, S> {
    /// Creates a reader that starts after the file's first bytes.
    pub(crate) fn new(source: &'a dyn ReadAt) -> Self {
        Self {
            source,
            at: size_of::<Magic>() as u64,
            len: source.len(),
            ended: false,
            stream: PhantomData,
        }
    }

    /// Passes each chunk to `take`, up to the first error. Returns that error; `None` if the file
    /// ends regularly.
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

    /// Reads the next chunk. `None` at the end of the file and after an error.
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
        let mut head = ChunkHead::new_zeroed();
        fill(self.source, head.as_mut_bytes(), at.0, at)?;
        let (number, length) = (head.kind.get(), head.length.get() as usize);
        if length > MAX_PAYLOAD {
            return Err(StreamEnd::Broken {
                at,
                what: "a chunk that is longer than any",
            });
        }
        if (CHUNK_HEAD + length + padding(length)) as u64 > self.len - self.at {
            return Err(StreamEnd::Cut { at });
        }
        let kind = S::KINDS
            .iter()
            .copied()
            .find(|kind| S::number(*kind) == number);
        let kind = kind.ok_or(StreamEnd::Broken {
            at,
            what: "a chunk of an unknown kind",
        })?;
        Ok(Chunk { kind, at, length })
    }

    /// Reads the payload of a chunk, at most the first `at_most` bytes.
    pub(crate) fn payload(
        &self,
        chunk: Chunk<S::Kind>,
        at_most: usize,
    ) -> Result<Vec<u8>, StreamEnd> {
        let mut payload = vec![0; chunk.length.min(at_most)];
        fill(
            self.source,
            &mut payload,
            chunk.at.0 + CHUNK_HEAD as u64,
            chunk.at,
        )?;
        Ok(payload)
    }
}

/// Checks that a file is that of this stream.
pub(crate) fn check_magic<S: Stream>(source: &dyn ReadAt) -> Result<(), StreamEnd> {
    let at = FileOffset(0);
    let mut found = Magic::default();
    fill(source, &mut found, 0, at)?;
    if found == S::MAGIC {
        Ok(())
    } else {
        Err(StreamEnd::Broken {
            at,
            what: "it is not a file of this kind and version",
        })
    }
}

/// Reads the bytes at `offset`, which belong to the chunk that begins at `chunk`.
fn fill(
    source: &dyn ReadAt,
    mut buf: &mut [u8],
    mut offset: u64,
    chunk: FileOffset,
) -> Result<(), StreamEnd> {
    while !buf.is_empty() {
        let n = source
            .read_at(buf, offset)
            .map_err(|source| StreamEnd::Failed { at: chunk, source })?;
        if n == 0 {
            return Err(StreamEnd::Cut { at: chunk });
        }
        buf = &mut buf[n..];
        offset += n as u64;
    }
    Ok(())
}
