//! The bytes of a stream, of which only those that are looked at are in memory.

use std::fmt;
use std::io::{ErrorKind, Read};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 8 << 10;

/// A file that is read from its begin to its end.
pub(crate) struct Input<'b> {
    source: Box<dyn Read + 'b>,
    buffer: Vec<u8>,
    /// Place in the buffer of the first byte that was not passed yet.
    begin: usize,
    /// Reason for which nothing more can be read.
    failed: Option<ErrorKind>,
}

impl<'b> Input<'b> {
    pub(crate) fn new(source: impl Read + 'b) -> Self {
        Self { source: Box::new(source), buffer: Vec::new(), begin: 0, failed: None }
    }

    /// Returns this number of bytes that come next; none if there are fewer.
    pub(crate) fn peek(&mut self, count: usize) -> Option<&[u8]> {
        while self.buffer.len() - self.begin < count && self.more() {}
        self.buffer[self.begin..].get(..count)
    }

    /// Passes over bytes that were looked at.
    pub(crate) fn pass(&mut self, count: usize) {
        self.begin = (self.begin + count).min(self.buffer.len());
    }

    /// Returns why nothing more can be read, if that is not the end.
    pub(crate) fn failed(&self) -> Option<ErrorKind> {
        self.failed
    }

    /// Reads a piece; returns false at the end.
    fn more(&mut self) -> bool {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let known = self.buffer.len();
        self.buffer.resize(known + PIECE_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[known..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let count = read.unwrap_or_else(|error| {
            self.failed = Some(error.kind());
            0
        });
        self.buffer.truncate(known + count);
        count > 0
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("buffered", &(self.buffer.len() - self.begin))
            .field("failed", &self.failed)
            .finish()
    }
}
