//! The bytes of an ELF file: its machine, its build-id and debug link, its sections and its address
//! map.
//!
//! Formats from the System V gABI, chapters 4 and 5, and `/usr/include/elf.h`. Only 64-bit little-endian files of x86-64
//! and aarch64 are read: those are the machines of [`uapi::Arch`].

mod dynamic;
mod identity;
mod map;
pub mod notes;
mod ranges;

use object::LittleEndian;
use object::elf::{FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

use crate::address::{ElfVaddr, FileOffset};
use crate::error::ElfError;
use uapi::Arch;

pub use dynamic::Dynamic;
pub use identity::{BuildId, DebugLink, SupplementLink};
pub use map::{AddressMap, Segment};
use notes::NoteArea;
pub use ranges::{HEADER_BYTES, count_range, merged, table_ranges};

pub(crate) const LE: LittleEndian = LittleEndian;
type Header = FileHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;
type ProgramHeader = ProgramHeader64<LittleEndian>;

/// Limit on sections or segments of notes. Real files have fewer than ten; a made-up file could
/// have one for each of its bytes.
const MAX_NOTE_AREAS: usize = 64;

/// Kind of a file's addresses: final, or relative to the place where it is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElfKind {
    /// `ET_EXEC`: an executable at a fixed address, whose virtual addresses are the process's own.
    Fixed,
    /// `ET_DYN`: a shared library or a position-independent executable.
    PositionIndependent,
}

/// An ELF file whose headers were checked.
#[derive(Clone, Debug)]
pub struct ElfImage<'data> {
    data: &'data [u8],
    arch: Arch,
    kind: ElfKind,
    segments: &'data [ProgramHeader],
    sections: &'data [Section],
    /// String table of the section names; empty if the file has no sections.
    section_names: &'data [u8],
    map: AddressMap,
}

impl<'data> ElfImage<'data> {
    /// Reads and checks the headers of a file's bytes.
    pub fn parse(data: &'data [u8]) -> Result<Self, ElfError> {
        identity::check_ident(data)?;
        let header = Header::parse(data).map_err(broken("file header"))?;
        let arch = identity::arch(header.e_machine(LE))?;
        let kind = identity::kind(header.e_type(LE))?;
        let segments = program_headers(header, data)?;
        let sections = section_headers(header, data)?;
        Ok(Self {
            data,
            arch,
            kind,
            segments,
            sections,
            section_names: section_names(header, sections, data),
            map: AddressMap::new(segments.iter().filter_map(Segment::from_header)),
        })
    }

    /// Returns the machine that the file is for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns the kind of the file's addresses.
    pub fn kind(&self) -> ElfKind {
        self.kind
    }

    /// Returns the file's bytes.
    pub fn data(&self) -> &'data [u8] {
        self.data
    }

    /// Returns the map between file offsets and load addresses. A separate debug file's own map is
    /// of no use: it keeps the headers of the file that it was split from, but not the bytes.
    pub fn address_map(&self) -> &AddressMap {
        &self.map
    }

    /// Returns true if the file has section headers; a file can lose them and still run.
    pub fn has_sections(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Returns the identifier that the linker gave this build (`NT_GNU_BUILD_ID`).
    pub fn build_id(&self) -> Option<BuildId> {
        let (areas, _) = distinct(self.note_areas(|_| true));
        let found = areas.iter().find_map(BuildId::find);
        found.or_else(|| self.note_segments().0.iter().find_map(BuildId::find))
    }

    /// Returns the separate debug file that this file names (`.gnu_debuglink`).
    pub fn debug_link(&self) -> Option<DebugLink> {
        let section = self.sections_named(b".gnu_debuglink").next()?;
        DebugLink::parse(self.section_data(section).ok()?)
    }

    /// Returns the file that shares debug information with this one (`.gnu_debugaltlink`).
    pub fn supplement_link(&self) -> Option<SupplementLink> {
        let section = self.sections_named(b".gnu_debugaltlink").next()?;
        SupplementLink::parse(self.section_data(section).ok()?)
    }

    /// Returns the address that the named section is loaded at.
    pub fn section_address(&self, name: &[u8]) -> Option<ElfVaddr> {
        self.sections_named(name)
            .next()
            .map(|section| ElfVaddr(section.sh_addr(LE)))
    }

    /// Returns the first section of this type (`SHT_*`).
    pub(crate) fn section_of_type(&self, kind: u32) -> Option<&'data Section> {
        self.sections
            .iter()
            .find(|section| section.sh_type(LE) == kind)
    }

    /// Returns the section that another one refers to by number (`sh_link`).
    pub(crate) fn linked_section(&self, section: &Section) -> Option<&'data Section> {
        self.sections.get(section.sh_link(LE) as usize)
    }

    /// Returns a section's bytes; empty for a section that the file only names (`SHT_NOBITS`).
    pub(crate) fn section_data(&self, section: &Section) -> Result<&'data [u8], ElfError> {
        section
            .data(LE, self.data)
            .map_err(|_| ElfError::Truncated {
                what: "section",
                offset: FileOffset(section.sh_offset(LE)),
                needed: section.sh_size(LE),
                len: self.data.len() as u64,
            })
    }

    /// Returns the note sections with this name, and the number of those that were left out.
    pub fn note_sections(&self, name: &[u8]) -> (Vec<NoteArea<'data>>, usize) {
        distinct(self.note_areas(|section| self.has_name(section, name)))
    }

    /// Returns the note segments, which stay if the section headers were stripped, and the number
    /// of those that were left out.
    pub fn note_segments(&self) -> (Vec<NoteArea<'data>>, usize) {
        let notes = self
            .segments
            .iter()
            .filter(|segment| segment.p_type(LE) == object::elf::PT_NOTE);
        distinct(notes.filter_map(|segment| {
            let bytes = segment.data(LE, self.data).ok()?;
            let offset = FileOffset(segment.p_offset(LE));
            Some(NoteArea {
                offset,
                bytes,
                align: segment.p_align(LE),
            })
        }))
    }

    fn note_areas(
        &self,
        wanted: impl Fn(&Section) -> bool,
    ) -> impl Iterator<Item = NoteArea<'data>> {
        let notes = self
            .sections
            .iter()
            .filter(|section| section.sh_type(LE) == object::elf::SHT_NOTE);
        notes
            .filter(move |section| wanted(section))
            .filter_map(|section| {
                let bytes = self.section_data(section).ok()?;
                let offset = FileOffset(section.sh_offset(LE));
                Some(NoteArea {
                    offset,
                    bytes,
                    align: section.sh_addralign(LE),
                })
            })
    }

    fn sections_named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'data Section> + 'a {
        self.sections
            .iter()
            .filter(move |section| self.has_name(section, name))
    }

    /// Compares a section's name in place: looking for the name's end first would cost the string
    /// table's length for every section.
    fn has_name(&self, section: &Section, name: &[u8]) -> bool {
        let rest = self
            .section_names
            .get(section.sh_name(LE) as usize..)
            .unwrap_or_default();
        rest.strip_prefix(name)
            .is_some_and(|after| after.first() == Some(&0))
    }
}

/// Returns the first areas without a byte in common, so that no more is read of them than the file
/// has; and the number of the others.
fn distinct<'data>(areas: impl Iterator<Item = NoteArea<'data>>) -> (Vec<NoteArea<'data>>, usize) {
    let (mut kept, mut left_out) = (Vec::<NoteArea<'data>>::new(), 0);
    for area in areas {
        if kept.len() < MAX_NOTE_AREAS && !kept.iter().any(|known| known.overlaps(&area)) {
            kept.push(area);
        } else {
            left_out += 1;
        }
    }
    (kept, left_out)
}

fn program_headers<'data>(
    header: &Header,
    data: &'data [u8],
) -> Result<&'data [ProgramHeader], ElfError> {
    let count = header
        .phnum(LE, data)
        .map_err(broken("program header count"))?;
    let needed = (count as u64).saturating_mul(size_of::<ProgramHeader>() as u64);
    check_inside("program header table", header.e_phoff(LE), needed, data)?;
    header
        .program_headers(LE, data)
        .map_err(broken("program headers"))
}

fn section_headers<'data>(
    header: &Header,
    data: &'data [u8],
) -> Result<&'data [Section], ElfError> {
    let offset = header.e_shoff(LE);
    if offset == 0 {
        return Ok(&[]);
    }
    let one = size_of::<Section>() as u64;
    check_inside("section header table", offset, one, data)?;
    let count = header
        .shnum(LE, data)
        .map_err(broken("section header count"))?;
    check_inside(
        "section header table",
        offset,
        (count as u64).saturating_mul(one),
        data,
    )?;
    header
        .section_headers(LE, data)
        .map_err(broken("section headers"))
}

/// Returns the string table of the section names. Without it, sections cannot be distinguished; the
/// rest can be read.
fn section_names<'data>(header: &Header, sections: &[Section], data: &'data [u8]) -> &'data [u8] {
    let index = header.shstrndx(LE, data).unwrap_or_default() as usize;
    let section = sections.get(index);
    section
        .and_then(|section| section.data(LE, data).ok())
        .unwrap_or_default()
}

fn check_inside(what: &'static str, offset: u64, needed: u64, data: &[u8]) -> Result<(), ElfError> {
    let len = data.len() as u64;
    match offset.checked_add(needed) {
        Some(end) if end <= len => Ok(()),
        _ => Err(ElfError::Truncated {
            what,
            offset: FileOffset(offset),
            needed,
            len,
        }),
    }
}

fn broken(what: &'static str) -> impl Fn(object::read::Error) -> ElfError {
    move |error| ElfError::Elf {
        what,
        detail: error.to_string().to_lowercase(),
    }
}
