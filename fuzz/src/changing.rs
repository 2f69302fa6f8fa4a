//! A file that somebody writes to while it is read.

use std::cell::Cell;
use std::io;

use spdk_trace::ReadAt;

/// A state of a file: some bytes, a few of them overwritten, cut or grown to a length.
#[derive(Clone, Debug)]
pub struct Version<'a> {
    /// The bytes before anything was overwritten.
    pub base: &'a [u8],
    /// What was overwritten, later entries over earlier ones.
    pub pokes: Vec<(usize, Vec<u8>)>,
    /// Length of the file. What lies behind the base is zero.
    pub len: usize,
}

impl<'a> Version<'a> {
    /// The bytes as they are.
    pub fn new(base: &'a [u8]) -> Self {
        Self {
            base,
            pokes: Vec::new(),
            len: base.len(),
        }
    }

    /// The little-endian number at `at`, `width` bytes long.
    pub fn number(&self, at: usize, width: usize) -> u64 {
        let mut bytes = [0; 8];
        self.copy(&mut bytes[..width], at);
        u64::from_le_bytes(bytes)
    }

    fn copy(&self, buf: &mut [u8], start: usize) -> usize {
        let n = self.len.saturating_sub(start).min(buf.len());
        let buf = &mut buf[..n];
        let known = self.base.get(start..).unwrap_or_default();
        let known = &known[..known.len().min(n)];
        buf[..known.len()].copy_from_slice(known);
        buf[known.len()..].fill(0);
        for (at, bytes) in &self.pokes {
            for (i, byte) in (*at..).zip(bytes) {
                if let Some(place) = i.checked_sub(start).and_then(|i| buf.get_mut(i)) {
                    *place = *byte;
                }
            }
        }
        n
    }
}

/// A file that is `first` until some read, and `later` from then on; that read meets half of either.
#[derive(Debug)]
pub struct Changing<'a> {
    first: Version<'a>,
    later: Version<'a>,
    changes_at: u32,
    reads: Cell<u32>,
}

impl<'a> Changing<'a> {
    /// Changes at read number `changes_at`, from 0.
    pub fn new(first: Version<'a>, later: Version<'a>, changes_at: u32) -> Self {
        Self {
            first,
            later,
            changes_at,
            reads: Cell::new(0),
        }
    }

    /// The same, from its beginning.
    #[must_use]
    pub fn again(self) -> Self {
        Self {
            reads: Cell::new(0),
            ..self
        }
    }

    /// Length of the larger version.
    pub fn largest(&self) -> usize {
        self.first.len.max(self.later.len)
    }
}

impl ReadAt for Changing<'_> {
    fn len(&self) -> u64 {
        let version = if self.reads.get() <= self.changes_at {
            &self.first
        } else {
            &self.later
        };
        version.len as u64
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // As pread(2) does.
        let start = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)? as usize;
        let read = self.reads.replace(self.reads.get().saturating_add(1));
        if read > self.changes_at {
            return Ok(self.later.copy(buf, start));
        }
        let n = self.first.copy(buf, start);
        if read == self.changes_at {
            // Stores of 8 bytes are not torn apart.
            let half = n / 2 / 8 * 8;
            self.later
                .copy(&mut buf[half..n], start.saturating_add(half));
        }
        Ok(n)
    }
}
