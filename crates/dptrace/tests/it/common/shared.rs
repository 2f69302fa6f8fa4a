//! The traces of real targets and what existing tools print of them: next to the repository, not in it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A trace and what was made of it, by the path without its extension.
#[derive(Debug, Clone)]
pub(crate) struct Sample(PathBuf);

impl Sample {
    /// Returns the samples, of all versions or of some, that have files with all of these extensions. None if the folder is
    /// absent, which is reported.
    pub(crate) fn with(versions: &[&str], extensions: &[&str]) -> Vec<Self> {
        let Some(data) = folder() else { return Vec::new() };
        let folders = std::fs::read_dir(&data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        let folders = folders.flatten().map(|folder| folder.path());
        let folders = folders.filter(|path| versions.is_empty() || versions.iter().any(|v| path.ends_with(v)));
        let files = folders.flat_map(|path| std::fs::read_dir(path).into_iter().flatten().flatten());
        let mut stems: Vec<_> = files.map(|file| file.path()).filter(|file| has(file, "trace")).collect();
        stems.sort();
        let samples: Vec<_> = stems.into_iter().map(|stem| Self(stem.with_extension(""))).collect();
        let samples: Vec<_> =
            samples.into_iter().filter(|sample| extensions.iter().all(|e| sample.path(e).exists())).collect();
        assert!(!samples.is_empty(), "{} has no trace of {versions:?} with {extensions:?}", data.display());
        samples
    }

    /// The sample's file with that extension.
    pub(crate) fn path(&self, extension: &str) -> PathBuf {
        self.0.with_extension(extension)
    }

    /// The text of the sample's file with that extension.
    pub(crate) fn text(&self, extension: &str) -> String {
        let path = self.path(extension);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Returns the folder of all samples; `None` if it is absent, which is reported.
fn folder() -> Option<PathBuf> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("DPTRACE_SHARED_DATA").map_or(near, PathBuf::from);
    if data.is_dir() {
        return Some(data);
    }
    testkit::kernel::skip_if_permitted(
        "shared data",
        &format!("{} is not there (DPTRACE_SHARED_DATA names another place)", data.display()),
    );
    None
}

/// Unpacks a capture with its truth; `None` if the folder of all samples is absent, which is reported.
pub(crate) fn unpacked(capture: &str) -> Option<TempDir> {
    let archive = folder()?.join("captures").join(capture);
    let dir = tempfile::tempdir().unwrap();
    let done = testkit::command("tar").arg("xf").arg(&archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(done.success(), "{}", archive.display());
    Some(dir)
}

fn has(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// Panics with the first line that differs: the whole texts are megabytes.
#[track_caller]
pub(crate) fn assert_same(ours: &str, expected: &str, what: &Sample) {
    for (number, (line, wanted)) in (1..).zip(ours.lines().zip(expected.lines())) {
        assert_eq!(line, wanted, "{what:?}, line {number}");
    }
    assert_eq!(ours.lines().count(), expected.lines().count(), "{what:?}: lines");
    assert!(ours == expected, "{what:?}: the texts differ in how lines end");
}
