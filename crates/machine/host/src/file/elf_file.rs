//! ELF files that were read, and their debug files.

use crate::error::HostError;
use crate::file::FileReadError;
use crate::foreign::OpenedFile;
use crate::parts::{self, Parts};
use crate::{FilePlace, debug_file};
use elf::ElfImage;
use std::path::{Path, PathBuf};
use sys::memory::Shared;

/// An ELF file that was read.
#[derive(Clone, Debug)]
pub struct ElfFile {
    place: FilePlace,
    opened: PathBuf,
    bytes: Shared,
    taken: u64,
}

impl ElfFile {
    /// Reads parts of an open file. Returns an error if it is not an ELF file at all;
    /// [`ElfFile::image`] detects other files that can't be traced.
    pub(crate) fn read(
        place: FilePlace,
        opened: PathBuf,
        file: &OpenedFile,
        parts: Parts,
    ) -> Result<Self, FileReadError> {
        let (bytes, taken) = parts::read(file, parts)?;
        if !bytes.starts_with(b"\x7fELF") {
            ElfImage::parse(&bytes).map_err(FileReadError::Elf)?;
        }
        Ok(Self {
            place,
            opened,
            bytes,
            taken,
        })
    }

    /// Returns the path as its user sees it.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns the location of the file, to read more of it.
    pub fn place(&self) -> &FilePlace {
        &self.place
    }

    /// Returns the path under which it was read: a probe can be attached there.
    pub fn opened(&self) -> &Path {
        &self.opened
    }

    /// Returns the bytes that were read, at their offsets, among zeros.
    pub fn bytes(&self) -> &Shared {
        &self.bytes
    }

    /// Returns the memory that the bytes take, in bytes.
    pub fn memory(&self) -> u64 {
        self.taken
    }

    /// Reads the same file with all that a process has of it, if less was read.
    pub fn whole(&self) -> Result<ElfFile, HostError> {
        self.place.load()
    }

    /// Parses the bytes.
    pub fn image(&self) -> Result<ElfImage<'_>, HostError> {
        ElfImage::parse(&self.bytes).map_err(|source| HostError::Elf {
            path: self.path().to_owned(),
            source,
        })
    }

    /// Finds the file that this file's symbols were moved to, if it is on this machine: in the
    /// file's own container, or by its build-id outside of it. This file's notes and the name of
    /// its debug file must have been read.
    pub fn debug_file(&self) -> Option<ElfFile> {
        self.place
            .with_access(|| debug_file::find(self, Parts::Symbols))
    }

    /// Finds the same file with its debug information.
    pub fn debug_information(&self) -> Option<ElfFile> {
        self.place
            .with_access(|| debug_file::find(self, Parts::Debug))
    }

    /// Finds the same file with the parts that types need, except `.debug_info`.
    pub fn debug_types(&self) -> Option<ElfFile> {
        self.place
            .with_access(|| debug_file::find(self, Parts::Types))
    }

    /// Finds the file to which debug information was moved that several files share
    /// (`.gnu_debugaltlink`, dwz(1)).
    pub fn supplement(&self) -> Option<ElfFile> {
        self.place.with_access(|| debug_file::supplement(self))
    }
}
