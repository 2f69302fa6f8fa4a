//! What of a live trace's file lies around its rings: written once, and then what changes of it, which are owners.

use std::io::{self, Write};
use std::ops::Range;

use spdk_trace::{FileOffset, Follower, ReadAt};

use crate::rings::RingsWriter;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

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
        let len = source.len();
        for part in follower.outside_of_slots(len) {
            let mut at = part.start;
            while at < part.end {
                let want = usize::try_from(part.end - at).unwrap_or(PIECE).min(PIECE);
                let bytes = read(source, at, want)?;
                writer.head(len, FileOffset(at), &bytes)?;
                if bytes.len() < want {
                    break;
                }
                at += want as u64;
            }
        }
        this.written = this.read(source)?;
        // They may have changed since they were written above.
        writer.section(FileOffset(this.place.start), &this.written)?;
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
