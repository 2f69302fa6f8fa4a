//! The interface to a memory: bytes by their addresses, all of a range or an error.

use std::fmt;

use thiserror::Error;

/// Bytes by their addresses.
pub trait Memory {
    /// Fills `into` with the bytes at `address`, all of them or none: after an error its content is
    /// undefined.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError>;

    /// Reads many ranges, with as few system calls as possible. Each piece has its own result: an
    /// unreadable one does not affect the others.
    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        for piece in pieces {
            piece.result = self.read(piece.address, piece.into);
        }
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        (**self).read(address, into)
    }

    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        (**self).read_many(pieces);
    }
}

/// One of several ranges that are read at once.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Start address.
    pub address: u64,
    /// Buffer for the bytes; it has the length of the range.
    pub into: &'a mut [u8],
    /// Result of the read; `Ok` if it was not tried yet.
    pub result: Result<(), MemoryError>,
}

impl<'a> Piece<'a> {
    /// Creates a range to read.
    pub fn new(address: u64, into: &'a mut [u8]) -> Self {
        Self {
            address,
            into,
            result: Ok(()),
        }
    }
}

/// Error for a range that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{length} bytes at {address:#x} can't be read: {cause}")]
pub struct MemoryError {
    /// Start address of the range.
    pub address: u64,
    /// Number of bytes in the range.
    pub length: u64,
    /// Cause.
    pub cause: Cause,
}

impl MemoryError {
    /// Creates the error for this range.
    pub fn new(address: u64, length: usize, cause: Cause) -> Self {
        Self {
            address,
            length: length as u64,
            cause,
        }
    }
}

/// Reason why a range could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A part of it is not mapped, or not readable.
    NotMapped,
    /// The process has ended, or its number is another process's now.
    Gone,
    /// We may not read this process's memory.
    NotPermitted,
    /// The walk has reached this limit on bytes.
    TooManyBytes(u64),
    /// The walk has reached this limit on ranges.
    TooManyReads(u64),
}

impl Cause {
    /// Returns true if no other range can be read either.
    pub fn is_final(self) -> bool {
        self != Self::NotMapped
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMapped => f.write_str("not mapped"),
            Self::Gone => f.write_str("the process has ended"),
            Self::NotPermitted => f.write_str("not permitted: this needs CAP_SYS_PTRACE"),
            Self::TooManyBytes(limit) => write!(f, "the limit of {limit} bytes is reached"),
            Self::TooManyReads(limit) => write!(f, "the limit of {limit} reads is reached"),
        }
    }
}
