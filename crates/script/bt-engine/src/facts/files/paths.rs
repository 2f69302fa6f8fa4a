//! Files that a script names: by a pattern, a path, or the name of a library or program.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bt_compiler::NotFound;
use host::FilePlace;
use host::library_cache::{self, is_called};
use text::patterns::did_you_mean;

use super::MAX_FILES;
use crate::facts::pattern;
use crate::facts::targets::{TargetFile, Targets};
use crate::observe::printable;

/// Returns the files of a process that fit; with `maps_more`, all files that fit, since it may come
/// to map them.
pub(super) fn by_pattern(
    text: &str,
    own: &[TargetFile],
    maps_more: bool,
) -> Result<Targets, NotFound> {
    let fits = pattern(text)?;
    // If /lib is a link to /usr/lib, a process has the latter mapped.
    let is_merged = Path::new("/lib").is_symlink();
    let without_usr = |found: &&TargetFile| {
        found
            .shown
            .strip_prefix("/usr")
            .is_some_and(|rest| fits.matches(rest))
    };
    let inside = |found: &&TargetFile| {
        found
            .place
            .path_inside()
            .is_some_and(|path| fits.matches(&path.to_string_lossy()))
    };
    let fits_one = |found: &&TargetFile| {
        fits.matches(&found.shown) || is_merged && without_usr(found) || inside(found)
    };
    let fitting = own.iter().filter(fits_one);
    let mut files: Vec<TargetFile> = fitting.cloned().collect();
    if maps_more {
        let paths = glob::glob(text).into_iter().flatten().flatten();
        // The crate `glob` leaves it out.
        let prefix = if text.starts_with("./") { "./" } else { "" };
        // One file may have several names: links to a library, and the program as in its command. A
        // probe in each would count a hit several times.
        let identity = |path: &Path| {
            path.metadata()
                .ok()
                .filter(Metadata::is_file)
                .map(|file| (file.dev(), file.ino()))
        };
        let own = own
            .iter()
            .filter_map(|found| Some((identity(found.place.path())?, found)));
        let own: HashMap<_, &TargetFile> = own.collect();
        let mut seen: HashSet<_> = files
            .iter()
            .filter_map(|found| identity(found.place.path()))
            .collect();
        let new = paths
            .filter_map(|path| Some((identity(&path)?, path)))
            .filter(|(file, _)| seen.insert(*file));
        files.extend(new.take(MAX_FILES).map(|(file, path)| {
            let found = || TargetFile {
                shown: format!("{prefix}{}", printable(&path)),
                place: FilePlace::at(&path),
            };
            own.get(&file).copied().cloned().unwrap_or_else(found)
        }));
    }
    let message = || format!("no file fits {text}");
    if files.is_empty() {
        Err(NotFound {
            message: message(),
            absent: false,
            hints: Vec::new(),
        })
    } else {
        Ok(files.into())
    }
}

/// Finds a path, a library of the process or of the machine, or a program of PATH.
pub(super) fn by_name(text: &str, own: &[TargetFile]) -> Result<Vec<TargetFile>, NotFound> {
    let found = |path: &Path| TargetFile {
        shown: printable(path),
        place: FilePlace::at(path),
    };
    if text.contains('/') {
        let path = Path::new(text);
        let same = |own: &&TargetFile| {
            own.place.path() == path || own.place.path_inside().is_some_and(|inside| inside == path)
        };
        return match own.iter().find(same) {
            Some(own) => Ok(vec![own.clone()]),
            None if path.exists() => Ok(vec![TargetFile {
                shown: text.to_owned(),
                ..found(path)
            }]),
            None => Err(NotFound {
                message: format!("there is no file {text}"),
                absent: false,
                hints: Vec::new(),
            }),
        };
    }
    let name = |found: &TargetFile| {
        found
            .place
            .path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let of_process: Vec<TargetFile> = own
        .iter()
        .filter(|own| name(own).is_some_and(|name| is_called(&name, text)))
        .cloned()
        .collect();
    if !of_process.is_empty() {
        return Ok(of_process);
    }
    if let Some(program) = host::find_program(text.as_ref()) {
        return Ok(vec![found(&program)]);
    }
    let local = || Path::new(text).exists().then(|| PathBuf::from(text));
    library_cache::installed(text)
        .or_else(local)
        .map(|path| vec![found(&path)])
        .ok_or_else(|| {
            let mapped: Vec<String> = own.iter().filter_map(name).collect();
            let near = library_cache::nearest(text, &mapped);
            let hint = did_you_mean(&near);
            NotFound {
                message: format!("there is no program in PATH and no library called {text}"),
                absent: false,
                hints: vec![hint.unwrap_or_else(|| "a path has a / in it: ./NAME".to_owned())],
            }
        })
}
