//! The functions of a file.

use std::ops::Range;

use elf::ElfImage;
use elf::symbols::Functions;
use host::{ElfFile, FilePlace};

use super::folders::DebugFolders;

/// Functions of a file.
#[derive(Default)]
pub(super) struct Table {
    /// Functions in order of offset.
    functions: Vec<Function>,
    /// Names of the functions, one behind the other.
    names: String,
    /// File with the source lines: itself, or the one that they were moved to. The kernel's own
    /// library has none.
    pub(super) debug: Option<FilePlace>,
    /// True if it has no names of its own functions, and no debug file has them.
    pub(super) is_stripped: bool,
}

/// A function of a file.
#[derive(Clone, Copy)]
struct Function {
    /// Offset of its first byte in the file.
    offset: u64,
    /// Address in the file's own terms.
    vaddr: u64,
    /// Length in bytes; at least 1.
    size: u64,
    /// End of its name in the names.
    name_end: usize,
    name_length: usize,
}

/// The function at a place of a file.
pub(super) struct FunctionMatch<'a> {
    pub(super) name: &'a str,
    /// Offset of the place from the function's first byte.
    pub(super) distance: u64,
    /// Address of the place in the file's own terms.
    pub(super) vaddr: u64,
}

impl Table {
    pub(super) fn read(place: &FilePlace, folders: &DebugFolders) -> Option<Self> {
        let file = place.load_symbols().ok()?;
        let debug = folders.debug_file(&file);
        let debug_image = debug.as_ref().and_then(|debug| debug.image().ok());
        let image = file.image().ok()?;
        let functions = Functions::read(&image, debug_image.as_ref());
        // If there is a debug file, the source lines were moved to it.
        let debug = debug.as_ref().map_or(place, ElfFile::place).clone();
        Some(Self::new(&functions, &image.code_sections(), Some(debug)))
    }

    /// Reads the kernel's own library.
    pub(super) fn vdso() -> Option<Self> {
        let bytes = host::vdso()?;
        let image = ElfImage::parse(&bytes).ok()?;
        Some(Self::new(
            &Functions::read(&image, None),
            &image.code_sections(),
            None,
        ))
    }

    fn new(functions: &Functions<'_>, sections: &[Range<u64>], debug: Option<FilePlace>) -> Self {
        let is_stripped = functions.is_stripped();
        // A symbol without a size ends with its section at the latest: `_fini` is often the last function of all. In a file
        // that was stripped, nameless functions may follow it at once.
        let size = |function: &elf::symbols::Function<'_>| match function.size {
            0 if is_stripped => 1,
            0 => size_of_unsized(function.vaddr.0, sections),
            size => size,
        };
        let length = functions
            .all()
            .iter()
            .map(|function| function.name.len())
            .sum();
        let mut names = String::with_capacity(length);
        let function = |function: &elf::symbols::Function<'_>| {
            names.push_str(&function.name);
            Function {
                offset: function.offset.0,
                vaddr: function.vaddr.0,
                size: size(function),
                name_end: names.len(),
                name_length: function.name.len(),
            }
        };
        let mut functions: Vec<Function> = functions.all().iter().map(function).collect();
        // Of several names of a place the last one is shown: that of the longest function.
        functions.sort_by_key(|function| (function.offset, function.size));
        Self {
            functions,
            names,
            debug,
            is_stripped,
        }
    }

    /// Returns the memory that it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.functions.len() * size_of::<Function>() + self.names.len()
    }

    /// Returns the function that holds an offset in the file.
    pub(super) fn at(&self, offset: u64) -> Option<FunctionMatch<'_>> {
        let above = self
            .functions
            .partition_point(|function| function.offset <= offset);
        let function = self.functions[..above].last()?;
        let distance = offset - function.offset;
        if distance >= function.size {
            return None;
        }
        let name = self
            .names
            .get(function.name_end - function.name_length..function.name_end)?;
        Some(FunctionMatch {
            name,
            distance,
            vaddr: function.vaddr.checked_add(distance)?,
        })
    }
}

/// Returns the greatest length of a function whose symbol has no size: up to its section's end. The
/// next function ends it earlier. `sections` are in order.
fn size_of_unsized(vaddr: u64, sections: &[Range<u64>]) -> u64 {
    let above = sections.partition_point(|section| section.start <= vaddr);
    let section = sections[..above]
        .last()
        .filter(|section| section.contains(&vaddr));
    section.map_or(1, |section| section.end - vaddr)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: &[(&str, u64, u64)]) -> Table {
        let mut table = Table::default();
        for &(name, offset, size) in functions {
            table.names.push_str(name);
            let (name_end, name_length) = (table.names.len(), name.len());
            table.functions.push(Function {
                offset,
                vaddr: offset,
                size,
                name_end,
                name_length,
            });
        }
        table
    }

    #[test]
    fn an_address_is_named_inside_its_symbol_only() {
        let table = table(&[("first", 0x100, 0x10), ("second", 0x120, 8)]);
        let name = |offset| {
            table
                .at(offset)
                .map(|found| (found.name.to_owned(), found.distance))
        };
        assert_eq!(name(0xff), None);
        assert_eq!(name(0x10f), Some(("first".to_owned(), 15)));
        assert_eq!(name(0x110), None);
        assert_eq!(name(0x120), Some(("second".to_owned(), 0)));
        assert_eq!(name(0x128), None);
    }

    #[test]
    fn a_symbol_without_a_size_ends_with_its_section() {
        let sections = [0x100..0x110, 0x200..0x209];
        assert_eq!(size_of_unsized(0x104, &sections), 12);
        assert_eq!(size_of_unsized(0x200, &sections), 9);
        assert_eq!(size_of_unsized(0x209, &sections), 1);
        assert_eq!(size_of_unsized(0x10, &sections), 1);
    }
}
