//! Layout of crates: modules, lengths of files, programs of tests.

use std::fs;
use std::path::PathBuf;

use super::{all_sources, check, crates, name_of};

/// A module with files of its own is `name/mod.rs`, so that all of it is in its folder. Folders of
/// data have no Rust files.
#[test]
fn modules_with_folders_are_in_them() {
    let all = all_sources();
    let has_folder = |path: &&PathBuf| {
        all.iter()
            .any(|other| other.parent() == Some(&path.with_extension("")))
    };
    let found: Vec<_> = all.iter().filter(has_folder).collect();
    assert!(
        found.is_empty(),
        "these are beside a folder of their name, and should be mod.rs in it: {found:#?}"
    );
}

/// Limit on the lines of a source file. A longer file must be split where its subject changes.
const MAX_FILE_LINES: usize = 400;

#[test]
fn files_are_short() {
    let lines = |path: PathBuf| (fs::read_to_string(&path).unwrap().lines().count(), path);
    let found: Vec<_> = all_sources()
        .into_iter()
        .map(lines)
        .filter(|(count, _)| *count > MAX_FILE_LINES)
        .collect();
    assert!(
        found.is_empty(),
        "these files have more than {MAX_FILE_LINES} lines: {found:#?}"
    );
}

/// Programs of integration tests beside `tests/it`, and the reason.
const MORE_PROGRAMS: &[(&str, &str)] = &[
    ("dptrace/tests/kernel_delay", "its own threads are measured"),
    (
        "dptrace/tests/processes.rs",
        "its own processes are found by name",
    ),
    (
        "dptrace/tests/run_bundled.rs",
        "it has the functions that scripts know",
    ),
    (
        "dptrace/tests/run_bundled_loads",
        "it has the functions that scripts know",
    ),
];

/// Each program of tests is linked with all tested code, which takes seconds and megabytes.
#[test]
fn a_crate_has_one_program_of_integration_tests() {
    let mut more = Vec::new();
    for folder in crates().iter().map(|folder| folder.join("tests")) {
        let paths = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").exists()
        };
        let mut programs: Vec<_> = paths.filter(is_program).collect();
        programs.sort();
        let is_one = programs.len() == 1;
        programs.retain(|path| !is_one && !path.ends_with("it"));
        more.extend(programs.iter().map(|path| name_of(path)));
    }
    check(
        &more,
        MORE_PROGRAMS,
        "are programs of tests beside another one",
    );
}
