//! Parts about a release: its packages for crates.io, its files, and a machine on which they are
//! installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use super::parts::{Deadline, cargo, step};
use super::{Outcome, packages};
use crate::suite::{self, run_limited};
use crate::vm::Architecture;

/// Debian that the package is installed on.
const SUITE: &str = "bookworm";

/// Lists all files of a machine, but for those in which dpkg and man-db keep what they did.
const LIST_FILES: &str = "find / -xdev \\( -path /proc -o -path /var/lib/dpkg -o -path /var/log \
                          -o -path /var/cache -o -name '*.deb' \\) -prune -o -print | sort";

/// Uses of the package on the machine: what they are about, and a script that fails if it does not
/// work.
const USES: [(&str, &str); 6] = [
    ("install the package", "dpkg --install /dptrace.deb"),
    (
        "the program is static, and runs",
        "dptrace --version | grep -x 'build:    static, optimized' && \
         dptrace demo --sample --head 3",
    ),
    (
        "man pages",
        "man -P cat dptrace | grep -q NAME && man -P cat dptrace-trace | grep -q SYNOPSIS",
    ),
    (
        "completion of bash",
        "exec bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader dptrace; \
         COMP_LINE=\"dptrace la\" COMP_POINT=10 COMP_TYPE=9 COMP_WORDS=(dptrace la) COMP_CWORD=1; \
         _dptrace; [ \"${COMPREPLY[*]% }\" = latency ]'",
    ),
    (
        "no unit is enabled",
        "test -e /usr/lib/systemd/system/dptrace-serve.service && \
         ! find /etc/systemd -name 'dptrace*' | grep .",
    ),
    ("purge the package", "dpkg --purge dptrace"),
];

/// Makes the packages for crates.io in their order, and builds each from its package and from those
/// before it, as `cargo publish` does. Nothing is sent.
pub(super) fn publish(deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    // Cargo resolves the packages by the registry's index, also in a dry run.
    let mut ask = cargo(&["info", "--quiet", "--registry", "crates-io", "libc"]);
    if !run_limited(ask.current_dir(suite::root()), deadline.left())?.succeeded() {
        println!(
            "SKIPPED (publish): the index of crates.io cannot be reached here, and \
             `cargo publish --dry-run` does not work without it"
        );
        return Ok(outcome);
    }
    step(
        &mut outcome,
        "cargo publish --workspace --dry-run",
        &mut cargo(&["publish", "--workspace", "--dry-run"]),
        deadline,
    )?;
    Ok(outcome)
}

/// Makes the files of a release, as far as this machine has what they need.
pub(super) fn dist(deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    make(&mut outcome, deadline)?;
    let program = crate::dist::folder(Architecture::default().hardware())?.join("dptrace");
    step(
        &mut outcome,
        "dptrace demo",
        Command::new(program).args(["demo", "--head", "3"]),
        deadline,
    )?;
    Ok(outcome)
}

/// Installs the package of Debian on a machine that has nothing else, and removes it.
pub(super) fn install(deadline: Deadline) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    if package(".deb").is_err() {
        make(&mut outcome, deadline)?;
    }
    let rpm = package(".rpm")?;
    step(
        &mut outcome,
        "the RPM package is whole",
        Command::new("rpm").arg("-Kv").arg(rpm),
        deadline,
    )?;
    let machine = tempfile::tempdir_in(crate::target_dir()?).context("making a folder")?;
    debootstrap(&machine, deadline)?;
    fs::copy(package(".deb")?, machine.path().join("dptrace.deb"))
        .context("copying the package")?;
    let before = inside(&machine, LIST_FILES, deadline)?;
    for (name, script) in USES {
        step(&mut outcome, name, &mut command(&machine, script), deadline)?;
    }
    let after = inside(&machine, LIST_FILES, deadline)?;
    let left = after
        .lines()
        .filter(|line| !before.lines().any(|old| old == *line));
    let left: Vec<&str> = left.collect();
    println!("left behind: {left:?}");
    outcome.add("nothing is left", left.is_empty() && before.len() > 1000);
    Ok(outcome)
}

fn make(outcome: &mut Outcome, deadline: Deadline) -> anyhow::Result<()> {
    for tool in crate::dist::PACKAGE_TOOLS {
        packages::install_cargo(tool, deadline.left())?;
    }
    step(
        outcome,
        "cargo xtask dist",
        &mut cargo(&["xtask", "dist"]),
        deadline,
    )
}

/// Returns the package of this machine's architecture with that ending.
fn package(ending: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::dist::folder(Architecture::default().hardware())?;
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = entries.flatten().map(|it| it.path());
    paths
        .find(|path| path.to_string_lossy().ends_with(ending))
        .with_context(|| format!("there is no package {ending} in {}", folder.display()))
}

/// Installs a small Debian into a folder, from the mirror of this machine.
fn debootstrap(machine: &TempDir, deadline: Deadline) -> anyhow::Result<()> {
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args([
            "--variant=minbase",
            "--include=bash-completion,man-db",
            SUITE,
        ])
        .arg(machine.path())
        .arg(crate::vm::mirror()?);
    let ended = run_limited(debootstrap.current_dir(suite::root()), deadline.left())?;
    ensure!(
        ended.succeeded(),
        "debootstrap {}: {}",
        ended.verdict(),
        ended.output
    );
    Ok(())
}

/// Returns a command that runs a script on the machine, with namespaces of its own, so that no
/// mount and no process of it is left.
fn command(machine: &TempDir, script: &str) -> Command {
    let proc: &Path = &machine.path().join("proc");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--fork", "--kill-child"])
        .arg(format!("--mount-proc={}", proc.display()))
        .arg("chroot")
        .arg(machine.path())
        .args(["/bin/sh", "-ec", script])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8");
    command
}

/// Runs a script on the machine, and returns what it prints.
fn inside(machine: &TempDir, script: &str, deadline: Deadline) -> anyhow::Result<String> {
    let ended = run_limited(&mut command(machine, script), deadline.left())?;
    ensure!(
        ended.succeeded(),
        "{script} {}: {}",
        ended.verdict(),
        ended.output
    );
    Ok(ended.output)
}
