//! The bytes of a stream; only those in use are in memory.

use std::fmt;
use std::io::{ErrorKind, Read};

/// Bytes per read.
const READ_BYTES: usize = 8 << 10;

/// A file that is read from start to end.
pub(crate) struct Input<'b> {
    source: Box<dyn Read + 'b>,
    buffer: Vec<u8>,
    /// Index in the buffer of the first byte not passed yet.
    begin: usize,
    /// Error after which nothing more can be read.
    failed: Option<ErrorKind>,
}

impl<'b> Input<'b> {
    pub(crate) fn new(source: impl Read + 'b) -> Self {
        Self {
            source: Box::new(source),
            buffer: Vec::new(),
            begin: 0,
            failed: None,
        }
    }

    /// Returns the next `count` bytes; `None` if there are fewer.
    pub(crate) fn peek(&mut self, count: usize) -> Option<&[u8]> {
        while self.buffer.len() - self.begin < count && self.more() {}
        self.buffer[self.begin..].get(..count)
    }

    /// Passes over bytes that were peeked at.
    pub(crate) fn pass(&mut self, count: usize) {
        self.begin = (self.begin + count).min(self.buffer.len());
    }

    /// Returns the error that ended the input, if any.
    pub(crate) fn failed(&self) -> Option<ErrorKind> {
        self.failed
    }

    /// Reads more bytes; returns false at the end.
    fn more(&mut self) -> bool {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let known = self.buffer.len();
        self.buffer.resize(known + READ_BYTES, 0);
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
