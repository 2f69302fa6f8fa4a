//! The sections of an ELF file that hold DWARF.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, FileHeader64, SectionHeader64};
use object::read::elf::{CompressionHeader as _, FileHeader as _, SectionHeader as _};

use super::lazy::LazyInfo;
use crate::error::TypeError;

const LE: LittleEndian = LittleEndian;

/// Storage format of a section's bytes (`ch_type` of the gABI's compression header).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SectionFormat {
    /// Uncompressed.
    Plain,
    /// `ELFCOMPRESS_ZLIB`: a zlib stream (RFC 1950).
    Zlib,
    /// `ELFCOMPRESS_ZSTD`: a Zstandard frame (RFC 8878).
    Zstd,
}

/// A needed section, as it lies in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugSection<'data> {
    /// Section name.
    pub name: &'static str,
    /// Bytes of the section, without the compression header.
    pub data: &'data [u8],
    /// Storage format of the bytes.
    pub format: SectionFormat,
    /// Inflated size in bytes, as the file states it: a claim, which [`crate::inflate`] checks
    /// against limits.
    pub size: u64,
}

/// The uncompressed sections. Those that a file does not have stay empty.
///
/// A file with compressed sections (`gcc -gz`, the debug files of some distributions) must first go
/// through [`crate::inflated`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DwarfSections<'data> {
    pub(super) info: &'data [u8],
    pub(super) types: &'data [u8],
    pub(super) abbrev: &'data [u8],
    pub(super) strings: &'data [u8],
    pub(super) line_strings: &'data [u8],
    pub(super) string_offsets: &'data [u8],
    pub(super) lines: &'data [u8],
    pub(super) addresses: &'data [u8],
    /// Replacement for `info`, read unit by unit.
    pub(super) lazy: Option<&'data LazyInfo<'data>>,
}

/// Names of the sections that types, variables and source lines need.
const NAMES: [&str; 8] = [
    ".debug_info",
    ".debug_types",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_line",
    ".debug_addr",
];
/// The same names, and those of the sections that inlined functions and address ranges need.
pub(crate) const ALL: [&str; 11] = [
    NAMES[0],
    NAMES[1],
    NAMES[2],
    NAMES[3],
    NAMES[4],
    NAMES[5],
    NAMES[6],
    NAMES[7],
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
];

/// A section, and the place of its header.
pub(crate) struct LocatedSection<'data> {
    pub(crate) section: DebugSection<'data>,
    /// Load address, as the file states it; 0 if it is not loaded.
    pub(crate) address: u64,
    /// Offset of the section header in the file.
    pub(crate) header: usize,
}

/// Finds the first section of each of these names in a 64-bit little-endian ELF file.
pub(crate) fn find<'data>(
    elf: &'data [u8],
    wanted: &[&'static str],
) -> Result<Vec<LocatedSection<'data>>, TypeError> {
    let broken = |error: object::Error| TypeError::NoDwarf {
        detail: format!("a broken ELF file: {error}"),
    };
    let header = FileHeader64::<LittleEndian>::parse(elf).map_err(broken)?;
    if !header.is_little_endian() {
        return Err(TypeError::NoDwarf {
            detail: "a big-endian ELF file".to_owned(),
        });
    }
    let table = header.sections(LE, elf).map_err(broken)?;
    let index = header.shstrndx(LE, elf).unwrap_or_default() as usize;
    let names = table
        .iter()
        .nth(index)
        .and_then(|section| section.data(LE, elf).ok())
        .unwrap_or_default();
    let mut found: Vec<LocatedSection<'data>> = Vec::new();
    for (index, section) in table.iter().enumerate() {
        // Compared in place: looking for a name's end would cost the length of all names for each section.
        let rest = names
            .get(section.sh_name(LE) as usize..)
            .unwrap_or_default();
        let is = |name: &str| {
            rest.strip_prefix(name.as_bytes())
                .is_some_and(|after| after.first() == Some(&0))
        };
        let Some(name) = wanted.iter().find(|name| is(name)) else {
            continue;
        };
        if found.iter().any(|known| known.section.name == *name) {
            continue;
        }
        let at = header.e_shoff(LE) as usize + index * size_of::<SectionHeader64<LittleEndian>>();
        let address = section.sh_addr(LE);
        found.push(LocatedSection {
            section: read(elf, section, name).map_err(broken)??,
            address,
            header: at,
        });
    }
    Ok(found)
}

/// Reads a section as it lies in the file.
fn read<'data>(
    elf: &'data [u8],
    section: &SectionHeader64<LittleEndian>,
    name: &'static str,
) -> object::Result<Result<DebugSection<'data>, TypeError>> {
    let Some((header, offset, size)) = section.compression(LE, elf)? else {
        let data = section.data(LE, elf)?;
        return Ok(Ok(DebugSection {
            name,
            data,
            format: SectionFormat::Plain,
            size: data.len() as u64,
        }));
    };
    let format = match header.ch_type(LE) {
        ELFCOMPRESS_ZLIB => SectionFormat::Zlib,
        ELFCOMPRESS_ZSTD => SectionFormat::Zstd,
        other => {
            return Ok(Err(TypeError::NoDwarf {
                detail: format!("{name}: compression {other:?}"),
            }));
        }
    };
    let end = offset
        .checked_add(size)
        .map(|end| offset as usize..end as usize);
    let cut = || TypeError::NoDwarf {
        detail: format!("the file ends within {name}"),
    };
    let data = end.and_then(|range| elf.get(range)).ok_or_else(cut);
    Ok(data.map(|data| DebugSection {
        name,
        data,
        format,
        size: header.ch_size(LE),
    }))
}

impl<'data> DwarfSections<'data> {
    /// Finds the sections of an executable, a library or a separate debug file. Returns an error
    /// that names the first compressed section, if there is one: see [`crate::inflated`].
    pub fn from_elf(elf: &'data [u8]) -> Result<Self, TypeError> {
        let mut sections = Self::default();
        for section in Self::locate(elf)? {
            let format = match section.format {
                SectionFormat::Plain => {
                    sections.set(section.name, section.data);
                    continue;
                }
                SectionFormat::Zlib => "zlib",
                SectionFormat::Zstd => "zstd",
            };
            return Err(TypeError::Compressed {
                section: section.name,
                format,
                size: section.size,
            });
        }
        if sections.info.is_empty() {
            return Err(TypeError::NoDwarf {
                detail: "the file has no section .debug_info".to_owned(),
            });
        }
        Ok(sections)
    }

    /// Finds the sections for types, variables and source lines in a 64-bit little-endian ELF file.
    pub fn locate(elf: &'data [u8]) -> Result<Vec<DebugSection<'data>>, TypeError> {
        Ok(find(elf, &NAMES)?
            .into_iter()
            .map(|found| found.section)
            .collect())
    }

    /// Finds the same sections, and those that inlined functions and address ranges need.
    pub fn every(elf: &'data [u8]) -> Result<Vec<DebugSection<'data>>, TypeError> {
        Ok(find(elf, &ALL)?
            .into_iter()
            .map(|found| found.section)
            .collect())
    }

    /// Sets the bytes of a section by its name; ignores names that [`DwarfSections::locate`] does
    /// not return.
    pub fn set(&mut self, name: &str, data: &'data [u8]) {
        match name {
            ".debug_info" => self.info = data,
            ".debug_types" => self.types = data,
            ".debug_abbrev" => self.abbrev = data,
            ".debug_str" => self.strings = data,
            ".debug_line_str" => self.line_strings = data,
            ".debug_str_offsets" => self.string_offsets = data,
            ".debug_line" => self.lines = data,
            ".debug_addr" => self.addresses = data,
            _ => {}
        }
    }

    /// Finds the sections, but reads `.debug_info` unit by unit. `elf` may have zeros in its place.
    pub fn lazy(elf: &'data [u8], info: &'data LazyInfo<'data>) -> Result<Self, TypeError> {
        let sections = Self::from_elf(elf)?;
        Ok(Self {
            info: &[],
            lazy: Some(info),
            ..sections
        })
    }

    /// Returns the range of `.debug_info` in the file, if it can be read unit by unit: no section
    /// is compressed, and no types are in a section of their own.
    pub fn info_range(elf: &'data [u8]) -> Option<Range<u64>> {
        let found = Self::locate(elf).ok()?;
        if found
            .iter()
            .any(|section| section.format != SectionFormat::Plain || section.name == ".debug_types")
        {
            return None;
        }
        let info = found
            .iter()
            .find(|section| section.name == ".debug_info")?
            .data;
        // `info` is a part of `elf`.
        let start = (info.as_ptr() as usize).checked_sub(elf.as_ptr() as usize)? as u64;
        Some(start..start + info.len() as u64)
    }

    /// Returns true if these bytes occur where names can be. Other names need no look-up.
    pub(super) fn mention(&self, name: &[u8]) -> bool {
        // Lazily read debug information is not searched here.
        if self.lazy.is_some() {
            return true;
        }
        let places = [self.strings, self.info, self.types, self.line_strings];
        places
            .iter()
            .any(|place| memchr::memmem::find(place, name).is_some())
    }
}
