//! Debug files that are not where they belong.

use std::path::PathBuf;

use host::{ElfFile, FilePlace, HostError};

/// The folders of `--debuginfo`, where debug files are looked for that are not where they belong.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugFolders(pub(crate) Vec<PathBuf>);

impl DebugFolders {
    /// The file that a file's symbols were moved to: where it belongs, or else `NAME.debug` in one of the folders.
    /// A folder that is not absolute may be meant from the file's own, as in other tools. A debug file of another build is
    /// none, where both say which they are of.
    pub(crate) fn debug_file(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_file().or_else(|| self.find(file, FilePlace::load_symbols))
    }

    /// The same file with its debug information.
    pub(crate) fn debug_information(&self, file: &ElfFile) -> Option<ElfFile> {
        file.debug_information().or_else(|| self.find(file, FilePlace::load_debug))
    }

    fn find(&self, file: &ElfFile, load: impl Fn(&FilePlace) -> Result<ElfFile, HostError>) -> Option<ElfFile> {
        let mut name = file.path().file_name()?.to_owned();
        name.push(".debug");
        let id = |file: &ElfFile| Some(file.image().ok()?.build_id()?.to_string());
        let wanted = id(file);
        let is_it = |debug: &ElfFile| wanted.is_none() || id(debug).is_none_or(|id| Some(id) == wanted);
        self.0.iter().map(|folder| folder.join(&name)).find_map(|path| {
            let found = |place: FilePlace| load(&place).ok().filter(is_it);
            found(FilePlace::at(&path)).or_else(|| found(file.place().beside(&path)))
        })
    }
}
