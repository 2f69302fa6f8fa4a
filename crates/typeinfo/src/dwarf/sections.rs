//! The sections of an ELF file that hold DWARF.

use object::LittleEndian;
use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, FileHeader64};
use object::read::elf::{CompressionHeader as _, FileHeader as _, SectionHeader as _};

use crate::error::TypeError;

const LE: LittleEndian = LittleEndian;

/// How a section's bytes are stored (`ch_type` of the gABI's compression header).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SectionFormat {
    /// As they are.
    Plain,
    /// `ELFCOMPRESS_ZLIB`: a zlib stream (RFC 1950).
    Zlib,
    /// `ELFCOMPRESS_ZSTD`: a Zstandard frame (RFC 8878).
    Zstd,
}

/// A section that is needed, as it lies in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugSection<'data> {
    /// Its name.
    pub name: &'static str,
    /// Its bytes, without the compression header.
    pub data: &'data [u8],
    /// How they are stored.
    pub format: SectionFormat,
    /// How many bytes there are when inflated, as the file says; check it against a limit of your own.
    pub size: u64,
}

/// The sections, plain. Those that a file does not have stay empty.
///
/// A file whose sections are compressed (`gcc -gz`, Fedora's debug files) is read so: call [`DwarfSections::locate`],
/// inflate each section whose format is not [`SectionFormat::Plain`] with a zlib or zstd library, keep the results, and
/// give each section's bytes to [`DwarfSections::set`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DwarfSections<'data> {
    pub(super) info: &'data [u8],
    pub(super) types: &'data [u8],
    pub(super) abbrev: &'data [u8],
    pub(super) strings: &'data [u8],
    pub(super) line_strings: &'data [u8],
    pub(super) string_offsets: &'data [u8],
    pub(super) lines: &'data [u8],
}

/// The names of the sections.
const NAMES: [&str; 7] = [
    ".debug_info",
    ".debug_types",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_line",
];

impl<'data> DwarfSections<'data> {
    /// The sections of an executable, a library or a separate debug file. Compressed ones are an error that names the first.
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
            return Err(TypeError::Compressed { section: section.name, format, size: section.size });
        }
        if sections.info.is_empty() {
            return Err(TypeError::NoDwarf { detail: "the file has no section .debug_info".to_owned() });
        }
        Ok(sections)
    }

    /// Where the sections are in a 64-bit little-endian ELF file.
    pub fn locate(elf: &'data [u8]) -> Result<Vec<DebugSection<'data>>, TypeError> {
        let broken = |error: object::Error| TypeError::NoDwarf { detail: format!("a broken ELF file: {error}") };
        let header = FileHeader64::<LittleEndian>::parse(elf).map_err(broken)?;
        if !header.is_little_endian() {
            return Err(TypeError::NoDwarf { detail: "a big-endian ELF file".to_owned() });
        }
        let table = header.sections(LE, elf).map_err(broken)?;
        let mut found: Vec<DebugSection<'data>> = Vec::new();
        for section in table.iter() {
            let name = table.section_name(LE, section).unwrap_or_default();
            let Some(name) = NAMES.iter().find(|known| known.as_bytes() == name) else {
                continue;
            };
            if found.iter().any(|known| known.name == *name) {
                continue;
            }
            let (data, format, size) = match section.compression(LE, elf).map_err(broken)? {
                None => {
                    let data = section.data(LE, elf).map_err(broken)?;
                    (data, SectionFormat::Plain, data.len() as u64)
                }
                Some((header, offset, size)) => {
                    let format = match header.ch_type(LE) {
                        ELFCOMPRESS_ZLIB => SectionFormat::Zlib,
                        ELFCOMPRESS_ZSTD => SectionFormat::Zstd,
                        other => return Err(TypeError::NoDwarf { detail: format!("{name}: compression {other:?}") }),
                    };
                    let end = offset.checked_add(size).map(|end| offset as usize..end as usize);
                    let data = end.and_then(|range| elf.get(range));
                    let cut = || TypeError::NoDwarf { detail: format!("the file ends within {name}") };
                    (data.ok_or_else(cut)?, format, header.ch_size(LE))
                }
            };
            found.push(DebugSection { name, data, format, size });
        }
        Ok(found)
    }

    /// Gives the bytes of a section by its name; others than those of [`DwarfSections::locate`] are ignored.
    pub fn set(&mut self, name: &str, data: &'data [u8]) {
        match name {
            ".debug_info" => self.info = data,
            ".debug_types" => self.types = data,
            ".debug_abbrev" => self.abbrev = data,
            ".debug_str" => self.strings = data,
            ".debug_line_str" => self.line_strings = data,
            ".debug_str_offsets" => self.string_offsets = data,
            ".debug_line" => self.lines = data,
            _ => {}
        }
    }

    /// Whether these bytes are anywhere that names can be. A name that is not need not be looked for.
    pub(super) fn mention(&self, name: &[u8]) -> bool {
        let places = [self.strings, self.info, self.types, self.line_strings];
        places.iter().any(|place| memchr::memmem::find(place, name).is_some())
    }
}
