//! The programs that go into the guest: statically linked, since there is no library.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};

/// The only machine that the guests are.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What was built.
pub(super) struct Built {
    /// Where cargo puts things.
    pub(super) target_dir: PathBuf,
    /// The guest's first process.
    pub(super) init: PathBuf,
    /// The program.
    pub(super) dptrace: PathBuf,
}

/// Builds both, as `cargo static` does but without its optimization, which takes minutes. Debug information is left out:
/// it would be most of the guest's memory.
pub(super) fn static_programs() -> anyhow::Result<Built> {
    let target_dir = crate::target_dir()?;
    let built_in = target_dir.join("vm/build");
    let mut build = crate::cargo();
    build.args(["build", "--quiet", "-p", "dptrace", "-p", "xtask", "--bin", "dptrace", "--bin", "vm-init"]);
    build.args(["--target", TARGET, "--config", "profile.dev.debug=0", "--config", "profile.dev.strip='debuginfo'"]);
    build.arg("--config").arg(format!("target.{TARGET}.rustflags=['-C', 'target-feature=+crt-static']"));
    build.arg("--target-dir").arg(&built_in);
    let done = build.status().context("running cargo")?;
    ensure!(done.success(), "the static programs could not be built");
    let folder = built_in.join(TARGET).join("debug");
    Ok(Built { target_dir, init: folder.join("vm-init"), dptrace: folder.join("dptrace") })
}
