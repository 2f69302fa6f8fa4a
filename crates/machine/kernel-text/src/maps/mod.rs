//! The memory map of a process (`/proc/PID/maps`), and conversion between its addresses and its
//! files' bytes.
//!
//! The form of a line is that of `show_map_vma` in the kernel's `fs/proc/task_mmu.c` and of proc_pid_maps(5):
//! `start-end perms offset major:minor inode path`, the numbers in hex but for the inode.

mod line;

use std::path::{Path, PathBuf};

use crate::error::TextError;
use elf::{FileOffset, ProcAddr};

/// Permissions of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four permissions, as the kernel prints them"
)]
pub struct Permissions {
    /// `r`
    pub read: bool,
    /// `w`
    pub write: bool,
    /// `x`
    pub execute: bool,
    /// `s`: writes go to the file; otherwise (`p`) they stay with the process.
    pub shared: bool,
}

/// File system that a file is on, by device number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Device {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

/// Contents of a mapping.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Backing {
    /// Memory of its own, without a name.
    Anonymous,
    /// Memory that the kernel names: `[heap]`, `[vdso]`, `anon_inode:[perf_event]`.
    Special(String),
    /// A file.
    File {
        /// Path in the process's own view of the file system (for a container, see
        /// `/proc/PID/root`).
        path: PathBuf,
        /// True if the file was removed or replaced since; its bytes can still be read through
        /// `/proc/PID/map_files`. A file whose name itself ends in ` (deleted)` cannot be
        /// distinguished from a deleted one.
        deleted: bool,
    },
}

/// One mapping.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mapping {
    /// Address of the first byte.
    pub start: ProcAddr,
    /// Address after the last byte.
    pub end: ProcAddr,
    /// Permissions.
    pub permissions: Permissions,
    /// Offset in the file of the first byte.
    pub offset: FileOffset,
    /// Device of the file. On overlayfs and btrfs it differs from that of stat(2).
    pub device: Device,
    /// Inode number of the file; 0 for memory without a file.
    pub inode: u64,
    /// Contents.
    pub backing: Backing,
}

impl Mapping {
    /// Returns the mapped file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.backing {
            Backing::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns true if both are mappings of the same file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.file().is_some()
            && (self.device, self.inode, &self.backing)
                == (other.device, other.inode, &other.backing)
    }

    /// Returns the file offset of this address, if the mapping holds it.
    pub fn to_offset(&self, address: ProcAddr) -> Option<FileOffset> {
        let within = address.checked_above(self.start)?;
        if address < self.end {
            self.offset.checked_add(within)
        } else {
            None
        }
    }

    /// Returns the address of this byte of the file, if the mapping has it.
    pub fn to_address(&self, offset: FileOffset) -> Option<ProcAddr> {
        let address = self.start.checked_add(offset.checked_above(self.offset)?)?;
        (address < self.end).then_some(address)
    }
}

/// All mappings of a process, in order of address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcMaps {
    mappings: Vec<Mapping>,
}

impl ProcMaps {
    /// Parses the text of `/proc/PID/maps`. Paths need not be UTF-8, so it is bytes.
    pub fn parse(text: &[u8]) -> Result<Self, TextError> {
        let mut mappings = Vec::new();
        for (at, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
            if !bytes.is_empty() {
                let error = |expected| TextError::MapsLine {
                    line: at + 1,
                    expected,
                };
                mappings.push(line::mapping(bytes).map_err(error)?);
            }
        }
        mappings.sort_by_key(|mapping| mapping.start);
        Ok(Self { mappings })
    }

    /// Makes a map from mappings of code, in order of time: a later mapping replaces those that it
    /// overlaps.
    pub fn from_code(mapped: impl IntoIterator<Item = Mapping>) -> Self {
        let mut mappings: Vec<Mapping> = Vec::new();
        for new in mapped {
            mappings.retain(|old| old.end <= new.start || old.start >= new.end);
            mappings.push(new);
        }
        mappings.sort_by_key(|mapping| mapping.start);
        Self { mappings }
    }

    /// Returns the mappings.
    pub fn all(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns one mapping of each file whose code is mapped, in order of address: probes can be
    /// there.
    pub fn code_files(&self) -> Vec<&Mapping> {
        let mut files: Vec<&Mapping> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for mapping in self
            .mappings
            .iter()
            .filter(|mapping| mapping.permissions.execute)
        {
            if mapping.file().is_some()
                && seen.insert((mapping.device, mapping.inode, &mapping.backing))
            {
                files.push(mapping);
            }
        }
        files
    }

    /// Returns the mapping that holds this address.
    pub fn at(&self, address: ProcAddr) -> Option<&Mapping> {
        let above = self
            .mappings
            .partition_point(|mapping| mapping.start <= address);
        self.mappings[..above]
            .last()
            .filter(|mapping| address < mapping.end)
    }

    /// Returns the mapped file and the byte of it that the process has at this address.
    pub fn to_file(&self, address: ProcAddr) -> Option<(&Mapping, FileOffset)> {
        let mapping = self.at(address)?;
        mapping.file()?;
        Some((mapping, mapping.to_offset(address)?))
    }

    /// Returns the addresses of this byte of the file that `of` is a mapping of; several if the
    /// process mapped it more than once.
    pub fn addresses<'a>(
        &'a self,
        of: &'a Mapping,
        offset: FileOffset,
    ) -> impl Iterator<Item = ProcAddr> + 'a {
        let same = self
            .mappings
            .iter()
            .filter(move |mapping| mapping.is_same_file(of));
        same.filter_map(move |mapping| mapping.to_address(offset))
    }
}

#[cfg(test)]
mod tests;
