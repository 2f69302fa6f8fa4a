//! Parts of a live trace's file around its rings: written once, and then only their changes, which
//! are owners.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use spdk_trace::{FileOffset, Follower, ReadAt};

use crate::rings::RingsWriter;

/// Size of one read, in bytes.
const READ_BYTES: usize = 1 << 20;
/// Size of a block, in bytes. Blocks of zeros are left out: there is room for thousands of owners,
/// and few are used.
const BLOCK: usize = 4096;

/// Approximate size of the owners that are compared and shared as one block, in bytes.
const GROUP_BYTES: usize = 1 << 15;

/// Owners of a live trace's file, as last written.
///
/// There is room for thousands (2 MiB and more), and few are used or change. Copies share the
/// unchanged blocks.
#[derive(Clone, Debug)]
pub struct OwnerSnapshot {
    place: Range<u64>,
    /// Size of one owner, in bytes.
    size: usize,
    /// Parts of the file outside the rings' slots.
    parts: Vec<Range<u64>>,
    /// Blocks of owners. Each has the same number of whole owners, except the last.
    blocks: Vec<Arc<[u8]>>,
}

/// Changed owners: their offsets and bytes.
pub(crate) type Changes = Vec<(FileOffset, Box<[u8]>)>;

impl OwnerSnapshot {
    /// Reads the owners, and writes nothing.
    pub fn read_now<S: ReadAt + ?Sized>(source: &S, follower: &Follower) -> io::Result<Self> {
        let place = follower.owners().place().unwrap_or(0..0);
        let parts = follower.outside_of_slots(source.len());
        let mut this = Self {
            place,
            size: follower.owners().entry_size().max(1),
            parts,
            blocks: Vec::new(),
        };
        let zeros: Arc<[u8]> = vec![0; this.block()].into();
        for index in 0.. {
            let bytes = this.read(source, index)?;
            if bytes.is_empty() {
                break;
            }
            this.blocks.push(if *bytes == *zeros {
                Arc::clone(&zeros)
            } else {
                bytes.into()
            });
        }
        Ok(this)
    }

    /// Writes everything outside the rings' slots.
    pub fn begin<S: ReadAt + ?Sized, W: Write>(
        source: &S,
        follower: &Follower,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<Self> {
        // The owners are read before the rest; changes meanwhile are written again.
        let mut this = Self::read_now(source, follower)?;
        this.head(source, writer)?;
        this.refresh(source, writer)?;
        Ok(this)
    }

    /// Writes everything outside the rings' slots, with the owners as they are in `self`.
    pub(crate) fn write<S: ReadAt + ?Sized, W: Write>(
        &self,
        source: &S,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<()> {
        let mut ours = self.others(source)?;
        self.head(source, writer)?;
        // Owners that have changed while the head was read.
        for (at, owner) in self.others(source)? {
            if !ours.iter().any(|(known, _)| *known == at) {
                ours.push((at, owner));
            }
        }
        ours.iter()
            .try_for_each(|(at, owner)| writer.section(*at, owner))
    }

    fn head<S: ReadAt + ?Sized, W: Write>(
        &self,
        source: &S,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<()> {
        let len = source.len();
        for part in &self.parts {
            let mut at = part.start;
            while at < part.end {
                let want = usize::try_from(part.end - at)
                    .unwrap_or(READ_BYTES)
                    .min(READ_BYTES);
                let bytes = read(source, at, want)?;
                write_blocks(len, at, &bytes, writer)?;
                if bytes.len() < want {
                    break;
                }
                at += want as u64;
            }
        }
        Ok(())
    }

    /// Writes the owners that have changed since they were written.
    pub fn refresh<S: ReadAt + ?Sized, W: Write>(
        &mut self,
        source: &S,
        writer: &mut RingsWriter<W>,
    ) -> io::Result<()> {
        self.changes(source)?
            .iter()
            .try_for_each(|(at, owner)| writer.section(*at, owner))
    }

    /// Returns the owners that have changed since they were last read.
    pub(crate) fn changes<S: ReadAt + ?Sized>(&mut self, source: &S) -> io::Result<Changes> {
        let mut changes = Changes::new();
        for index in 0..self.blocks.len() {
            let now = self.read(source, index)?;
            if *now != *self.blocks[index] {
                changes.extend(self.differing(index, &now, &self.blocks[index]));
                self.blocks[index] = now.into();
            }
        }
        Ok(changes)
    }

    /// Returns our versions of the owners that differ in the file.
    fn others<S: ReadAt + ?Sized>(&self, source: &S) -> io::Result<Changes> {
        let mut others = Changes::new();
        for (index, block) in self.blocks.iter().enumerate() {
            let now = self.read(source, index)?;
            if *now != **block {
                others.extend(self.differing(index, block, &now));
            }
        }
        Ok(others)
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, (at, owner): &(FileOffset, Box<[u8]>)) {
        let begin = usize::try_from(at.0.saturating_sub(self.place.start)).unwrap_or(usize::MAX);
        let (index, begin) = (begin / self.block(), begin % self.block());
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        let mut bytes = block.to_vec();
        if let Some(place) = bytes.get_mut(begin..begin.saturating_add(owner.len())) {
            place.copy_from_slice(owner);
            *block = bytes.into();
        }
    }

    /// Returns the owners in `ones`, a block, that differ from those in `others`.
    fn differing<'a>(
        &self,
        index: usize,
        ones: &'a [u8],
        others: &'a [u8],
    ) -> impl Iterator<Item = (FileOffset, Box<[u8]>)> + use<'a> {
        let (size, begin) = (self.size, self.place.start + (index * self.block()) as u64);
        let mut others = others.chunks(size);
        let differing = ones
            .chunks(size)
            .enumerate()
            .filter(move |(_, owner)| others.next() != Some(*owner));
        differing.map(move |(at, owner)| (FileOffset(begin + (at * size) as u64), owner.into()))
    }

    /// Returns the size of a block, in bytes.
    fn block(&self) -> usize {
        (GROUP_BYTES / self.size).max(1) * self.size
    }

    /// Reads a block.
    fn read<S: ReadAt + ?Sized>(&self, source: &S, index: usize) -> io::Result<Vec<u8>> {
        let at = self
            .place
            .start
            .saturating_add((index * self.block()) as u64);
        let rest = usize::try_from(self.place.end.saturating_sub(at)).unwrap_or(usize::MAX);
        read(source, at, rest.min(self.block()))
    }
}

/// Writes the blocks that are not all zeros, adjacent ones together.
fn write_blocks<W: Write>(
    len: u64,
    at: u64,
    bytes: &[u8],
    writer: &mut RingsWriter<W>,
) -> io::Result<()> {
    let has_some = |block: &[u8]| block.iter().any(|&byte| byte != 0);
    let mut begin = 0;
    for run in bytes
        .chunks(BLOCK)
        .collect::<Vec<_>>()
        .chunk_by(|a, b| has_some(a) == has_some(b))
    {
        let end = begin + run.iter().map(|block| block.len()).sum::<usize>();
        if has_some(&bytes[begin..end]) {
            writer.head(len, FileOffset(at + begin as u64), &bytes[begin..end])?;
        }
        begin = end;
    }
    Ok(())
}

/// Reads up to `size` bytes from this offset, fewer at the end of the file.
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
