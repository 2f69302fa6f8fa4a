//! Installs packages that a part needs and the machine does not have yet.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::suite::{self, run_limited};

/// Script that keeps packages from starting their services (invoke-rc.d(8)).
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs the missing ones of Debian's packages.
///
/// # Errors
/// If apt fails, or it takes longer than `limit`.
pub(super) fn install(packages: &[&str], limit: Duration) -> anyhow::Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|package| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    let makes_policy = !Path::new(POLICY).exists();
    if makes_policy {
        fs::write(POLICY, "#!/bin/sh\nexit 101\n").with_context(|| format!("writing {POLICY}"))?;
        run(Command::new("chmod").args(["+x", POLICY]), limit)?;
    }
    let installed = run(Command::new("apt-get").args(["update", "-qq"]), limit).and_then(|()| {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(missing);
        run(&mut apt, limit)
    });
    if makes_policy {
        fs::remove_file(POLICY).with_context(|| format!("removing {POLICY}"))?;
    }
    installed
}

/// Installs a subcommand of cargo if it is missing.
///
/// # Errors
/// If it cannot be built.
pub(super) fn install_cargo(name: &str, limit: Duration) -> anyhow::Result<()> {
    if run_limited(crate::cargo().args([name, "--version"]), limit)?.succeeded() {
        return Ok(());
    }
    let package = format!("cargo-{name}");
    println!("installing {package}");
    run(
        crate::cargo().args(["install", "--quiet", "--debug", "--locked", &package]),
        limit,
    )
}

/// Installs missing packages of Python below the target directory, without their dependencies.
///
/// # Errors
/// If pip fails.
pub(super) fn install_python(packages: &[&str], limit: Duration) -> anyhow::Result<()> {
    let folder = suite::root().join("target/python");
    let missing: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|name| !folder.join(name.replace('-', "_")).exists())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(&folder)
        .args(missing);
    run(&mut pip, limit)
}

fn is_installed(package: &str) -> bool {
    let done = Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .output();
    done.is_ok_and(|done| done.stdout == b"installed")
}

fn run(command: &mut Command, limit: Duration) -> anyhow::Result<()> {
    let ended = run_limited(command, limit)?;
    ensure!(
        ended.succeeded(),
        "{command:?} {}: {}",
        ended.verdict(),
        ended.output.trim()
    );
    Ok(())
}
