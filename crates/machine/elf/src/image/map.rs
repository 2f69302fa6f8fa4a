//! The address map of a file: which of its bytes are loaded at which addresses (`PT_LOAD`).

use object::elf::{PF_R, PF_W, PF_X, PT_LOAD};
use object::read::elf::ProgramHeader as _;

use super::{LE, ProgramHeader};
use crate::address::{ElfVaddr, FileOffset};
use crate::error::ElfError;

/// One loadable part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset of its bytes in the file.
    pub offset: FileOffset,
    /// Load address.
    pub vaddr: ElfVaddr,
    /// Number of bytes in the file.
    pub file_size: u64,
    /// Number of bytes in memory; those that the file lacks are zero.
    pub memory_size: u64,
    /// True if it can be read.
    pub readable: bool,
    /// True if it can be written.
    pub writable: bool,
    /// True if it is code.
    pub executable: bool,
}

impl Segment {
    pub(super) fn from_header(header: &ProgramHeader) -> Option<Self> {
        let flags = header.p_flags(LE);
        (header.p_type(LE) == PT_LOAD).then(|| Self {
            offset: FileOffset(header.p_offset(LE)),
            vaddr: ElfVaddr(header.p_vaddr(LE)),
            file_size: header.p_filesz(LE),
            memory_size: header.p_memsz(LE),
            readable: flags & PF_R != 0,
            writable: flags & PF_W != 0,
            executable: flags & PF_X != 0,
        })
    }
}

/// Loadable segments of a file, for translation between file offsets and addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddressMap {
    /// Segments in order of address, as the gABI asks of the file, too.
    by_vaddr: Vec<Segment>,
    by_offset: Vec<Segment>,
}

impl AddressMap {
    /// Makes a map of these segments. If segments overlap, which no linker makes, the higher one
    /// counts.
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut by_vaddr: Vec<Segment> = segments.into_iter().collect();
        by_vaddr.sort_by_key(|segment| segment.vaddr);
        let mut by_offset = by_vaddr.clone();
        by_offset.retain(|segment| segment.file_size > 0);
        by_offset.sort_by_key(|segment| segment.offset);
        Self {
            by_vaddr,
            by_offset,
        }
    }

    /// Returns the segments in order of address.
    pub fn segments(&self) -> &[Segment] {
        &self.by_vaddr
    }

    /// Returns the segment that holds this address in memory.
    pub fn segment(&self, vaddr: ElfVaddr) -> Option<&Segment> {
        let above = self
            .by_vaddr
            .partition_point(|segment| segment.vaddr <= vaddr);
        let segment = self.by_vaddr[..above].last()?;
        (vaddr.checked_above(segment.vaddr)? < segment.memory_size.max(segment.file_size))
            .then_some(segment)
    }

    /// Returns the file offset of the byte at this address.
    pub fn to_offset(&self, vaddr: ElfVaddr) -> Result<FileOffset, ElfError> {
        let unmapped = ElfError::VaddrUnmapped { vaddr };
        let Some(segment) = self.segment(vaddr) else {
            return Err(unmapped);
        };
        match vaddr.checked_above(segment.vaddr) {
            Some(within) if within < segment.file_size => {
                segment.offset.checked_add(within).ok_or(unmapped)
            }
            _ => Err(ElfError::VaddrNotInFile { vaddr }),
        }
    }

    /// Returns the load address of this byte of the file.
    pub fn to_vaddr(&self, offset: FileOffset) -> Result<ElfVaddr, ElfError> {
        let above = self
            .by_offset
            .partition_point(|segment| segment.offset <= offset);
        let found = self.by_offset[..above].last().and_then(|segment| {
            let within = offset.checked_above(segment.offset)?;
            if within < segment.file_size {
                segment.vaddr.checked_add(within)
            } else {
                None
            }
        });
        found.ok_or(ElfError::OffsetUnmapped { offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, vaddr: u64, file_size: u64, memory_size: u64) -> Segment {
        Segment {
            offset: FileOffset(offset),
            vaddr: ElfVaddr(vaddr),
            file_size,
            memory_size,
            readable: true,
            writable: false,
            executable: false,
        }
    }

    #[test]
    fn translates_both_ways_within_the_file() {
        let map = AddressMap::new([
            segment(0x2000, 0x43000, 0x500, 0x1000),
            segment(0, 0x40000, 0x800, 0x800),
        ]);
        assert_eq!(map.to_offset(ElfVaddr(0x407ff)), Ok(FileOffset(0x7ff)));
        assert_eq!(map.to_offset(ElfVaddr(0x43010)), Ok(FileOffset(0x2010)));
        assert_eq!(map.to_vaddr(FileOffset(0x2010)), Ok(ElfVaddr(0x43010)));
        assert_eq!(
            map.to_offset(ElfVaddr(0x40800)),
            Err(ElfError::VaddrUnmapped {
                vaddr: ElfVaddr(0x40800)
            })
        );
        assert_eq!(
            map.to_offset(ElfVaddr(0x43500)),
            Err(ElfError::VaddrNotInFile {
                vaddr: ElfVaddr(0x43500)
            })
        );
        assert_eq!(
            map.to_vaddr(FileOffset(0x1000)),
            Err(ElfError::OffsetUnmapped {
                offset: FileOffset(0x1000)
            })
        );
    }

    #[test]
    fn sizes_that_overflow_are_no_address() {
        let map = AddressMap::new([segment(u64::MAX, 0x1000, u64::MAX, u64::MAX)]);
        assert!(map.to_offset(ElfVaddr(0x1001)).is_err());
        assert!(map.to_vaddr(FileOffset(0)).is_err());
    }
}
