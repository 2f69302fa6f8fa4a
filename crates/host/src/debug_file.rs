//! Separate debug files: where distributions and `objcopy --add-gnu-debuglink` put the symbols of stripped files.
//!
//! The places are those of the GDB manual, "Separate Debug Files": by build-id under the global debug directory, or by
//! the name in `.gnu_debuglink` beside the file, in `.debug/` there, and under the global directory.

use std::path::{Path, PathBuf};

use probes::elf::ElfImage;

/// The global debug directory.
const GLOBAL: &str = "/usr/lib/debug";

/// The debug file of the file at `path`, as seen from `root`, if it is there and belongs to it.
pub(crate) fn find(image: &ElfImage<'_>, path: &Path, root: &Path) -> Option<(PathBuf, Vec<u8>)> {
    by_build_id(image, root).or_else(|| by_link(image, path, root))
}

fn by_build_id(image: &ElfImage<'_>, root: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let id = image.build_id()?;
    let hex = id.to_string();
    // A build-id of one byte has nothing left for the file's name.
    let (folder, name) = hex.split_at_checked(2).filter(|(_, name)| !name.is_empty())?;
    let path = under(root, &Path::new(GLOBAL).join(format!(".build-id/{folder}/{name}.debug")));
    let bytes = read(&path)?;
    let same = ElfImage::parse(&bytes).is_ok_and(|debug| debug.build_id().as_ref() == Some(&id));
    same.then_some((path, bytes))
}

fn by_link(image: &ElfImage<'_>, path: &Path, root: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let link = image.debug_link()?;
    // The links are relative to the file itself, not to a symbolic link to it.
    let inside = under(root, path).canonicalize().ok();
    let folder = match inside.as_deref().and_then(|real| real.strip_prefix(root).ok()) {
        Some(real) => Path::new("/").join(real),
        None => path.to_owned(),
    };
    let folder = folder.parent()?;
    let global = under(Path::new(GLOBAL), folder);
    [folder.to_owned(), folder.join(".debug"), global].into_iter().find_map(|folder| {
        let path = under(root, &folder.join(&link.name));
        // The link of a file may name the file itself: then the checksum differs.
        let bytes = read(&path).filter(|bytes| link.matches(bytes))?;
        Some((path, bytes))
    })
}

/// A path as it is seen from another root directory.
pub(crate) fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    std::fs::read(path).ok()
}
