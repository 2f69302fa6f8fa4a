//! Rules for the sources that no compiler checks.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod documents;
mod english;
mod files;
mod house;
mod install;
mod layout;
mod packages;
mod processes;
mod published;
mod rooms;
mod units;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use testkit::sources;

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .unwrap()
}

/// Returns the folders of all crates.
fn crates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let inside = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        // A removed crate may leave a folder without a manifest.
        found.extend(inside.filter(|path| path.join("Cargo.toml").exists()));
    }
    found.sort();
    found
}

/// Returns all sources of all crates.
fn all_sources() -> Vec<PathBuf> {
    sources(&root().join("crates"))
}

/// Returns the name of a source: its crate and its path within it.
fn name_of(path: &Path) -> String {
    let mut inside = path
        .strip_prefix(root().join("crates"))
        .unwrap()
        .components();
    inside.next();
    inside.as_path().to_str().unwrap().to_owned()
}

/// Returns whether a source in `src` is only for tests.
fn is_test_module(name: &str) -> bool {
    name.ends_with("tests.rs") || name.contains("/tests/")
}

/// Returns the files of the program's own crates, by name, with their code: without comments and
/// code that is only for tests.
fn product() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for path in all_sources() {
        let name = name_of(&path);
        if name.split('/').nth(1) != Some("src") {
            continue;
        }
        // Tools of this project, which look at no foreign process.
        let is_tool = ["xtask/", "testkit/", "spdk-trace-writer/", "demo-target/"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_tool || is_test_module(&name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // Code that is only for tests may open any file.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: Vec<_> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        files.push((name, code.join("\n")));
    }
    files
}

/// Compares the files that do something with the table of the permitted ones.
fn check(found: &[String], table: &[(&str, &str)], what: &str) {
    let unknown: Vec<_> = found
        .iter()
        .filter(|name| !table.iter().any(|(known, _)| known == name))
        .collect();
    let gone: Vec<_> = table
        .iter()
        .filter(|(known, _)| !found.iter().any(|name| name == known))
        .collect();
    assert!(
        unknown.is_empty(),
        "these {what}, and are not in the table of this test: {unknown:#?}"
    );
    assert!(
        gone.is_empty(),
        "these are in the table of this test, and no longer {what}: {gone:#?}"
    );
}

/// `Arch::HOST` alone knows the machine that this is compiled for. Code that exists on one machine
/// only, such as an instruction in assembler text, has an attribute of its own.
#[test]
fn the_machine_is_asked_for_in_one_place() {
    let found = product()
        .into_iter()
        .filter(|(_, code)| code.contains("cfg!(target_arch"));
    let found: Vec<_> = found.map(|(name, _)| name).collect();
    check(
        &found,
        &[("uapi/src/arch.rs", "Arch::HOST")],
        "ask which machine they are compiled for",
    );
}
