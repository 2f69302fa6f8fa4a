//! Source lines, from the line number programs of `.debug_line` (DWARF 5 standard, section 6.2; also versions 2 to 4). They are
//! in the program itself even if the rest of its debug information is in separate files.

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, Format, LineProgramHeader, LineRow, LittleEndian,
};

use super::sections::DwarfSections;
use super::units::Slice;

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLine<'a> {
    /// The file's name, or the end of its path.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// Column, from 1; `None` matches any.
    pub column: Option<u32>,
}

/// Size of an address in bytes: the sections are those of a 64-bit file.
const ADDRESS_BYTES: u8 = 8;

impl<'data> DwarfSections<'data> {
    /// Returns the address of the first statement of a line, in the order of the programs. The
    /// search ends at a broken program.
    pub fn line_address(&self, wanted: &SourceLine<'_>) -> Option<u64> {
        let lines = DebugLine::new(self.lines, LittleEndian);
        let mut offset = 0;
        while offset < self.lines.len() {
            let program = lines
                .program(DebugLineOffset(offset), ADDRESS_BYTES, None, None)
                .ok()?;
            let head = if program.header().format() == Format::Dwarf64 {
                12
            } else {
                4
            };
            offset = offset
                .checked_add(head)?
                .checked_add(program.header().unit_length())?;
            let mut rows = program.rows();
            while let Ok(Some((header, row))) = rows.next_row() {
                if self.is_of(header, row, wanted) {
                    return Some(row.address());
                }
            }
        }
        None
    }

    fn is_of(
        &self,
        header: &LineProgramHeader<Slice<'data>>,
        row: &LineRow,
        wanted: &SourceLine<'_>,
    ) -> bool {
        let column = match row.column() {
            gimli::ColumnType::LeftEdge => 0,
            gimli::ColumnType::Column(column) => column.get(),
        };
        row.is_stmt()
            && !row.end_sequence()
            && row
                .line()
                .is_some_and(|line| line.get() == u64::from(wanted.line))
            && wanted
                .column
                .is_none_or(|wanted| column == u64::from(wanted))
            && self
                .path(header, row)
                .is_some_and(|path| ends_in(&path, wanted.file))
    }

    /// Returns the path of a row's file: its name, behind its directory if the name is relative and
    /// there is one.
    fn path(&self, header: &LineProgramHeader<Slice<'data>>, row: &LineRow) -> Option<String> {
        let file = row.file(header)?;
        let name = self.line_text(&file.path_name())?;
        match file
            .directory(header)
            .and_then(|directory| self.line_text(&directory))
        {
            Some(directory) if !name.starts_with('/') => Some(format!("{directory}/{name}")),
            _ => Some(name),
        }
    }

    fn line_text(&self, value: &AttributeValue<Slice<'data>>) -> Option<String> {
        let at = |section: &'data [u8], offset: usize| {
            let bytes = section.get(offset..)?;
            let end = memchr::memchr(0, bytes)?;
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        };
        match value {
            AttributeValue::String(text) => Some(text.to_string_lossy().into_owned()),
            AttributeValue::DebugLineStrRef(offset) => at(self.line_strings, offset.0),
            AttributeValue::DebugStrRef(offset) => at(self.strings, offset.0),
            _ => None,
        }
    }
}

/// Returns true if a path ends in these components: `src/a.c` ends `/x/src/a.c`, but `c.c` does not
/// end `abc.c`.
fn ends_in(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|front| front.is_empty() || end.starts_with('/') || front.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_paths() {
        assert!(
            ends_in("/x/src/a.c", "a.c")
                && ends_in("/x/src/a.c", "src/a.c")
                && ends_in("a.c", "a.c")
        );
        assert!(!ends_in("/x/abc.c", "c.c") && !ends_in("a.c", "b.c"));
    }

    #[test]
    fn empty_and_broken_sections_have_no_lines() {
        let wanted = SourceLine {
            file: "a.c",
            line: 1,
            column: None,
        };
        assert_eq!(DwarfSections::default().line_address(&wanted), None);
        let broken = DwarfSections {
            lines: &[9, 0, 0, 0, 4, 0, 1],
            ..DwarfSections::default()
        };
        assert_eq!(broken.line_address(&wanted), None);
    }
}
