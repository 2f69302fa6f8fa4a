//! Separate debug files, also in directories that the user names.

use std::path::PathBuf;

use host::{ElfFile, FilePlace, HostError};

/// Directories in which debug files are searched for that are not at their usual place.
#[derive(Clone, Debug, Default)]
pub struct DebugFolders(pub Vec<PathBuf>);

impl DebugFolders {
    /// Finds the debug file that holds a file's symbols: at its usual place, or else `NAME.debug`
    /// in one of the directories. A relative directory may be meant from the file's own, as in
    /// other tools. If both files have a build ID, they must be the same.
    pub fn debug_file(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_file()
            .or_else(|| self.find(file, FilePlace::load_symbols))
    }

    /// Finds the same file with its debug information.
    pub fn debug_information(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_information()
            .or_else(|| self.find(file, FilePlace::load_debug))
    }

    /// Finds the same file with the parts that types need, except `.debug_info` itself.
    pub(crate) fn debug_types(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_types()
            .or_else(|| self.find(file, FilePlace::load_types))
    }

    fn find(
        &self,
        file: &ElfFile,
        load: impl Fn(&FilePlace) -> Result<ElfFile, HostError>,
    ) -> Option<ElfFile> {
        let mut name = file.path().file_name()?.to_owned();
        name.push(".debug");
        let id = |file: &ElfFile| Some(file.image().ok()?.build_id()?.to_string());
        let wanted = id(file);
        let matches =
            |debug: &ElfFile| wanted.is_none() || id(debug).is_none_or(|id| Some(id) == wanted);
        self.0
            .iter()
            .map(|folder| folder.join(&name))
            .find_map(|path| {
                let found = |place: FilePlace| load(&place).ok().filter(matches);
                found(FilePlace::at(&path)).or_else(|| found(file.place().beside(&path)))
            })
    }
}
