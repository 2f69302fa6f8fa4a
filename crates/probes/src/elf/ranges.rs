//! Which parts of a file its notes need, for those who would rather not read all of a large one.

use std::ops::Range;

use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

use super::{ElfImage, Header, LE, ProgramHeader, Section, identity};
use crate::address::ElfVaddr;

/// The least that [`table_ranges`] needs: a file header.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// Where the tables of segments and sections are, from a file's first bytes; nothing if these don't tell it all, and the
/// whole file is to be read.
pub fn table_ranges(first: &[u8]) -> Option<Vec<Range<u64>>> {
    identity::check_ident(first).ok()?;
    let header = Header::parse(first).ok()?;
    let (segments, sections) = (header.e_phnum(LE), header.e_shnum(LE));
    // Larger counts stand in the first section header (gABI, "Number of sections").
    if segments == object::elf::PN_XNUM || sections == 0 && header.e_shoff(LE) != 0 {
        return None;
    }
    let table = |offset: u64, count: u16, size: usize| offset..offset.saturating_add(u64::from(count) * size as u64);
    Some(vec![
        table(header.e_phoff(LE), segments, size_of::<ProgramHeader>()),
        table(header.e_shoff(LE), sections, size_of::<Section>()),
    ])
}

/// The bytes of a file that lie in any of these ranges, in order and each once: a table of 65,000 sections can name the whole
/// file 65,000 times.
pub fn merged(ranges: impl Iterator<Item = Range<u64>>, file: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.map(|range| range.start..range.end.min(file)).collect();
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let touch = next.start <= kept.end;
        kept.end = if touch { kept.end.max(next.end) } else { kept.end };
        touch
    });
    ranges
}

impl ElfImage<'_> {
    /// Where the notes and the sections' names are. It needs no more than what [`table_ranges`] tells of.
    pub fn note_ranges(&self) -> Vec<Range<u64>> {
        let range = |offset: u64, size: u64| offset..offset.saturating_add(size);
        let header = Header::parse(self.data).ok();
        let names = header.and_then(|header| header.shstrndx(LE, self.data).ok());
        let names = names.and_then(|index| self.sections.get(index as usize));
        let notes = self.sections.iter().filter(|section| section.sh_type(LE) == object::elf::SHT_NOTE);
        let sections = names.into_iter().chain(notes).map(|it| range(it.sh_offset(LE), it.sh_size(LE)));
        let segments = self.segments.iter().filter(|segment| segment.p_type(LE) == object::elf::PT_NOTE);
        merged(sections.chain(segments.map(|it| range(it.p_offset(LE), it.p_filesz(LE)))), self.data.len() as u64)
    }

    /// Where the table of the file's unwind information is (`PT_GNU_EH_FRAME`, the section `.eh_frame_hdr`): as an address
    /// and in the file. Stripping leaves it.
    pub(crate) fn unwind_table(&self) -> Option<(ElfVaddr, Range<u64>)> {
        let kind = object::elf::PT_GNU_EH_FRAME;
        let segment = self.segments.iter().find(|segment| segment.p_type(LE) == kind)?;
        let offset = segment.p_offset(LE);
        Some((ElfVaddr(segment.p_vaddr(LE)), offset..offset.checked_add(segment.p_filesz(LE))?))
    }

    /// Where the unwind information is in the file that begins at this address: to its section's end, or without sections
    /// to its segment's.
    pub(crate) fn unwind_entries(&self, begin: ElfVaddr) -> Option<Range<u64>> {
        let offset = self.map.to_offset(begin).ok()?.0;
        let section = self.sections.iter().find(|section| section.sh_addr(LE) == begin.0 && begin.0 != 0);
        let segment = self.map.segment(begin)?;
        let in_segment = segment.file_size.checked_sub(begin.checked_above(segment.vaddr)?)?;
        let size = section.map_or(in_segment, |section| section.sh_size(LE).min(in_segment));
        Some(offset..offset.checked_add(size)?)
    }

    /// Where the first section of this type (`SHT_*`) is in the file.
    pub(crate) fn range_of_type(&self, kind: u32) -> Option<Range<u64>> {
        let section = self.section_of_type(kind)?;
        Some(section.sh_offset(LE)..section.sh_offset(LE).checked_add(section.sh_size(LE))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_named_once() {
        let check = |ranges: &[(u64, u64)], wanted: &[(u64, u64)]| {
            let found = merged(ranges.iter().map(|(start, end)| *start..*end), 100);
            assert_eq!(found, wanted.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>());
        };
        check(&[(50, 60), (10, 20), (15, 30), (20, 25), (60, 70)], &[(10, 30), (50, 70)]);
        check(&[(90, 200), (0, 5), (150, 160), (7, 7)], &[(0, 5), (90, 100)]);
        check(&vec![(0, 100); 65_000], &[(0, 100)]);
    }
}
