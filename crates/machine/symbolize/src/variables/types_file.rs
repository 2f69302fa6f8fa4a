//! Debug information of a file, for types: its own, or that of its separate debug file.

use std::borrow::Cow;
use std::path::Path;

use host::{ElfFile, FilePlace, FileReader, HostError};
use typeinfo::{Dwarf, DwarfSections, LazyInfo, ReadSection, SourceId, TypeError, TypeStore};

use crate::user::DebugFolders;

/// A file with debug information. Of a large one, only the needed units are read and kept.
pub struct TypesFile {
    file: ElfFile,
    form: Form,
}

/// Form of the debug information.
enum Form {
    /// Read unit by unit, on demand.
    Parts(LazyInfo<'static>),
    /// Read as a whole.
    Whole,
    /// Read as a whole, with its compressed sections inflated.
    Inflated(Vec<u8>),
}

/// A section of an open file.
struct Section {
    file: FileReader,
    start: u64,
}

impl ReadSection for Section {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        self.start
            .checked_add(offset)
            .is_some_and(|at| self.file.read_exact_at(into, at).is_ok())
    }
}

impl std::fmt::Debug for TypesFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypesFile")
            .field("path", &self.file.path())
            .finish_non_exhaustive()
    }
}

impl TypesFile {
    /// Finds the debug information of a file.
    ///
    /// # Errors
    /// Returns the reason, in words, if it has none that can be read.
    pub fn read(place: &FilePlace, folders: &DebugFolders) -> Result<Self, String> {
        let text = |error: HostError| error.to_string();
        let own = place.load_types().map_err(text)?;
        let file = folders.debug_types(&own).unwrap_or(own);
        if let Some(info) = Self::parts(&file) {
            return Ok(Self {
                file,
                form: Form::Parts(info),
            });
        }
        let whole = file.place().load_debug().map_err(text)?;
        let inflated = typeinfo::inflated(whole.image().map_err(text)?.data());
        let form = match inflated.map_err(|error| error.to_string())? {
            Cow::Borrowed(_) => Form::Whole,
            Cow::Owned(plain) => Form::Inflated(plain),
        };
        let debug = Self { file: whole, form };
        debug.sections().map_err(|error| error.to_string())?;
        Ok(debug)
    }

    /// Returns the path of the file with the debug information.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds its types to others.
    pub fn add_to<'f>(&'f self, types: &mut TypeStore<'f>) -> Result<SourceId, TypeError> {
        Dwarf::new(self.sections()?).and_then(|dwarf| types.add_dwarf(dwarf))
    }

    /// Returns its section `.debug_info`, to be read unit by unit, if that can be done.
    fn parts(file: &ElfFile) -> Option<LazyInfo<'static>> {
        let range = DwarfSections::info_range(file.image().ok()?.data())?;
        let section = Section {
            file: file.place().reader().ok()?,
            start: range.start,
        };
        LazyInfo::new(Box::new(section), range.end - range.start).ok()
    }

    fn sections(&self) -> Result<DwarfSections<'_>, TypeError> {
        let own = || self.file.image().map_or(&[][..], |image| image.data());
        match &self.form {
            Form::Parts(info) => DwarfSections::lazy(own(), info),
            Form::Whole => DwarfSections::from_elf(own()),
            Form::Inflated(plain) => DwarfSections::from_elf(plain),
        }
    }
}
