//! Traces of real targets and the output of existing tools for them: stored next to the repository.

use std::path::PathBuf;

use tempfile::TempDir;

/// A trace and the files made from it, as the path without extension.
#[derive(Debug, Clone)]
pub(crate) struct Sample(PathBuf);

impl Sample {
    /// Returns the samples, of all versions or of some, that have files with all of these
    /// extensions. Empty if the folder is absent, which is reported.
    pub(crate) fn with(versions: &[&str], extensions: &[&str]) -> Vec<Self> {
        let traces = testkit::real_traces();
        let is_of = |path: &PathBuf| {
            versions
                .iter()
                .any(|version| path.parent().is_some_and(|it| it.ends_with(version)))
        };
        let wanted = traces
            .iter()
            .filter(|path| versions.is_empty() || is_of(path));
        let samples = wanted.map(|path| Self(path.with_extension("")));
        let samples: Vec<_> = samples
            .filter(|sample| extensions.iter().all(|e| sample.path(e).exists()))
            .collect();
        assert!(
            traces.is_empty() || !samples.is_empty(),
            "no trace of {versions:?} with {extensions:?}"
        );
        samples
    }

    /// Returns the path of the sample's file with that extension.
    pub(crate) fn path(&self, extension: &str) -> PathBuf {
        self.0.with_extension(extension)
    }

    /// Returns the text of the sample's file with that extension.
    pub(crate) fn text(&self, extension: &str) -> String {
        let path = self.path(extension);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Unpacks a capture with its truth. `None` if the shared data is absent, which is reported.
pub(crate) fn unpacked(capture: &str) -> Option<TempDir> {
    let archive = testkit::shared_data("captures")?.join(capture);
    let dir = tempfile::tempdir().unwrap();
    let done = testkit::command("tar")
        .arg("xf")
        .arg(&archive)
        .arg("-C")
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(done.success(), "{}", archive.display());
    Some(dir)
}

/// Panics with the first line that differs: the full texts are megabytes.
#[track_caller]
pub(crate) fn assert_same(ours: &str, expected: &str, what: &Sample) {
    for (number, (line, wanted)) in (1..).zip(ours.lines().zip(expected.lines())) {
        assert_eq!(line, wanted, "{what:?}, line {number}");
    }
    assert_eq!(
        ours.lines().count(),
        expected.lines().count(),
        "{what:?}: lines"
    );
    assert!(
        ours == expected,
        "{what:?}: the texts differ in how lines end"
    );
}
