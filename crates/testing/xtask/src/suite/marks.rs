//! Tests of the deep check: their sources have `#[ignore = "deep PART: REASON"]`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::changes::git;

/// Start of the attribute, up to the name of the part.
const MARK: &str = "#[ignore = \"deep ";

/// Test that only the deep check runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeepTest {
    /// Name of the package's folder.
    pub(crate) package: String,
    /// Name of the function.
    pub(crate) function: String,
    /// Name of the part that runs it.
    pub(crate) part: String,
    /// Reason that the gate does not run it.
    pub(crate) reason: String,
}

/// Returns all tests of the deep check, package by package.
///
/// # Errors
/// If a source cannot be read, a mark has no part or no reason, or two marked tests of a package
/// have the same name, so that the name is ambiguous.
pub(crate) fn deep_tests(root: &Path) -> anyhow::Result<Vec<DeepTest>> {
    let mut all: Vec<DeepTest> = Vec::new();
    for (package, path) in sources(root)? {
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let found = marked_in(&package, &text).with_context(|| format!("in {}", path.display()))?;
        for test in found {
            let twin = all
                .iter()
                .find(|other| (&other.package, &other.function) == (&test.package, &test.function));
            ensure!(
                twin.is_none(),
                "{package} has two marked tests named {}: rename one",
                test.function
            );
            all.push(test);
        }
    }
    Ok(all)
}

/// Returns the Rust sources of all crates with the names of their packages.
fn sources(root: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let listed = git(
        root,
        &[
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "crates/*.rs",
        ],
    )?;
    let package = |line: &str| Some((line.split('/').nth(2)?.to_owned(), root.join(line)));
    // Removed files that are still listed have no tests.
    Ok(listed
        .lines()
        .filter_map(package)
        .filter(|(_, path)| path.exists())
        .collect())
}

/// Returns the marked tests of one source.
fn marked_in(package: &str, text: &str) -> anyhow::Result<Vec<DeepTest>> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix(MARK) else {
            continue;
        };
        let (part, reason) = mark
            .split_once(": ")
            .with_context(|| format!("a mark without a part: {line}"))?;
        let reason = reason
            .strip_suffix("\"]")
            .with_context(|| format!("a mark that goes on: {line}"))?;
        ensure!(
            !reason.is_empty() && !reason.ends_with('.'),
            "a mark needs a reason without a full stop: {line}"
        );
        let name = lines
            .by_ref()
            .find_map(|line| line.strip_prefix("fn ")?.split(['(', '<']).next());
        let function = name
            .with_context(|| format!("no test behind {line}"))?
            .to_owned();
        found.push(DeepTest {
            package: package.to_owned(),
            function,
            part: part.to_owned(),
            reason: reason.to_owned(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_part_and_its_reason() {
        let text = "#[test]\n#[ignore = \"deep truth: two clocks agree\"]\n#[expect(x)]\nfn it_holds() {}\nfn other() {}\n";
        let found = marked_in("alive", text).unwrap();
        let expected = DeepTest {
            package: "alive".into(),
            function: "it_holds".into(),
            part: "truth".into(),
            reason: "two clocks agree".into(),
        };
        assert_eq!(found, [expected]);
        assert!(
            marked_in("alive", "#[ignore = \"it is a helper\"]\nfn helper() {}\n")
                .unwrap()
                .is_empty()
        );
        for wrong in [
            "#[ignore = \"deep truth\"]\nfn a() {}",
            "#[ignore = \"deep truth: \"]\nfn a() {}",
            "#[ignore = \"deep truth: b\"]",
        ] {
            assert!(marked_in("alive", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_mark_of_the_workspace_names_a_part() {
        for test in deep_tests(crate::suite::root()).unwrap() {
            assert!(
                crate::deep::is_part(&test.part),
                "{}: {}: no part {}",
                test.package,
                test.function,
                test.part
            );
        }
    }
}
