//! Kernel of this machine, without a virtual machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use xtask::{GuestAnswer, GuestCommand};

use super::build::Built;

/// Name of this kernel in place of a release.
pub(super) const OWN: &str = "own";

/// Returns the release of this kernel.
pub(super) fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease")
        .context("looking for the kernel's release")?;
    let numbers: Vec<&str> = text.split('.').take(2).collect();
    Ok(numbers.join("."))
}

/// Runs the commands in a folder where all users may read the programs.
pub(super) fn run(built: &Built, commands: &[GuestCommand]) -> anyhow::Result<Vec<GuestAnswer>> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "this machine's own kernel is only for root"
    );
    let folder = tempfile::tempdir().context("making a folder")?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let copy = |from: &Path, name: &str| {
        fs::copy(from, folder.path().join(name))
            .with_context(|| format!("copying {}", from.display()))
    };
    copy(&built.dptrace, "dptrace")?;
    // Both report that they are for guests only.
    copy(&built.init, "datapath")?;
    copy(&built.init, "starve")?;
    for test in &built.tests {
        copy(&test.path, test.name)?;
    }
    Ok(commands
        .iter()
        .map(|command| command.run(folder.path(), folder.path()))
        .collect())
}
