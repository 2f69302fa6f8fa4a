//! Separate debug files: where distributions and `objcopy --add-gnu-debuglink` put the symbols of stripped files.
//!
//! They are searched for as in the GDB manual ("Separate Debug Files"): by build-id under the
//! global debug directory, or by the name in `.gnu_debuglink` beside the file, in `.debug/` there,
//! and under the global directory. A name from a file is resolved only in the root directory of the
//! process that uses the file; on the host, a container's file is searched for by build-id only.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use elf::{BuildId, ElfImage};

use crate::file::{ElfFile, FilePlace, under};
use crate::foreign::{self, OpenedFile};
use crate::parts::Parts;

/// The global debug directory.
const GLOBAL: &str = "/usr/lib/debug";

/// Finds the debug file of a file, if it exists and belongs to it.
pub(crate) fn find(file: &ElfFile, parts: Parts) -> Option<ElfFile> {
    let image = file.image().ok()?;
    let root = file.place().root();
    let ours = Path::new("/");
    by_build_id(&image, file, root, parts)
        .or_else(|| by_link(&image, file, parts))
        .or_else(|| {
            if root == ours {
                None
            } else {
                by_build_id(&image, file, ours, parts)
            }
        })
}

fn by_build_id(image: &ElfImage<'_>, file: &ElfFile, root: &Path, parts: Parts) -> Option<ElfFile> {
    let id = image.build_id()?;
    let debug = load(file.place(), root, &path_of(&id)?, parts, |_| true)?;
    has_build_id(&debug, &id).then_some(debug)
}

/// Returns the path of the debug file of a build.
fn path_of(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    // A build-id of one byte has nothing left for the file's name.
    let (folder, name) = hex
        .split_at_checked(2)
        .filter(|(_, name)| !name.is_empty())?;
    Some(Path::new(GLOBAL).join(format!(".build-id/{folder}/{name}.debug")))
}

fn has_build_id(file: &ElfFile, id: &BuildId) -> bool {
    file.image()
        .is_ok_and(|image| image.build_id().as_ref() == Some(id))
}

fn by_link(image: &ElfImage<'_>, file: &ElfFile, parts: Parts) -> Option<ElfFile> {
    let link = image.debug_link()?;
    let (root, path) = (file.place().root(), std::path::absolute(file.path()).ok()?);
    // The user may have named the file through a process's root.
    let path = path
        .strip_prefix(root)
        .map_or_else(|_| path.clone(), |inner| Path::new("/").join(inner));
    // The links are relative to the file itself, not to a symbolic link to it.
    let path = foreign::below(root, &path).map_or(path, |file| file.real);
    let folder = path.parent()?;
    let global = under(Path::new(GLOBAL), folder);
    // The link of a file may name the file itself: then the checksum differs.
    let matches = |file: &OpenedFile| file.checksum().is_ok_and(|crc| crc == link.crc);
    [folder.to_owned(), folder.join(".debug"), global]
        .into_iter()
        .find_map(|folder| load(file.place(), root, &folder.join(&link.name), parts, matches))
}

/// Finds the file that shares debug information with this one and others, if it exists and is of
/// that build.
pub(crate) fn supplement(file: &ElfFile) -> Option<ElfFile> {
    let link = file.image().ok()?.supplement_link()?;
    let root = file.place().root();
    let folder = file
        .opened()
        .strip_prefix(root)
        .ok()
        .and_then(Path::parent)?;
    let path = Path::new("/")
        .join(folder)
        .join(OsStr::from_bytes(&link.path));
    load(file.place(), root, &path, Parts::Debug, |_| true)
        .filter(|found| has_build_id(found, &link.build_id))
}

/// Loads a file below a root directory, if `matches` accepts it.
fn load(
    of: &FilePlace,
    root: &Path,
    path: &Path,
    parts: Parts,
    matches: impl Fn(&OpenedFile) -> bool,
) -> Option<ElfFile> {
    let file = foreign::below(root, path).ok().filter(matches)?;
    let place = of.related(root, path);
    let opened = under(root, &file.real);
    ElfFile::read(place, opened, &file, parts).ok()
}
