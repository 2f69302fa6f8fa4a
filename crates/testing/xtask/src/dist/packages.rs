//! Packages that are linked into the program, as cargo resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::Deserialize;

use crate::suite;

/// Output of `cargo metadata --format-version 1`, as far as it is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

/// Package of the workspace or of a registry.
#[derive(Deserialize)]
pub(super) struct Package {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// `None` for the workspace's own packages.
    source: Option<String>,
    pub(super) manifest_path: PathBuf,
    targets: Vec<Target>,
    /// SHA-256 of its archive, from the lock file.
    #[serde(skip)]
    pub(super) checksum: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for an ordinary dependency; else `dev` or `build`.
    kind: Option<String>,
}

/// Contents of `Cargo.lock`, as far as they are needed here.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Returns the foreign packages that are linked into dptrace for a target, by name and version.
pub(super) fn linked_packages(target: &str) -> anyhow::Result<Vec<Package>> {
    let mut ask = crate::cargo();
    ask.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        target,
    ]);
    let metadata: Metadata = serde_json::from_str(&super::output(&mut ask)?)
        .context("reading what cargo metadata says")?;
    let lock = suite::root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))?;
    let lock: Lock = toml::from_str(&lock).context("reading Cargo.lock")?;
    let mut linked = linked(metadata)?;
    for package in &mut linked {
        let locked = lock
            .package
            .iter()
            .find(|it| it.name == package.name && it.version == package.version);
        package.checksum = locked.and_then(|it| it.checksum.clone());
    }
    Ok(linked)
}

/// Returns the foreign packages that dptrace reaches by ordinary dependencies. Code that runs in
/// the compiler (procedural macros) is not in the program.
fn linked(metadata: Metadata) -> anyhow::Result<Vec<Package>> {
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|it| (it.id.as_str(), it))
        .collect();
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|it| (it.id.as_str(), it))
        .collect();
    let root = metadata
        .packages
        .iter()
        .find(|it| it.name == "dptrace" && it.source.is_none());
    let mut open = vec![
        root.context("the workspace has no package dptrace")?
            .id
            .as_str(),
    ];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let package = packages
            .get(id)
            .with_context(|| format!("cargo metadata names no package {id}"))?;
        let in_the_compiler = package
            .targets
            .iter()
            .any(|it| it.kind.iter().any(|kind| kind == "proc-macro"));
        if in_the_compiler || !seen.insert(id.to_owned()) {
            continue;
        }
        let ordinary = |it: &&Dependency| it.dep_kinds.iter().any(|of| of.kind.is_none());
        let node = nodes
            .get(id)
            .with_context(|| format!("cargo metadata resolves no package {id}"))?;
        open.extend(node.deps.iter().filter(ordinary).map(|it| it.pkg.as_str()));
    }
    let mut linked = metadata.packages;
    linked.retain(|it| it.source.is_some() && seen.contains(&it.id));
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(linked)
}
