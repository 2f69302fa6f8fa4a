//! The dynamic section: the shared libraries that a file needs, and the folders that it names for
//! them (System V gABI, chapter 5; ld.so(8)).

use std::ops::Range;

use object::elf::{DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, PT_DYNAMIC};
use object::read::elf::ProgramHeader as _;

use super::{ElfImage, LE};
use crate::address::ElfVaddr;

/// Limit on the libraries and folders of a file. Large programs have a few hundred.
const MAX_ENTRIES: usize = 4096;

/// The dynamic section, which the loader reads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dynamic {
    /// Names of the libraries (`DT_NEEDED`), in their order. One with a slash is a path.
    pub needed: Vec<Vec<u8>>,
    /// Folders to search (`DT_RPATH`), also for libraries of the libraries; without effect beside a
    /// `runpath`.
    pub rpath: Vec<Vec<u8>>,
    /// Folders to search (`DT_RUNPATH`), for the file's own libraries.
    pub runpath: Vec<Vec<u8>>,
}

impl ElfImage<'_> {
    /// Returns the range of the dynamic section in the file, which [`ElfImage::dynamic_strings`]
    /// reads.
    pub fn dynamic_range(&self) -> Option<Range<u64>> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.p_type(LE) == PT_DYNAMIC)?;
        let (offset, size) = segment.file_range(LE);
        Some(offset..offset.checked_add(size)?)
    }

    /// Returns the range of the dynamic section's strings in the file, which [`ElfImage::dynamic`]
    /// reads as well.
    pub fn dynamic_strings(&self) -> Option<Range<u64>> {
        let value = |wanted: i64| {
            self.entries()
                .find(|(tag, _)| *tag == wanted)
                .map(|(_, value)| value)
        };
        let start = self.map.to_offset(ElfVaddr(value(DT_STRTAB)?)).ok()?.0;
        Some(start..start.checked_add(value(DT_STRSZ)?)?)
    }

    /// Returns the dynamic section. It is empty if the file has none, or a broken one.
    pub fn dynamic(&self) -> Dynamic {
        let mut dynamic = Dynamic::default();
        let strings = self
            .dynamic_strings()
            .and_then(|range| self.data.get(range.start as usize..range.end as usize));
        let Some(strings) = strings else {
            return dynamic;
        };
        for (tag, value) in self.entries() {
            let text = || text_at(strings, value);
            match tag {
                DT_NEEDED => dynamic.needed.extend(text().map(<[u8]>::to_vec)),
                DT_RPATH => dynamic.rpath.extend(text().into_iter().flat_map(folders)),
                DT_RUNPATH => dynamic.runpath.extend(text().into_iter().flat_map(folders)),
                _ => {}
            }
        }
        for list in [
            &mut dynamic.needed,
            &mut dynamic.rpath,
            &mut dynamic.runpath,
        ] {
            list.truncate(MAX_ENTRIES);
        }
        dynamic
    }

    fn entries(&self) -> impl Iterator<Item = (i64, u64)> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.p_type(LE) == PT_DYNAMIC);
        let entries = segment
            .and_then(|segment| segment.dynamic(LE, self.data).ok().flatten())
            .unwrap_or_default();
        let entries = entries
            .iter()
            .map(|entry| (entry.d_tag.get(LE), entry.d_val.get(LE)));
        entries
            .take_while(|(tag, _)| *tag != DT_NULL)
            .take(MAX_ENTRIES)
    }
}

/// Returns the string that begins here, if it ends.
fn text_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(&rest[..end])
}

/// Returns the folders of a list with colons.
fn folders(list: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    list.split(|&byte| byte == b':')
        .filter(|folder| !folder.is_empty())
        .map(<[u8]>::to_vec)
}
