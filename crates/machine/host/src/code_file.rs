//! Reading of a file range by range.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use elf::CodeBytes;

use crate::error::HostError;
use crate::file::ElfFile;
use crate::foreign::OpenedFile;

/// A file that is open for reading.
#[derive(Debug)]
pub struct CodeFile {
    file: OpenedFile,
}

impl ElfFile {
    /// Opens the file for its remaining bytes, if only some were read
    /// ([`FilePlace::load_notes`](crate::FilePlace::load_notes)). Returns an error if its length
    /// has changed.
    pub fn code(&self) -> Result<CodeFile, HostError> {
        let file = self.place().open()?;
        if file.length != self.image()?.data().len() as u64 {
            let source = io::Error::other("it has changed since it was opened first");
            return Err(HostError::Read {
                path: self.path().to_owned(),
                source,
            });
        }
        Ok(CodeFile { file })
    }
}

impl CodeBytes for CodeFile {
    fn bytes(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        if range.end > self.file.length {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, range.start).ok()?;
        Some(Cow::Owned(bytes))
    }
}
