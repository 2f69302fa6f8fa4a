//! Where output goes: one large buffer in front of standard output or a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// A buffer that formats append to, and where it is emptied into.
pub(crate) struct Output {
    /// What formats append to.
    pub(crate) buffer: Vec<u8>,
    writer: Box<dyn Write>,
}

impl Output {
    /// To standard output, or to the file of that name, which is created or replaced.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let writer: Box<dyn Write> = match path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(File::create(path).with_context(|| format!("creating {}", path.display()))?),
        };
        Ok(Self::to(writer))
    }

    /// To any writer.
    pub(crate) fn to(writer: Box<dyn Write>) -> Self {
        Self { buffer: Vec::with_capacity(BUFFER + BUFFER / 4), writer }
    }

    /// Empties the buffer if it is full.
    #[inline]
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        if self.buffer.len() < BUFFER {
            return Ok(());
        }
        self.flush()
    }

    /// Empties the buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        self.writer.flush()
    }
}
