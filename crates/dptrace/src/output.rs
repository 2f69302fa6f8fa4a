//! Where output goes: one large buffer in front of standard output or a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;

use crate::interrupt;
use crate::target::printable;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// A buffer that formats append to, and where it is emptied into.
pub(crate) struct Output {
    /// What formats append to.
    pub(crate) buffer: Vec<u8>,
    writer: Box<dyn Write>,
    /// For messages.
    name: String,
}

impl Output {
    /// To standard output (also by the name `-`, as for the input), or to the file of that name, which is created or
    /// replaced.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let (writer, name): (Box<dyn Write>, _) = match path.filter(|path| path.as_os_str() != "-") {
            None => (Box::new(io::stdout()), "standard output".to_owned()),
            Some(path) => {
                let name = printable(path);
                (Box::new(File::create(path).with_context(|| format!("creating {name}"))?), name)
            }
        };
        Ok(Self { buffer: Vec::with_capacity(BUFFER + BUFFER / 4), writer, name })
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
        let mut pieces = self.buffer.chunks(interrupt::piece());
        let written = pieces.try_for_each(|piece| interrupt::writing(|| self.writer.write_all(piece)));
        let written = written.and_then(|()| interrupt::writing(|| self.writer.flush()));
        self.buffer.clear();
        // The kind is kept: a reader who went away is no failure.
        written.map_err(|error| io::Error::new(error.kind(), format!("writing to {}: {error}", self.name)))
    }
}
