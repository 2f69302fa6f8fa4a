//! What of a live trace's file lies around its rings: written once, and then what changes of it, which are owners.

use std::io::{self, Write};
use std::ops::Range;

use spdk_trace::{FileOffset, Follower, ReadAt};

use crate::rings::RingsWriter;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Blocks of zeros are left out: there is room for thousands of owners, and few of them are there.
const BLOCK: usize = 4096;

/// The owners of a live trace's file, as they were written last.
#[derive(Debug)]
pub struct Around {
    place: Range<u64>,
    /// Bytes of one owner.
    size: usize,
    written: Vec<u8>,
}

impl Around {
    /// Writes all that lies outside the rings' slots.
    pub fn begin<S: ReadAt + ?Sized, W: Write>(
        source: &S,
        follower: &Follower,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<Self> {
        let place = follower.owners().place().unwrap_or(0..0);
        let mut this = Self { place, size: follower.owners().entry_size(), written: Vec::new() };
        // Before the rest: what changes meanwhile is written again.
        this.written = this.read(source)?;
        let len = source.len();
        for part in follower.outside_of_slots(len) {
            let mut at = part.start;
            while at < part.end {
                let want = usize::try_from(part.end - at).unwrap_or(PIECE).min(PIECE);
                let bytes = read(source, at, want)?;
                write_blocks(len, at, &bytes, writer)?;
                if bytes.len() < want {
                    break;
                }
                at += want as u64;
            }
        }
        this.refresh(source, writer)?;
        Ok(this)
    }

    /// Writes which owners have changed since they were written.
    pub fn refresh<S: ReadAt + ?Sized, W: Write>(&mut self, source: &S, writer: &mut RingsWriter<W>) -> io::Result<()> {
        let now = self.read(source)?;
        if now == self.written {
            return Ok(());
        }
        let mut before = self.written.chunks(self.size);
        for (index, owner) in now.chunks(self.size).enumerate() {
            if before.next() != Some(owner) {
                writer.section(FileOffset(self.place.start + (index * self.size) as u64), owner)?;
            }
        }
        self.written = now;
        Ok(())
    }

    fn read<S: ReadAt + ?Sized>(&self, source: &S) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.place.end - self.place.start).unwrap_or_default();
        read(source, self.place.start, size)
    }
}

/// Writes the blocks that are not all zeros, those that follow one another at once.
fn write_blocks<W: Write>(len: u64, at: u64, bytes: &[u8], writer: &mut RingsWriter<W>) -> io::Result<()> {
    let has_some = |block: &[u8]| block.iter().any(|&byte| byte != 0);
    let mut begin = 0;
    for run in bytes.chunks(BLOCK).collect::<Vec<_>>().chunk_by(|a, b| has_some(a) == has_some(b)) {
        let end = begin + run.iter().map(|block| block.len()).sum::<usize>();
        if has_some(&bytes[begin..end]) {
            writer.head(len, FileOffset(at + begin as u64), &bytes[begin..end])?;
        }
        begin = end;
    }
    Ok(())
}

/// The bytes from there on, fewer if the file ends before.
fn read<S: ReadAt + ?Sized>(source: &S, at: u64, size: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut done) = (vec![0; size], 0);
    while done < size {
        match source.read_at(&mut bytes[done..], at + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
