//! The archive, the packages and the checksums.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::{output, run_command, write};
use crate::suite;
use crate::vm::Hardware;

/// File that the archive leaves out: it is for debuggers, and larger than all others.
const NOT_IN_THE_ARCHIVE: &str = "dptrace.debug";

/// Subcommands of cargo that make the packages.
pub(crate) const PACKAGE_TOOLS: [&str; 2] = ["deb", "generate-rpm"];

/// Returns the first part of the names of an architecture's files.
pub(super) fn base_name(hardware: &Hardware) -> String {
    format!(
        "dptrace-{}-{}",
        env!("CARGO_PKG_VERSION"),
        hardware.machine()
    )
}

/// Writes `dptrace-VERSION-ARCH.tar.gz`. The same files give the same bytes: there are no names and
/// times of the builder.
pub(super) fn tar(out: &Path, hardware: &Hardware, moment: u64) -> anyhow::Result<()> {
    let name = base_name(hardware);
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        // Whatever the builder's umask is.
        "--mode=u=rwX,go=rX",
        "--format=gnu",
        "--use-compress-program=gzip -9n",
    ]);
    // Beside the folder that it packs, so that it is not there when the folder is read.
    let beside = out.with_extension("tar.gz");
    tar.arg(format!("--mtime=@{moment}"))
        .arg("--create")
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

/// Returns an error with the command to install what makes the packages, if it is missing.
pub(super) fn look_for_tools() -> anyhow::Result<()> {
    for tool in PACKAGE_TOOLS {
        let found = crate::cargo()
            .args([tool, "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ensure!(
            found.context("running cargo")?.success(),
            "no cargo-{tool} here: cargo install --locked cargo-{tool}, \
             or leave the packages out with --no-packages"
        );
    }
    Ok(())
}

/// Builds Debian's package from `out`; the manifest of dptrace lists its contents.
pub(super) fn deb(out: &Path, hardware: &Hardware, moment: u64) -> anyhow::Result<()> {
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
        hardware.target,
        "--output",
    ])
    .arg(out);
    run_command(in_workspace(&mut deb, moment))
}

/// Builds the RPM package from `out`; the manifest of dptrace lists its contents.
pub(super) fn rpm(out: &Path, hardware: &Hardware, moment: u64) -> anyhow::Result<()> {
    let mut rpm = crate::cargo();
    rpm.args([
        "generate-rpm",
        "--auto-req",
        "disabled",
        "--profile",
        "dist",
        "--package",
        "crates/app/dptrace",
        "--target",
        hardware.target,
        "--output",
    ])
    .arg(out);
    rpm.arg("--target-dir").arg(crate::target_dir()?);
    run_command(in_workspace(&mut rpm, moment))
}

/// Lets a command run in the workspace, with the time for the files that it makes.
fn in_workspace(command: &mut Command, moment: u64) -> &mut Command {
    command
        .current_dir(suite::root())
        .env("SOURCE_DATE_EPOCH", moment.to_string())
}

/// Writes `SHA256SUMS` of every file in the folder itself, in the format of `sha256sum --check`.
pub(crate) fn checksums(out: &Path) -> anyhow::Result<()> {
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
