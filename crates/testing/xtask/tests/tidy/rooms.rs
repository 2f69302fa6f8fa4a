//! Comparison of ARCHITECTURE.md with the folders of the crates and their manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::published::package_name;
use super::{crates, root};

/// Folder of the crates that no other folder may use.
const FOR_TESTS: &str = "testing";

/// Crate of ours, by its manifest.
struct Crate {
    folder: String,
    /// Crates of ours that it depends on, without those that only its tests use.
    uses: BTreeSet<String>,
}

/// Returns all crates by the names of their folders.
fn by_manifest() -> BTreeMap<String, Crate> {
    let mut all = BTreeMap::new();
    for path in crates() {
        let manifest: toml::Table = fs::read_to_string(path.join("Cargo.toml"))
            .unwrap()
            .parse()
            .unwrap();
        let package = manifest["package"]["name"].as_str().unwrap();
        assert!(
            !manifest.contains_key("target"),
            "{}: this test does not know the table `target`",
            path.display()
        );
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            package,
            package_name(&name, &manifest),
            "the package in {}",
            path.display()
        );
        let sections = ["dependencies", "build-dependencies"]
            .iter()
            .filter_map(|section| manifest.get(*section));
        let uses = sections
            .flat_map(|section| section.as_table().unwrap().keys().cloned())
            .collect();
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        all.insert(name, Crate { folder, uses });
    }
    let ours: BTreeSet<_> = all.keys().cloned().collect();
    for one in all.values_mut() {
        one.uses.retain(|name| ours.contains(name));
    }
    all
}

/// Row of a table of crates.
struct Room {
    folder: String,
    /// `None` if it may use all crates.
    uses: Option<BTreeSet<String>>,
}

/// Returns a text without its parts in parentheses.
fn without_remarks(text: &str) -> String {
    let mut depth = 0;
    let outside = text.chars().filter(|c| {
        depth += i32::from(*c == '(');
        let is_outside = depth == 0;
        depth -= i32::from(*c == ')');
        is_outside
    });
    outside.collect::<String>().trim().to_owned()
}

/// Returns the names in backquotes.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns the text of ARCHITECTURE.md from a heading to the next one of its rank.
fn section(heading: &str) -> String {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// Returns the rows of ARCHITECTURE.md's tables, one table for each folder.
fn rooms() -> BTreeMap<String, Room> {
    let (mut rooms, mut folder) = (BTreeMap::new(), String::new());
    for line in section("The rooms").lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            heading.trim_matches('`').clone_into(&mut folder);
        }
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, may_use] = columns[..] else {
            continue;
        };
        if !line.starts_with("| `") {
            continue;
        }
        let uses = match &*without_remarks(may_use) {
            "all" => None,
            "nothing of ours" => Some(BTreeSet::new()),
            names => Some(quoted(names)),
        };
        assert!(
            uses.as_ref()
                .is_none_or(|uses| !uses.is_empty() || may_use == "nothing of ours"),
            "no crates: {line}"
        );
        let room = Room {
            folder: folder.clone(),
            uses,
        };
        assert!(
            rooms
                .insert(name.trim_matches('`').to_owned(), room)
                .is_none(),
            "two rows for {name}"
        );
    }
    rooms
}

/// The tables of ARCHITECTURE.md are neither too wide nor too narrow: a new arrow must be added
/// there.
#[test]
fn crates_use_what_the_tables_allow() {
    let (mut rooms, mut found) = (rooms(), Vec::new());
    for (name, Crate { folder, uses }) in by_manifest() {
        let Some(room) = rooms.remove(&name) else {
            found.push(format!("{name} has no row"));
            continue;
        };
        if room.folder != folder {
            found.push(format!(
                "{name} lies in {folder}, and its row in {}",
                room.folder
            ));
        }
        let allowed = room.uses.as_ref().unwrap_or(&uses);
        let forbidden = uses
            .difference(allowed)
            .map(|other| format!("{name} uses {other}, which its row does not have"));
        let unused = allowed
            .difference(&uses)
            .map(|other| format!("{name} does not use {other}, which its row has"));
        found.extend(forbidden.chain(unused));
    }
    found.extend(
        rooms
            .keys()
            .map(|name| format!("{name} has a row and is no crate")),
    );
    assert!(
        found.is_empty(),
        "ARCHITECTURE.md's tables of crates and the manifests differ: {found:#?}"
    );
}

/// The picture of ARCHITECTURE.md has each folder with its crates, and no crate uses one of a
/// folder above its own.
#[test]
fn crates_use_folders_below() {
    let crates = by_manifest();
    let mut levels: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in section("The eight folders")
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
    {
        let mut words = line.split_whitespace().map(str::to_owned);
        // A line that begins with blanks continues the folder above it.
        if line.starts_with(' ') {
            levels.last_mut().unwrap().1.extend(words);
            continue;
        }
        let Some(folder) = words.next().filter(|word| !word.starts_with("--")) else {
            continue;
        };
        levels.push((folder, words.collect()));
    }
    for (folder, drawn) in &levels {
        let there: BTreeSet<_> = crates
            .iter()
            .filter(|(_, one)| one.folder == *folder)
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(
            *drawn, there,
            "the picture of ARCHITECTURE.md, and the folder {folder}"
        );
        assert!(
            fs::exists(root().join("crates").join(folder).join("README.md")).unwrap(),
            "{folder} has no README.md"
        );
    }
    let level = |folder: &str| levels.iter().position(|(name, _)| name == folder).unwrap();
    let mut found = Vec::new();
    for (name, Crate { folder, uses }) in &crates {
        let is_too_high = |other: &&String| {
            let above = &crates[*other].folder;
            folder != FOR_TESTS && (above == FOR_TESTS || level(above) < level(folder))
        };
        found.extend(
            uses.iter()
                .filter(is_too_high)
                .map(|other| format!("{name} in {folder} uses {other}")),
        );
    }
    assert!(
        found.is_empty(),
        "these use crates of folders above their own: {found:#?}"
    );
}
