//! A memory with a limit on the reads of one walk.

use std::cell::Cell;

use crate::memory::{Cause, Memory, MemoryError, Piece};

/// Limits on one walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of ranges, including unreadable ones.
    pub reads: u64,
}

impl Default for Limits {
    /// Returns more than the lists of a large program take, and less than a second of reading.
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            reads: 1_000_000,
        }
    }
}

/// Reads so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadCounts {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of ranges, including unreadable ones.
    pub reads: u64,
    /// Number of ranges that were not read because of the limits.
    pub refused: u64,
}

/// Memory that counts the reads from it, up to a limit. A walk over another process's lists should
/// always use one.
#[derive(Debug)]
pub struct LimitedMemory<M> {
    memory: M,
    limits: Limits,
    spent: Cell<ReadCounts>,
}

impl<M: Memory> LimitedMemory<M> {
    /// Wraps a memory, for a walk with these limits.
    pub fn new(memory: M, limits: Limits) -> Self {
        Self {
            memory,
            limits,
            spent: Cell::default(),
        }
    }

    /// Returns the reads so far.
    pub fn spent(&self) -> ReadCounts {
        self.spent.get()
    }

    /// Begins a new walk: earlier reads no longer count.
    pub fn restart(&self) {
        self.spent.take();
    }

    /// Returns the memory without limits.
    pub fn get(&self) -> &M {
        &self.memory
    }

    /// Counts a range; returns the cause if it may not be read.
    fn charge(&self, length: usize) -> Result<(), Cause> {
        let mut spent = self.spent.get();
        let bytes = spent.bytes.saturating_add(length as u64);
        let charged = if spent.reads >= self.limits.reads {
            Err(Cause::TooManyReads(self.limits.reads))
        } else if bytes > self.limits.bytes {
            Err(Cause::TooManyBytes(self.limits.bytes))
        } else {
            (spent.bytes, spent.reads) = (bytes, spent.reads + 1);
            Ok(())
        };
        self.spent.set(spent);
        charged
    }

    fn refuse(&self, pieces: &mut [Piece<'_>], cause: Cause) {
        let mut spent = self.spent.get();
        spent.refused += pieces.len() as u64;
        self.spent.set(spent);
        for piece in pieces {
            piece.result = Err(MemoryError::new(piece.address, piece.into.len(), cause));
        }
    }
}

impl<M: Memory> Memory for LimitedMemory<M> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let mut piece = [Piece::new(address, into)];
        self.read_many(&mut piece);
        piece[0].result
    }

    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        let charged = pieces.iter().map(|piece| self.charge(piece.into.len()));
        let over = charged
            .enumerate()
            .find_map(|(index, charged)| Some((index, charged.err()?)));
        let (within, beyond) = pieces.split_at_mut(over.map_or(pieces.len(), |(index, _)| index));
        self.memory.read_many(within);
        if let Some((_, cause)) = over {
            self.refuse(beyond, cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

    #[test]
    fn a_walk_ends_at_its_limits() {
        let memory = LimitedMemory::new(
            Image::new().with(0, &[7; 100]),
            Limits {
                bytes: 10,
                reads: 3,
            },
        );
        let mut eight = [0; 8];
        assert_eq!(memory.read(0, &mut eight), Ok(()));
        assert_eq!(
            memory.read(0, &mut eight).map_err(|error| error.cause),
            Err(Cause::TooManyBytes(10))
        );
        assert_eq!(
            memory.read(500, &mut [0]).map_err(|error| error.cause),
            Err(Cause::NotMapped)
        );
        assert_eq!(memory.read(0, &mut [0]), Ok(()));
        assert_eq!(
            memory.read(0, &mut [0]).map_err(|error| error.cause),
            Err(Cause::TooManyReads(3))
        );
        assert_eq!(
            memory.spent(),
            ReadCounts {
                bytes: 10,
                reads: 3,
                refused: 2
            }
        );
        memory.restart();
        assert_eq!(memory.read(0, &mut eight), Ok(()));
    }

    #[test]
    fn a_batch_is_read_up_to_the_limit() {
        let memory = LimitedMemory::new(
            Image::new().with(0, &[7; 100]),
            Limits {
                bytes: 100,
                reads: 2,
            },
        );
        let mut bytes = [0_u8; 4];
        let mut pieces: Vec<_> = bytes
            .chunks_mut(1)
            .map(|into| Piece::new(3, into))
            .collect();
        memory.read_many(&mut pieces);
        let results: Vec<_> = pieces
            .iter()
            .map(|piece| piece.result.map_err(|error| error.cause))
            .collect();
        let over = Err(Cause::TooManyReads(2));
        assert_eq!(results, [Ok(()), Ok(()), over, over]);
        assert_eq!(bytes, [7, 7, 0, 0]);
    }
}
