//! Ranges of a file that each purpose needs, so that not all of a large one need be read.

use std::ops::Range;

use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

use super::{ElfImage, Header, LE, ProgramHeader, Section, identity};
use crate::address::ElfVaddr;

/// Length of a file header in bytes: the least that [`table_ranges`] needs.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// Sections of debug information with types, functions and lines: those of DWARF 2 to 5 except
/// places of variables, macros and indexes (DWARF 5 standard, section 7.1).
const DEBUG_INFORMATION: [&[u8]; 11] = [
    b"abbrev",
    b"addr",
    b"aranges",
    b"info",
    b"line",
    b"line_str",
    b"ranges",
    b"rnglists",
    b"str",
    b"str_offsets",
    b"types",
];

/// Sections of these that types need besides the entries themselves.
const BESIDE_TYPES: [&[u8]; 5] = [b"abbrev", b"addr", b"line_str", b"str", b"str_offsets"];

/// Returns the range of the first section header, if it has the counts that are too large for the
/// file header (gABI, "Number of sections"): [`table_ranges`] needs it.
pub fn count_range(first: &[u8]) -> Option<Range<u64>> {
    identity::check_ident(first).ok()?;
    let header = Header::parse(first).ok()?;
    let offset = header.e_shoff(LE);
    let is_large = header.e_phnum(LE) == object::elf::PN_XNUM || header.e_shnum(LE) == 0;
    (offset != 0 && is_large).then(|| offset..offset.saturating_add(size_of::<Section>() as u64))
}

/// Returns the ranges of the tables of segments and sections, from a file's header and the range of
/// [`count_range`]; `None` if these are broken.
pub fn table_ranges(bytes: &[u8]) -> Option<Vec<Range<u64>>> {
    identity::check_ident(bytes).ok()?;
    let header = Header::parse(bytes).ok()?;
    let table = |offset: u64, count: usize, size: usize| {
        range(offset, (count as u64).saturating_mul(size as u64))
    };
    Some(vec![
        table(
            header.e_phoff(LE),
            header.phnum(LE, bytes).ok()?,
            size_of::<ProgramHeader>(),
        ),
        table(
            header.e_shoff(LE),
            header.shnum(LE, bytes).ok()?,
            size_of::<Section>(),
        ),
    ])
}

/// Merges ranges of a file: the result is in order and has each byte once. A table of 65,000
/// sections can name the whole file 65,000 times.
pub fn merged(ranges: impl Iterator<Item = Range<u64>>, file: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges
        .map(|range| range.start..range.end.min(file))
        .collect();
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let touch = next.start <= kept.end;
        kept.end = if touch {
            kept.end.max(next.end)
        } else {
            kept.end
        };
        touch
    });
    ranges
}

fn range(offset: u64, size: u64) -> Range<u64> {
    offset..offset.saturating_add(size)
}

/// Returns the range of a section's bytes, if the file has them.
fn bytes_of(section: &Section) -> Option<Range<u64>> {
    section
        .file_range(LE)
        .map(|(offset, size)| range(offset, size))
}

impl ElfImage<'_> {
    /// Returns the ranges of the notes and of the section names. It needs no more than the ranges
    /// of [`table_ranges`].
    pub fn note_ranges(&self) -> Vec<Range<u64>> {
        let header = Header::parse(self.data).ok();
        let names = header.and_then(|header| header.shstrndx(LE, self.data).ok());
        let names = names.and_then(|index| self.sections.get(index as usize));
        let notes = self
            .sections
            .iter()
            .filter(|section| section.sh_type(LE) == object::elf::SHT_NOTE);
        let sections = names.into_iter().chain(notes).filter_map(bytes_of);
        let segments = self
            .segments
            .iter()
            .filter(|segment| segment.p_type(LE) == object::elf::PT_NOTE);
        merged(
            sections.chain(segments.map(|it| range(it.p_offset(LE), it.p_filesz(LE)))),
            self.data.len() as u64,
        )
    }

    /// Returns the table of the file's unwind information (`PT_GNU_EH_FRAME`, the section
    /// `.eh_frame_hdr`): its address and its range in the file. Stripping leaves it.
    pub(crate) fn unwind_table(&self) -> Option<(ElfVaddr, Range<u64>)> {
        let kind = object::elf::PT_GNU_EH_FRAME;
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.p_type(LE) == kind)?;
        let offset = segment.p_offset(LE);
        Some((
            ElfVaddr(segment.p_vaddr(LE)),
            offset..offset.checked_add(segment.p_filesz(LE))?,
        ))
    }

    /// Returns the file range of the unwind information that begins at this address: to its
    /// section's end, or without sections to its segment's.
    pub(crate) fn unwind_entries(&self, begin: ElfVaddr) -> Option<Range<u64>> {
        let offset = self.map.to_offset(begin).ok()?.0;
        let section = self
            .sections
            .iter()
            .find(|section| section.sh_addr(LE) == begin.0 && begin.0 != 0);
        let segment = self.map.segment(begin)?;
        let in_segment = segment
            .file_size
            .checked_sub(begin.checked_above(segment.vaddr)?)?;
        let size = section.map_or(in_segment, |section| section.sh_size(LE).min(in_segment));
        Some(offset..offset.checked_add(size)?)
    }

    /// Returns the addresses of the sections of code that a process has in its memory, in order.
    pub fn code_sections(&self) -> Vec<Range<u64>> {
        let wanted = u64::from(object::elf::SHF_ALLOC | object::elf::SHF_EXECINSTR);
        let code = self
            .sections
            .iter()
            .filter(|section| section.sh_flags(LE) & wanted == wanted);
        let mut ranges: Vec<_> = code
            .map(|section| range(section.sh_addr(LE), section.sh_size(LE)))
            .collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges
    }

    /// Returns the file range of the first section of this type (`SHT_*`).
    pub(crate) fn range_of_type(&self, kind: u32) -> Option<Range<u64>> {
        let section = self.section_of_type(kind)?;
        Some(section.sh_offset(LE)..section.sh_offset(LE).checked_add(section.sh_size(LE))?)
    }

    /// Returns the ranges of the symbol tables with their names, and of the names of separate debug
    /// files. It needs the section names, as do the functions below.
    pub fn symbol_ranges(&self) -> Vec<Range<u64>> {
        let tables = [object::elf::SHT_SYMTAB, object::elf::SHT_DYNSYM];
        let tables = tables
            .into_iter()
            .filter_map(|kind| self.section_of_type(kind));
        let names = tables
            .clone()
            .filter_map(|table| self.linked_section(table));
        let links = [b".gnu_debuglink".as_slice(), b".gnu_debugaltlink"];
        let links = links
            .into_iter()
            .flat_map(|name| self.sections_named(name).take(1));
        tables
            .chain(names)
            .chain(links)
            .filter_map(bytes_of)
            .collect()
    }

    /// Returns the ranges of the tables by which stacks are walked.
    pub fn unwind_ranges(&self) -> Vec<Range<u64>> {
        let names = [b".eh_frame".as_slice(), b".eh_frame_hdr"];
        names
            .into_iter()
            .filter_map(|name| self.sections_named(name).next())
            .filter_map(bytes_of)
            .collect()
    }

    /// Returns the ranges of the file that a process has in its memory.
    pub fn loaded_ranges(&self) -> Vec<Range<u64>> {
        self.map
            .segments()
            .iter()
            .map(|segment| range(segment.offset.0, segment.file_size))
            .collect()
    }

    /// Returns the ranges of the debug information, compressed or not.
    pub fn debug_ranges(&self) -> Vec<Range<u64>> {
        self.debug_sections(&DEBUG_INFORMATION)
    }

    /// Returns the ranges that types need, except `.debug_info` itself: abbreviations, strings and
    /// addresses.
    pub fn type_ranges(&self) -> Vec<Range<u64>> {
        self.debug_sections(&BESIDE_TYPES)
    }

    fn debug_sections(&self, names: &[&[u8]]) -> Vec<Range<u64>> {
        let is_debug = |section: &&Section| {
            let name = self
                .section_names
                .get(section.sh_name(LE) as usize..)
                .unwrap_or_default();
            let name = name
                .strip_prefix(b".debug_")
                .or_else(|| name.strip_prefix(b".zdebug_"));
            let is_whole = |part: &&[u8]| {
                name.and_then(|name| name.strip_prefix(*part))
                    .is_some_and(|rest| rest.first() == Some(&0))
            };
            names.iter().any(is_whole)
        };
        self.sections
            .iter()
            .filter(is_debug)
            .filter_map(bytes_of)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_named_once() {
        let check = |ranges: &[(u64, u64)], wanted: &[(u64, u64)]| {
            let found = merged(ranges.iter().map(|(start, end)| *start..*end), 100);
            assert_eq!(
                found,
                wanted
                    .iter()
                    .map(|(start, end)| *start..*end)
                    .collect::<Vec<_>>()
            );
        };
        check(
            &[(50, 60), (10, 20), (15, 30), (20, 25), (60, 70)],
            &[(10, 30), (50, 70)],
        );
        check(
            &[(90, 200), (0, 5), (150, 160), (7, 7)],
            &[(0, 5), (90, 100)],
        );
        check(&vec![(0, 100); 65_000], &[(0, 100)]);
    }
}
