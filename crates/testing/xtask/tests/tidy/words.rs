//! Words that CONTRIBUTING.md asks to avoid.

use std::fs;
use std::path::{Path, PathBuf};

use super::{all_sources, name_of, root};

/// Limit on the words to avoid that the sources may still have. It may only become smaller: lower
/// it after removing some.
const STILL_IN_SOURCES: usize = 5;
/// Limit on the words to avoid that the tests may still have. It may only become smaller, too.
const STILL_IN_TESTS: usize = 66;

/// Counts the words to avoid in a text (`CONTRIBUTING.md`, "Words"), also as parts of names.
fn words_to_avoid(text: &str) -> usize {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let single = words
        .iter()
        .filter(|word| matches!(word.as_str(), "tell" | "tells" | "told" | "untold"))
        .count();
    single
        + words
            .windows(2)
            .filter(|pair| pair[0] == "so" && pair[1] == "many")
            .count()
}

/// Returns the texts of the folder's own files with one of these extensions.
fn texts(folder: &Path, extensions: &[&str]) -> Vec<(String, String)> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let wanted = |path: &PathBuf| {
        path.extension()
            .is_some_and(|it| extensions.iter().any(|known| it == *known))
    };
    paths
        .filter(wanted)
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

#[test]
fn documents_and_scripts_use_plain_words() {
    let root = root();
    let folders = [
        "", "docs", "docs/dev", "benches", "fuzz", "scripts", "objects",
    ];
    let mut found = Vec::new();
    for (name, text) in folders
        .iter()
        .flat_map(|folder| texts(&root.join(folder), &["md", "sh", "bt", "toml"]))
    {
        // The glossary names the words; kernels.md has the names of tests.
        let is_exempt = ["CONTRIBUTING.md", "kernels.md"]
            .iter()
            .any(|exempt| name.ends_with(exempt));
        if words_to_avoid(&text) > 0 && !is_exempt {
            found.push(name);
        }
    }
    assert!(
        found.is_empty(),
        "these have words that CONTRIBUTING.md asks to avoid: {found:#?}"
    );
}

#[test]
fn sources_use_plain_words() {
    let (mut in_sources, mut in_tests) = (Vec::new(), Vec::new());
    for path in all_sources() {
        let name = name_of(&path);
        let count = words_to_avoid(&fs::read_to_string(&path).unwrap());
        // This file names the words.
        if count > 0 && name != "xtask/tests/tidy/words.rs" {
            let group = if name.split('/').nth(1) == Some("src") {
                &mut in_sources
            } else {
                &mut in_tests
            };
            group.push((count, name));
        }
    }
    for (found, still) in [(in_sources, STILL_IN_SOURCES), (in_tests, STILL_IN_TESTS)] {
        let total: usize = found.iter().map(|(count, _)| count).sum();
        assert!(
            total <= still,
            "{total} words that CONTRIBUTING.md asks to avoid, at most {still} may be left: {found:#?}"
        );
    }
}
