//! A trace file without its rings' slots: the part of a live file that a capture keeps besides the
//! copied slots.

use std::io;

use crate::source::ReadAt;
use crate::units::FileOffset;

/// The bytes of a trace file outside its rings' slots. All others read as zeros.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    len: u64,
    /// Parts by offset. They neither overlap nor touch each other.
    parts: Vec<(u64, Vec<u8>)>,
}

impl Tables {
    /// Creates tables without content, for a file of `len` bytes.
    pub fn new(len: u64) -> Self {
        Self {
            len,
            parts: Vec::new(),
        }
    }

    /// Appends bytes after all earlier ones. Returns false, and adds nothing, if they overlap these
    /// or exceed the file.
    #[must_use]
    pub fn push(&mut self, at: FileOffset, bytes: &[u8]) -> bool {
        let end = self
            .parts
            .last()
            .map_or(0, |(at, bytes)| at + bytes.len() as u64);
        let fits = at.0 >= end
            && at
                .0
                .checked_add(bytes.len() as u64)
                .is_some_and(|end| end <= self.len);
        if !fits {
            return false;
        }
        match self.parts.last_mut() {
            Some((_, last)) if at.0 == end => last.extend_from_slice(bytes),
            _ => self.parts.push((at.0, bytes.to_vec())),
        }
        true
    }

    /// Returns whether no bytes have been added.
    pub fn has_nothing(&self) -> bool {
        self.parts.is_empty()
    }
}

impl ReadAt for Tables {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let n = usize::try_from(self.len.saturating_sub(offset))
            .unwrap_or(usize::MAX)
            .min(buf.len());
        let buf = &mut buf[..n];
        buf.fill(0);
        let end = offset + n as u64;
        let first = self
            .parts
            .partition_point(|(at, bytes)| at + bytes.len() as u64 <= offset);
        for (at, bytes) in self.parts[first..].iter().take_while(|(at, _)| *at < end) {
            let (from, to) = (offset.max(*at), end.min(at + bytes.len() as u64));
            buf[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bytes_are_zero() {
        let mut tables = Tables::new(12);
        assert!(
            tables.push(FileOffset(1), b"ab")
                && tables.push(FileOffset(3), b"c")
                && tables.push(FileOffset(8), b"de")
        );
        assert!(!tables.push(FileOffset(9), b"x") && !tables.push(FileOffset(11), b"xy"));
        assert!(!tables.push(FileOffset(u64::MAX), b"x"));
        let read = |offset, len| {
            let mut buf = vec![9; len];
            let n = tables.read_at(&mut buf, offset).unwrap();
            buf.truncate(n);
            buf
        };
        assert_eq!(read(0, 99), b"\0abc\0\0\0\0de\0\0");
        assert_eq!(
            (read(2, 7), read(3, 1)),
            (b"bc\0\0\0\0d".to_vec(), b"c".to_vec())
        );
        assert_eq!((read(12, 4), read(u64::MAX, 4)), (Vec::new(), Vec::new()));
    }
}
