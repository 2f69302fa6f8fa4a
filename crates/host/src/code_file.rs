//! The bytes of a file that was read in parts, asked for range by range.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use probes::CodeBytes;

use crate::error::HostError;
use crate::file::ElfFile;

/// A file that is open for reading.
#[derive(Debug)]
pub struct CodeFile {
    file: File,
    length: u64,
}

impl ElfFile {
    /// All bytes of the file, where only some were read ([`FilePlace::load_notes`](crate::FilePlace::load_notes)).
    pub fn code(&self) -> Result<CodeFile, HostError> {
        let failed = |source| HostError::Read { path: self.path().to_owned(), source };
        let length = self.image()?.data().len() as u64;
        // Looked at before it is opened: opening a pipe waits for a writer.
        let same = |metadata: &std::fs::Metadata| metadata.is_file() && metadata.len() == length;
        if !same(&self.place.with_access(|| std::fs::metadata(self.opened())).map_err(failed)?) {
            return Err(failed(io::Error::other("it has changed since it was opened first")));
        }
        let file = self.place.with_access(|| File::open(self.opened())).map_err(failed)?;
        Ok(CodeFile { file, length })
    }
}

impl CodeBytes for CodeFile {
    fn bytes(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        if range.end > self.length {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, range.start).ok()?;
        Some(Cow::Owned(bytes))
    }
}
