//! The project's own sources, for tests that read them.

use std::path::{Path, PathBuf};

/// Returns the Rust files below a folder, in order.
///
/// # Panics
/// If a folder cannot be read.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()))
        {
            let path = entry
                .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()))
                .path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
