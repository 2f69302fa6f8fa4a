//! The crates that go to crates.io: `bt-engine`, and what it is made of.

use std::fs;
use std::path::Path;

use testkit::sources;

use super::{crates, root};

/// Crate whose interface is stable, under the name of its folder.
const ENGINE: &str = "bt-engine";
/// Prefix of the others on crates.io, where short names belong to other people's crates.
const PREFIX: &str = "dptrace-";

/// Keys that each published crate takes from the workspace.
const SHARED: [&str; 9] = [
    "version",
    "edition",
    "rust-version",
    "license",
    "repository",
    "homepage",
    "keywords",
    "categories",
    "include",
];

/// Returns true if a crate is published: it does not take the workspace's `publish = false`.
fn is_published(manifest: &toml::Table) -> bool {
    !manifest["package"]
        .as_table()
        .unwrap()
        .contains_key("publish")
}

/// Returns the name that the package in a folder must have.
pub(super) fn package_name(folder: &str, manifest: &toml::Table) -> String {
    if is_published(manifest) && folder != ENGINE {
        format!("{PREFIX}{folder}")
    } else {
        folder.to_owned()
    }
}

fn manifest(folder: &Path) -> toml::Table {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

/// Returns the folders of the published crates, with their manifests.
fn published() -> Vec<(std::path::PathBuf, toml::Table)> {
    let all = crates().into_iter().map(|folder| {
        let manifest = manifest(&folder);
        (folder, manifest)
    });
    let published: Vec<_> = all.filter(|(_, manifest)| is_published(manifest)).collect();
    assert!(published.iter().any(|(folder, _)| folder.ends_with(ENGINE)));
    published
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// What is not written in the manifests is missing on crates.io, where no version can be mended.
#[test]
fn published_crates_are_described() {
    for (folder, manifest) in published() {
        let (name, package) = (name(&folder), manifest["package"].as_table().unwrap());
        for key in SHARED {
            let inherited = package.get(key).and_then(|it| it.get("workspace"));
            assert_eq!(
                inherited.and_then(toml::Value::as_bool),
                Some(true),
                "{name}: {key}.workspace"
            );
        }
        assert!(package.contains_key("description"), "{name}: description");
        let has_own = folder.join("README.md").exists();
        assert!(
            has_own || package.contains_key("readme"),
            "{name}: readme.workspace, or a README.md of its own"
        );
        assert_eq!(
            fs::read_to_string(folder.join("LICENSE")).unwrap_or_default(),
            fs::read_to_string(root().join("LICENSE")).unwrap(),
            "{name}: LICENSE is no link to ours"
        );
        if name != ENGINE {
            assert_eq!(
                manifest["lib"]["name"].as_str().unwrap(),
                name.replace('-', "_"),
                "{name}: the name of the library in sources"
            );
        }
    }
}

/// A release of one crate works with the same release of the others only: their interfaces change.
/// Test crates have no version, so that cargo leaves them out of what it publishes.
#[test]
fn published_crates_ask_for_each_other_by_version() {
    let workspace = manifest(&root());
    let version = workspace["workspace"]["package"]["version"]
        .as_str()
        .unwrap();
    let dependencies = workspace["workspace"]["dependencies"].as_table().unwrap();
    for folder in crates() {
        let (name, manifest) = (name(&folder), manifest(&folder));
        let Some(entry) = dependencies.get(name) else {
            continue;
        };
        let found = entry.get("version").and_then(toml::Value::as_str);
        let wanted = is_published(&manifest).then(|| format!("={version}"));
        assert_eq!(
            found,
            wanted.as_deref(),
            "version of {name} in [workspace.dependencies]"
        );
        if !is_published(&manifest) {
            continue;
        }
        for other in manifest
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .into_iter()
            .flat_map(toml::Table::keys)
        {
            let ours = dependencies[other].get("path");
            assert!(
                ours.is_none() || dependencies[other].get("version").is_some(),
                "{name} is published, but {other} is not"
            );
        }
    }
}

/// A package has the files of its own folder only.
#[test]
fn published_crates_embed_their_own_files() {
    let mut embedded = 0;
    for (folder, _) in published() {
        for path in sources(&folder.join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let calls = ["include_str!(\"", "include_bytes!(\"", "include!(\""];
            for call in calls {
                for rest in text.split(call).skip(1) {
                    let file = path.with_file_name(rest.split('"').next().unwrap());
                    let file = file
                        .canonicalize()
                        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                    let inside = file.strip_prefix(folder.canonicalize().unwrap());
                    let is_included = inside.is_ok_and(|inside| {
                        inside.starts_with("src") || inside.ends_with("README.md")
                    });
                    assert!(
                        is_included,
                        "{} embeds {}, which is not in its package",
                        path.display(),
                        file.display()
                    );
                    embedded += 1;
                }
            }
        }
    }
    // The engine's README, at least.
    assert!(embedded > 0);
}
