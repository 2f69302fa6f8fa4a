//! Debug information of files: their own, or that of the file that it was moved to.

use std::borrow::Cow;
use std::path::Path;

use host::{ElfFile, FilePlace};
use typeinfo::{Arch, Dwarf, DwarfSections, NameKind, TypeStore};

use super::UserFiles;
use crate::observe::{Notice, SharedObserver, printable};

/// A file that has debug information.
pub(super) struct DebugFile {
    file: ElfFile,
    /// Contents with the compressed sections inflated, if there are any.
    plain: Option<Vec<u8>>,
}

impl DebugFile {
    /// Inflates the sections. If one can't be inflated, that is reported, and the file has no
    /// usable debug information.
    fn new(file: ElfFile, observer: &SharedObserver) -> Option<Self> {
        let plain = match typeinfo::inflated(file.image().ok()?.data()) {
            Ok(Cow::Borrowed(_)) => None,
            Ok(Cow::Owned(plain)) => Some(plain),
            Err(source) => {
                observer.notice(&Notice::NoDebugInformation {
                    file: printable(file.path()),
                    source,
                });
                None
            }
        };
        Some(Self { file, plain })
    }

    fn bytes(&self) -> Option<&[u8]> {
        let own = || self.file.image().ok().map(|image| image.data());
        self.plain.as_deref().or_else(own)
    }
}

impl UserFiles {
    /// Returns the file that has a file's debug information: itself, or the one that it was moved
    /// to.
    pub(in crate::facts) fn debug(&self, path: &str) -> Option<&[u8]> {
        let open = |path: &str| {
            self.debug_file(path)
                .and_then(|file| DebugFile::new(file, &self.observer))
        };
        for slot in &self.debug {
            let (known, file) = slot.get_or_init(|| (path.to_owned(), open(path)));
            if known == path {
                return file.as_ref().and_then(DebugFile::bytes);
            }
        }
        None
    }

    /// Returns the names and values of an enumeration, if the program's debug information has it.
    pub(crate) fn enumeration(&self, name: &str) -> Option<Vec<(String, i64)>> {
        let program = self.subject_files().into_iter().next()?;
        let bytes = self.debug(program.place.path().to_str()?)?;
        let mut types = TypeStore::new(Arch::HOST);
        types
            .add_dwarf(Dwarf::new(DwarfSections::from_elf(bytes).ok()?).ok()?)
            .ok()?;
        let found = types.find(NameKind::Enum, name).ok()??;
        let names = types.enumerators(found).ok()?;
        Some(
            names
                .into_iter()
                .map(|it| (it.name.to_owned(), it.value))
                .collect(),
        )
    }

    fn debug_file(&self, path: &str) -> Option<ElfFile> {
        let own = self
            .subject_files()
            .into_iter()
            .find(|own| own.place.path() == Path::new(path));
        let file = own
            .map_or_else(|| FilePlace::at(Path::new(path)), |own| own.place)
            .load_debug()
            .ok()?;
        Some(self.debug_folders.debug_information(&file).unwrap_or(file))
    }
}
