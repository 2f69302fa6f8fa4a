//! The shared libraries that a program will load when it is started, found as ld.so(8) finds them.
//!
//! The sources of `/etc/ld.so.cache` are read in its place (ldconfig(8)). Libraries that a program
//! opens later (dlopen(3)), and libraries for special processors (`glibc-hwcaps`), are not found.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::file::{ElfFile, FilePlace};
use crate::foreign;

/// Folders that are searched last: glibc's, of distributions with and without folders for each
/// machine.
const DEFAULT_FOLDERS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// Limit on the size of a configuration file, in bytes: more than any has.
const MAX_CONFIGURATION: u64 = 1 << 20;
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Limit on nested includes. Real files do it once.
const MAX_INCLUDES: u32 = 8;
/// Limit on libraries: more than any program has.
const MAX_LIBRARIES: usize = 4096;

/// A file whose libraries are still to be found.
struct PendingFile {
    place: FilePlace,
    /// The `DT_RPATH` folders of the files that need it.
    inherited: Vec<PathBuf>,
}

/// Returns the libraries that this program needs, directly or indirectly. `library_path` is the
/// value of `LD_LIBRARY_PATH`. Libraries that cannot be found or read are left out: starting the
/// program will give the error.
pub fn needed_by(program: &Path, library_path: Option<&OsStr>) -> Vec<FilePlace> {
    let ours: Vec<PathBuf> = library_path
        .map(|list| split(list).collect())
        .unwrap_or_default();
    let mut system = configured(Path::new(CONFIGURATION), MAX_INCLUDES);
    system.extend(DEFAULT_FOLDERS.map(PathBuf::from));
    let mut known = HashSet::new();
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([PendingFile {
        place: FilePlace::at(program),
        inherited: Vec::new(),
    }]);
    while let Some(PendingFile { place, inherited }) = waiting.pop_front() {
        let Ok(file) = place.load_dynamic() else {
            continue;
        };
        let Ok(image) = file.image() else { continue };
        let dynamic = image.dynamic();
        let folders = |list: &[Vec<u8>]| {
            list.iter()
                .map(|folder| expanded(folder, place.path()))
                .collect::<Vec<_>>()
        };
        let runpath = folders(&dynamic.runpath);
        let mut rpath = if runpath.is_empty() {
            folders(&dynamic.rpath)
        } else {
            Vec::new()
        };
        rpath.extend(inherited);
        // A runpath voids the file's inherited folders, too, but not those of the libraries that it
        // needs.
        let before: &[PathBuf] = if runpath.is_empty() { &rpath } else { &[] };
        for name in &dynamic.needed {
            if found.len() >= MAX_LIBRARIES || known.contains(name) {
                continue;
            }
            let candidates: Vec<PathBuf> = if name.contains(&b'/') {
                vec![expanded(name, place.path())]
            } else {
                let folders = before.iter().chain(&ours).chain(&runpath).chain(&system);
                folders
                    .map(|folder| folder.join(OsStr::from_bytes(name)))
                    .collect()
            };
            let library = candidates
                .into_iter()
                .map(|path| FilePlace::at(&path))
                .find(|place| fits(place, &file));
            if let Some(library) = library {
                known.insert(name.clone());
                waiting.push_back(PendingFile {
                    place: library.clone(),
                    inherited: rpath.clone(),
                });
                found.push(library);
            }
        }
    }
    found
}

/// Returns true if it is a file for the same machine: the loader goes on searching if it is not.
fn fits(place: &FilePlace, user: &ElfFile) -> bool {
    let arch = |file: &ElfFile| file.image().ok().map(|image| image.arch());
    place
        .load_dynamic()
        .is_ok_and(|file| arch(&file) == arch(user))
}

/// Expands `$ORIGIN` in a folder, for the file that names it.
fn expanded(folder: &[u8], file: &Path) -> PathBuf {
    let origin = std::fs::canonicalize(file).ok();
    let origin = origin
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"))
        .as_os_str()
        .as_bytes();
    let mut text = Vec::new();
    let mut rest = folder;
    while let Some(&first) = rest.first() {
        let after = [b"${ORIGIN}".as_slice(), b"$ORIGIN"]
            .iter()
            .find_map(|word| rest.strip_prefix(*word));
        if let Some(after) = after {
            text.extend(origin);
            rest = after;
        } else {
            text.push(first);
            rest = &rest[1..];
        }
    }
    OsString::from_vec(text).into()
}

/// Splits `LD_LIBRARY_PATH` into folders; an empty one is the working directory.
fn split(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    let folders = list
        .as_bytes()
        .split(|byte| b":;".contains(byte))
        .filter(|_| !list.is_empty());
    folders.map(|folder| {
        if folder.is_empty() {
            ".".into()
        } else {
            OsStr::from_bytes(folder).into()
        }
    })
}

/// Returns the folders of a file in the form of `ld.so.conf`, and of the files that it includes.
fn configured(path: &Path, deeper: u32) -> Vec<PathBuf> {
    let text = foreign::named(path)
        .and_then(|file| file.text(MAX_CONFIGURATION))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut folders = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("include") if deeper > 0 => {
                let base = path.parent().unwrap_or(Path::new("/"));
                let patterns =
                    words.filter_map(|pattern| base.join(pattern).to_str().map(str::to_owned));
                let files = patterns
                    .filter_map(|pattern| glob::glob(&pattern).ok())
                    .flatten()
                    .filter_map(Result::ok);
                folders.extend(files.flat_map(|file| configured(&file, deeper - 1)));
            }
            None | Some("include" | "hwcap") => {}
            Some(_) => folders.extend(
                line.split([':', ',', ' ', '\t'])
                    .filter(|it| !it.is_empty())
                    .map(PathBuf::from),
            ),
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_the_folder_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::fs::canonicalize(dir.path()).unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "").unwrap();
        assert_eq!(expanded(b"$ORIGIN/../lib", &file), own.join("../lib"));
        assert_eq!(expanded(b"${ORIGIN}", &file), own);
        assert_eq!(expanded(b"/opt/$LIB", &file), Path::new("/opt/$LIB"));
    }

    #[test]
    fn configurations_include_others() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("ld.so.conf");
        std::fs::write(
            &main,
            "# ours\ninclude d/*.conf\n/opt/b # the last\nhwcap 1 x\ninclude ld.so.conf\n",
        )
        .unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/1.conf"), "/opt/a\n\n").unwrap();
        let once = ["/opt/a", "/opt/b"].map(PathBuf::from);
        assert_eq!(configured(&main, 0), ["/opt/b"].map(PathBuf::from));
        assert_eq!(configured(&main, 1)[..2], once);
        assert_eq!(
            configured(&dir.path().join("none"), 1),
            Vec::<PathBuf>::new()
        );
    }

    #[test]
    fn an_empty_word_is_the_working_directory() {
        let words = |list: &str| split(OsStr::new(list)).collect::<Vec<_>>();
        assert_eq!(words("/a::/b"), ["/a", ".", "/b"].map(PathBuf::from));
        assert_eq!(words(""), Vec::<PathBuf>::new());
    }
}
