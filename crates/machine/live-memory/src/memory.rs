//! What a memory is: bytes by their addresses, all of a range or an error.

use std::fmt;

use thiserror::Error;

/// Bytes by their addresses.
pub trait Memory {
    /// Reads as many bytes as `into` has, all of them or none: after an error its content is not defined.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Reads many ranges, with as few system calls as the memory can. Each piece then has its own result: one that can't be
    /// read does not keep the others from being read.
    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        for piece in pieces {
            piece.result = self.read(piece.address, piece.into);
        }
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read(address, into)
    }

    fn read_many(&self, pieces: &mut [Piece<'_>]) {
        (**self).read_many(pieces);
    }
}

/// One range of several that are read at once.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Where it begins.
    pub address: u64,
    /// Where its bytes go, as many as this has.
    pub into: &'a mut [u8],
    /// Whether it was read; of a piece that was not tried yet, that it was.
    pub result: Result<(), Unreadable>,
}

impl<'a> Piece<'a> {
    /// A range that is to be read.
    pub fn new(address: u64, into: &'a mut [u8]) -> Self {
        Self { address, into, result: Ok(()) }
    }
}

/// That a range could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{length} bytes at {address:#x} can't be read: {cause}")]
pub struct Unreadable {
    /// Where the range begins.
    pub address: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Why.
    pub cause: Cause,
}

impl Unreadable {
    /// That this range could not be read.
    pub fn new(address: u64, length: usize, cause: Cause) -> Self {
        Self { address, length: length as u64, cause }
    }
}

/// Why a range could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A part of it is not mapped, or not for reading.
    NotMapped,
    /// The process has ended, or its number is another process's now.
    Gone,
    /// We may not read this process's memory.
    NotPermitted,
    /// The walk has read as many bytes as it may: this many.
    TooManyBytes(u64),
    /// The walk has read as many ranges as it may: this many.
    TooManyReads(u64),
}

impl Cause {
    /// Whether no other range can be read either.
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
