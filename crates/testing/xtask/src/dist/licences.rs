//! Licences of the crates that are linked into the program. Most of them require that every copy
//! includes their text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::packages::Package;

/// Returns a list of the packages with their licences, and each licence's text once.
pub(super) fn list_licences(packages: &[Package]) -> anyhow::Result<String> {
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
