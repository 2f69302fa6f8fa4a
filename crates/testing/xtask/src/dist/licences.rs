//! Licences of the crates that are linked into the program. Most of them require that every copy
//! includes their text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

/// Output of `cargo metadata --format-version 1`, as far as it is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for the workspace's own packages.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
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

/// Returns a list of the packages with their licences, and each licence's text once.
pub(super) fn list_licences(target: &str) -> anyhow::Result<String> {
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
    text_of(&linked(&metadata)?)
}

/// Returns the foreign packages that dptrace reaches by ordinary dependencies. Code that runs in
/// the compiler (procedural macros) is not in the program.
fn linked(metadata: &Metadata) -> anyhow::Result<Vec<&Package>> {
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
        if in_the_compiler || !seen.insert(id) {
            continue;
        }
        let ordinary = |it: &&Dependency| it.dep_kinds.iter().any(|of| of.kind.is_none());
        let node = nodes
            .get(id)
            .with_context(|| format!("cargo metadata resolves no package {id}"))?;
        open.extend(node.deps.iter().filter(ordinary).map(|it| it.pkg.as_str()));
    }
    let mut linked: Vec<&Package> = seen
        .iter()
        .filter_map(|id| packages.get(id).copied())
        .filter(|it| it.source.is_some())
        .collect();
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(linked)
}

fn text_of(packages: &[&Package]) -> anyhow::Result<String> {
    let mut text =
        "# What is linked into dptrace\n\nBeside these, the C library (glibc, LGPL-2.1-or-later) and Rust's \
                    standard library (MIT OR Apache-2.0).\n\n| package | version | licence |\n|---|---|---|\n"
            .to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let licence = package.license.as_deref().unwrap_or("see its text");
        writeln!(
            text,
            "| {} | {} | {licence} |",
            package.name, package.version
        )?;
        for found in licence_files(&package.manifest_path)? {
            texts.entry(found).or_default().push(package.name.clone());
        }
    }
    for (licence, of) in texts {
        write!(
            text,
            "\n## {}\n\n```text\n{}\n```\n",
            of.join(", "),
            licence.trim_end()
        )?;
    }
    Ok(text)
}

/// Returns the texts beside a package's manifest whose names show that they are licences.
fn licence_files(manifest: &Path) -> anyhow::Result<Vec<String>> {
    let folder = manifest
        .parent()
        .with_context(|| format!("{} lies in no folder", manifest.display()))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        if ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"]
            .iter()
            .any(|word| name.starts_with(word))
        {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths.retain(|it| it.is_file());
    paths
        .iter()
        .map(|it| fs::read_to_string(it).with_context(|| format!("reading {}", it.display())))
        .collect()
}
