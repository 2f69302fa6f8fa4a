//! The archive, the Debian package and the checksums.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::{output, run_command, write};

/// What the archive leaves out: it is for debuggers, and larger than all else.
const NOT_IN_THE_ARCHIVE: &str = "dptrace.debug";

/// `dptrace-VERSION-ARCH.tar.gz`, the same bytes whoever makes it of the same files: no names and times of the builder.
pub(super) fn tar(out: &Path, target: &str) -> anyhow::Result<()> {
    let arch = target.split('-').next().unwrap_or(target);
    let name = format!("dptrace-{}-{arch}", env!("CARGO_PKG_VERSION"));
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--gzip"]);
    // Beside what it packs, so not yet there when the folder is read.
    let beside = out.with_extension("tar.gz");
    tar.arg("--create").arg("--file").arg(&beside).arg(format!("--exclude={NOT_IN_THE_ARCHIVE}"));
    tar.arg(format!("--transform=s,^\\.,{name},")).arg("--directory").arg(out).arg(".");
    run_command(&mut tar)?;
    fs::rename(&beside, &archive).with_context(|| format!("naming {}", archive.display()))
}

/// Says how to get it if it is not there.
pub(super) fn look_for_cargo_deb() -> anyhow::Result<()> {
    let found = crate::cargo().args(["deb", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.context("running cargo")?.success();
    ensure!(found, "no cargo-deb here: cargo install --locked cargo-deb, or leave the package out with --no-deb");
    Ok(())
}

/// The package of what lies in `out`; its contents stand in the manifest of dptrace.
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

/// `SHA256SUMS` of every file in the folder itself, as `sha256sum --check` takes it.
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
