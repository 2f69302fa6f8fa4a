//! The archive, the Debian package and the checksums.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::{output, run_command, write};

/// File that the archive leaves out: it is for debuggers, and larger than all others.
const NOT_IN_THE_ARCHIVE: &str = "dptrace.debug";

/// Writes `dptrace-VERSION-ARCH.tar.gz`. The same files give the same bytes: there are no names and
/// times of the builder.
pub(super) fn tar(out: &Path, target: &str) -> anyhow::Result<()> {
    let arch = target.split('-').next().unwrap_or(target);
    let name = format!("dptrace-{}-{arch}", env!("CARGO_PKG_VERSION"));
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "--gzip",
    ]);
    // Beside the folder that it packs, so that it is not there when the folder is read.
    let beside = out.with_extension("tar.gz");
    tar.arg("--create")
        .arg("--file")
        .arg(&beside)
        .arg(format!("--exclude={NOT_IN_THE_ARCHIVE}"));
    tar.arg(format!("--transform=s,^\\.,{name},"))
        .arg("--directory")
        .arg(out)
        .arg(".");
    run_command(&mut tar)?;
    fs::rename(&beside, &archive).with_context(|| format!("naming {}", archive.display()))
}

/// Returns an error with the command to install cargo-deb if it is missing.
pub(super) fn look_for_cargo_deb() -> anyhow::Result<()> {
    let found = crate::cargo()
        .args(["deb", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let found = found.context("running cargo")?.success();
    ensure!(
        found,
        "no cargo-deb here: cargo install --locked cargo-deb, or leave the package out with --no-deb"
    );
    Ok(())
}

/// Builds the package from `out`; the manifest of dptrace lists its contents.
pub(super) fn deb(out: &Path, target: &str) -> anyhow::Result<()> {
    let mut deb = crate::cargo();
    deb.args([
        "deb",
        "--quiet",
        "--no-build",
        "--no-strip",
        "--profile",
        "dist",
        "-p",
        "dptrace",
        "--target",
        target,
        "--output",
    ])
    .arg(out);
    run_command(&mut deb)
}

/// Writes `SHA256SUMS` of every file in the folder itself, in the format of `sha256sum --check`.
pub(super) fn checksums(out: &Path) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out).with_context(|| format!("reading {}", out.display()))? {
        let entry = entry.with_context(|| format!("reading {}", out.display()))?;
        if entry.path().is_file() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let sums = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    write(&out.join("SHA256SUMS"), sums.as_bytes())
}
