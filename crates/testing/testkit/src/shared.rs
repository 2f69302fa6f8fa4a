//! The traces of real targets, with the output of existing tools: stored beside the repository, not
//! in it.

use std::path::{Path, PathBuf};

use crate::kernel::skip_if_permitted;

/// Returns the folder with this name in the shared data, or the whole of it for an empty name;
/// `None` if it is absent, which is reported.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let data = std::env::var_os("DPTRACE_SHARED_DATA")
        .map_or(near, PathBuf::from)
        .join(name);
    if data.is_dir() {
        return Some(data);
    }
    let reason = format!(
        "{} is not there (DPTRACE_SHARED_DATA names another place)",
        data.display()
    );
    skip_if_permitted("shared data", &reason);
    None
}

/// Returns the files of all real traces, in the order of their names. Empty if the shared data is
/// absent, which is reported.
///
/// # Panics
/// If the folder can't be read, or has no trace.
pub fn real_traces() -> Vec<PathBuf> {
    let Some(data) = shared_data("") else {
        return Vec::new();
    };
    let folders =
        std::fs::read_dir(&data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
    let files = folders.flatten().flat_map(|folder| {
        std::fs::read_dir(folder.path())
            .into_iter()
            .flatten()
            .flatten()
    });
    let files = files.map(|file| file.path());
    let mut traces: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|it| it == "trace"))
        .collect();
    assert!(!traces.is_empty(), "{} has no trace", data.display());
    traces.sort();
    traces
}
