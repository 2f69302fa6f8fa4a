//! Bill of materials in the format CycloneDX 1.5 (its JSON schema, `bom-1.5.schema.json`): for
//! machines, what `THIRD-PARTY.md` is for people.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::output;
use super::packages::Package;
use crate::vm::Hardware;

/// Reference of the program itself within the document.
const PROGRAM: &str = "dptrace";

/// Describes what is linked into the program of an architecture.
pub(super) fn describe(
    packages: &[Package],
    hardware: &Hardware,
    program: &Path,
    moment: u64,
) -> anyhow::Result<String> {
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let rustc = rustc.split(' ').nth(1).context("rustc has no version")?;
    let glibc = glibc_version(hardware)?;
    let mut components: Vec<Value> = packages.iter().map(component).collect();
    components.push(json!({
        "type": "library", "bom-ref": "rust-std", "name": "std", "version": rustc,
        "description": "Rust's standard library",
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        "purl": format!("pkg:generic/rust-std@{rustc}"),
    }));
    components.push(json!({
        "type": "library", "bom-ref": "glibc", "name": "glibc", "version": glibc,
        "licenses": [{ "license": { "id": "LGPL-2.1-or-later" } }],
        "purl": format!("pkg:generic/glibc@{glibc}"),
    }));
    let hash = output(Command::new("sha256sum").arg(program))?;
    let hash = hash.split(' ').next().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let references: Vec<&Value> = components.iter().map(|it| &it["bom-ref"]).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(moment)?,
            "component": {
                "type": "application", "bom-ref": PROGRAM, "name": "dptrace", "version": version,
                "licenses": [{ "license": { "id": "Apache-2.0" } }],
                "purl": format!("pkg:generic/dptrace@{version}?arch={}", hardware.machine()),
                "hashes": [{ "alg": "SHA-256", "content": hash }],
            },
        },
        "dependencies": [{ "ref": PROGRAM, "dependsOn": references }],
        "components": components,
    });
    Ok(format!("{document:#}\n"))
}

/// Returns the entry of a package.
fn component(package: &Package) -> Value {
    let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
    let mut entry = json!({
        "type": "library", "bom-ref": purl, "name": package.name, "version": package.version,
        "purl": purl,
    });
    if let Some(licence) = &package.license {
        // `MIT/Apache-2.0` is the older way to write it, which is no expression of SPDX.
        entry["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(checksum) = &package.checksum {
        entry["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    entry
}

/// Returns the version of the C library that the compiler links.
fn glibc_version(hardware: &Hardware) -> anyhow::Result<String> {
    let mut compiler = Command::new(hardware.linker.unwrap_or("cc"));
    let text = output(compiler.args([
        "-E",
        "-dM",
        "-include",
        "features.h",
        "-x",
        "c",
        "/dev/null",
    ]))?;
    let number = |name: &str| {
        let start = format!("#define {name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(str::trim)
            .with_context(|| format!("the C library has no {name}"))
    };
    Ok(format!(
        "{}.{}",
        number("__GLIBC__")?,
        number("__GLIBC_MINOR__")?
    ))
}

/// Returns a moment as the format wants it, in UTC.
fn timestamp(moment: u64) -> anyhow::Result<String> {
    let mut date = Command::new("date");
    let text = output(date.args(["--utc", &format!("--date=@{moment}"), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::packages::linked_packages;
    use super::component;

    #[test]
    fn each_linked_package_is_named_with_its_licence_and_the_hash_of_its_archive() {
        let linked = linked_packages("x86_64-unknown-linux-gnu").expect("cargo knows them");
        let entries: Vec<_> = linked.iter().map(component).collect();
        let clap = entries
            .iter()
            .find(|it| it["name"] == "clap")
            .expect("it is linked");
        assert_eq!(clap["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(
            entries
                .iter()
                .all(|it| it["licenses"][0]["expression"].is_string())
        );
        let is_hash = |it: &serde_json::Value| {
            it["hashes"][0]["content"]
                .as_str()
                .is_some_and(|hash| hash.len() == 64)
        };
        assert!(entries.iter().all(is_hash));
        // It runs in the compiler, and is in no program.
        assert!(entries.iter().all(|it| it["name"] != "serde_derive"));
    }
}
