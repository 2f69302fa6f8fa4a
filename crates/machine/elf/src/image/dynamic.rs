//! The dynamic section: which shared libraries a file needs, and where it says that they are (System V gABI, chapter 5;
//! ld.so(8)).

use std::ops::Range;

use object::elf::{DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, PT_DYNAMIC};
use object::read::elf::ProgramHeader as _;

use super::{ElfImage, LE};
use crate::address::ElfVaddr;

/// The most libraries and folders that are taken of a file. Large programs have a few hundred.
const MAX_ENTRIES: usize = 4096;

/// The dynamic section, which the loader reads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dynamic {
    /// The libraries' names (`DT_NEEDED`), in their order. One with a slash is a path.
    pub needed: Vec<Vec<u8>>,
    /// Folders to look into (`DT_RPATH`), for what is needed by the libraries as well; without effect beside a `runpath`.
    pub rpath: Vec<Vec<u8>>,
    /// Folders to look into (`DT_RUNPATH`), for the file's own libraries.
    pub runpath: Vec<Vec<u8>>,
}

impl ElfImage<'_> {
    /// Where in the file the dynamic section is: what [`ElfImage::dynamic_strings`] reads.
    pub fn dynamic_range(&self) -> Option<Range<u64>> {
        let segment = self.segments.iter().find(|segment| segment.p_type(LE) == PT_DYNAMIC)?;
        let (offset, size) = segment.file_range(LE);
        Some(offset..offset.checked_add(size)?)
    }

    /// Where in the file the dynamic section's strings are: what [`ElfImage::dynamic`] reads beside it.
    pub fn dynamic_strings(&self) -> Option<Range<u64>> {
        let value = |wanted: i64| self.entries().find(|(tag, _)| *tag == wanted).map(|(_, value)| value);
        let start = self.map.to_offset(ElfVaddr(value(DT_STRTAB)?)).ok()?.0;
        Some(start..start.checked_add(value(DT_STRSZ)?)?)
    }

    /// What the file needs. A file without a dynamic section, and one whose section is broken, needs nothing.
    pub fn dynamic(&self) -> Dynamic {
        let mut dynamic = Dynamic::default();
        let strings = self.dynamic_strings().and_then(|range| self.data.get(range.start as usize..range.end as usize));
        let Some(strings) = strings else { return dynamic };
        for (tag, value) in self.entries() {
            let text = || text_at(strings, value);
            match tag {
                DT_NEEDED => dynamic.needed.extend(text().map(<[u8]>::to_vec)),
                DT_RPATH => dynamic.rpath.extend(text().into_iter().flat_map(folders)),
                DT_RUNPATH => dynamic.runpath.extend(text().into_iter().flat_map(folders)),
                _ => {}
            }
        }
        for list in [&mut dynamic.needed, &mut dynamic.rpath, &mut dynamic.runpath] {
            list.truncate(MAX_ENTRIES);
        }
        dynamic
    }

    fn entries(&self) -> impl Iterator<Item = (i64, u64)> {
        let segment = self.segments.iter().find(|segment| segment.p_type(LE) == PT_DYNAMIC);
        let entries = segment.and_then(|segment| segment.dynamic(LE, self.data).ok().flatten()).unwrap_or_default();
        let entries = entries.iter().map(|entry| (entry.d_tag.get(LE), entry.d_val.get(LE)));
        entries.take_while(|(tag, _)| *tag != DT_NULL).take(MAX_ENTRIES)
    }
}

/// The string that begins here, if it ends.
fn text_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(&rest[..end])
}

/// The folders of a list with colons.
fn folders(list: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    list.split(|&byte| byte == b':').filter(|folder| !folder.is_empty()).map(<[u8]>::to_vec)
}
