//! Tests of the workspace as data: the marks of the deep check, the programs of the tests, and
//! single runs of tests. `deep` and `gate` choose the tests to run.

mod changes;
mod load;
mod log;
mod marks;
mod programs;
mod run;

pub(crate) use changes::{changed_files, changed_tests};
pub(crate) use load::{Load, LoadSample};
pub(crate) use log::{Failure, Log, reason};
pub(crate) use marks::{DeepTest, deep_tests};
pub(crate) use programs::{TestProgram, function_of, test_programs};
pub(crate) use run::{SEED_VARIABLE, run_limited, run_test};

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// Returns cargo's name of the crate in the folder of that name: published crates have a prefix.
///
/// # Errors
/// If there is no such crate, or its manifest cannot be read.
pub(crate) fn package_name(folder: &str) -> anyhow::Result<String> {
    let rooms = root().join("crates");
    let entries = fs::read_dir(&rooms).with_context(|| format!("reading {}", rooms.display()))?;
    let mut manifests = entries
        .flatten()
        .map(|room| room.path().join(folder).join("Cargo.toml"));
    let manifest = manifests
        .find(|path| path.exists())
        .with_context(|| format!("there is no crate {folder}"))?;
    let text =
        fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
    let table: toml::Table =
        toml::from_str(&text).with_context(|| format!("parsing {}", manifest.display()))?;
    let name = table.get("package").and_then(|it| it.get("name")?.as_str());
    let name = name.with_context(|| format!("{} has no package name", manifest.display()))?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::package_name;

    #[test]
    fn crates_have_the_names_that_cargo_knows() {
        let name = |folder| package_name(folder).map_err(|error| error.to_string());
        assert_eq!(name("elf").as_deref(), Ok("dptrace-elf"));
        assert_eq!(name("bt-engine").as_deref(), Ok("bt-engine"));
        assert_eq!(name("cpus").as_deref(), Ok("cpus"));
        assert_eq!(name("nothing"), Err("there is no crate nothing".to_owned()));
    }
}
