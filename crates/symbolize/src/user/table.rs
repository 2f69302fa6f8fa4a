//! The functions of a file.

use elf::ElfImage;
use elf::symbols::Functions;
use host::{ElfFile, FilePlace};

use super::folders::DebugFolders;

/// A file's functions.
#[derive(Default)]
pub(super) struct Table {
    /// In the order of their places.
    functions: Vec<Function>,
    /// Their names, one behind the other.
    names: String,
    /// The file that has the source lines: itself, or the one that they were moved to. The kernel's own library has none.
    pub(super) debug: Option<FilePlace>,
}

/// A function of a file.
#[derive(Clone, Copy)]
struct Function {
    /// Its first byte, as an offset in the file.
    offset: u64,
    /// Its address in the file's own terms.
    vaddr: u64,
    /// Its bytes; 0 if that is not known.
    size: u64,
    /// Where its name ends.
    name_end: usize,
    name_length: usize,
}

/// The function at a place of a file.
pub(super) struct Found<'a> {
    pub(super) name: &'a str,
    /// How many bytes behind its first the place is.
    pub(super) distance: u64,
    /// The place as an address in the file's own terms.
    pub(super) vaddr: u64,
}

impl Table {
    pub(super) fn read(place: &FilePlace, folders: &DebugFolders) -> Option<Self> {
        let file = place.load_symbols().ok()?;
        let debug = folders.debug_file(&file);
        let debug_image = debug.as_ref().and_then(|debug| debug.image().ok());
        let functions = Functions::read(&file.image().ok()?, debug_image.as_ref());
        // Where there is a debug file, the source's lines were moved to it.
        let debug = debug.as_ref().map_or(place, ElfFile::place).clone();
        Some(Self::of(&functions, Some(debug)))
    }

    /// The kernel's own library.
    pub(super) fn vdso() -> Option<Self> {
        let bytes = host::vdso()?;
        Some(Self::of(&Functions::read(&ElfImage::parse(&bytes).ok()?, None), None))
    }

    fn of(functions: &Functions<'_>, debug: Option<FilePlace>) -> Self {
        let length = functions.all().iter().map(|function| function.name.len()).sum();
        let mut names = String::with_capacity(length);
        let function = |function: &elf::symbols::Function<'_>| {
            names.push_str(&function.name);
            Function {
                offset: function.offset.0,
                vaddr: function.vaddr.0,
                size: function.size,
                name_end: names.len(),
                name_length: function.name.len(),
            }
        };
        let mut functions: Vec<Function> = functions.all().iter().map(function).collect();
        // Of several names of a place the last one is shown: that of the longest function.
        functions.sort_by_key(|function| (function.offset, function.size));
        Self { functions, names, debug }
    }

    /// How much memory it takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.functions.len() * size_of::<Function>() + self.names.len()
    }

    /// The function that holds an offset in the file.
    pub(super) fn at(&self, offset: u64) -> Option<Found<'_>> {
        let above = self.functions.partition_point(|function| function.offset <= offset);
        let function = self.functions[..above].last()?;
        let distance = offset - function.offset;
        // A symbol without a length goes to the next one.
        if function.size != 0 && distance >= function.size {
            return None;
        }
        let name = self.names.get(function.name_end - function.name_length..function.name_end)?;
        Some(Found { name, distance, vaddr: function.vaddr.checked_add(distance)? })
    }
}
