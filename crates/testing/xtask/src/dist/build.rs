//! The program of a release: its build, and the checks of what came out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::{output, run_command};
use crate::suite;
use crate::vm::{Architecture, Hardware};

/// Limit on the size of the program's file, which is copied over slow lines onto foreign machines.
const MAX_PROGRAM_BYTES: u64 = 12 << 20;

/// Functions of the demo target that its page recommends for uprobes.
const KEPT_FUNCTIONS: [&str; 2] = [
    "--keep-symbol=demo_request_start",
    "--keep-symbol=demo_request_complete",
];

/// Builds the program as for a release; returns its path.
pub(super) fn build(hardware: &Hardware) -> anyhow::Result<PathBuf> {
    let alias = match hardware.architecture {
        Architecture::X86_64 => "static",
        Architecture::Aarch64 => "static-aarch64",
    };
    let mut flags = Vec::new();
    for (path, name) in builders_paths()? {
        flags.push(format!("'--remap-path-prefix={}={name}'", path.display()));
    }
    let flags = format!(
        "target.{}.rustflags=[{}]",
        hardware.target,
        flags.join(", ")
    );
    let mut cargo = crate::cargo();
    cargo
        .args([alias, "--quiet", "--locked", "-p", "dptrace"])
        .args(["--config", &flags])
        .current_dir(suite::root());
    // They would take the place of the alias's flags, and the program would need libraries.
    cargo
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run_command(&mut cargo)?;
    Ok(crate::target_dir()?
        .join(hardware.target)
        .join("dist/dptrace"))
}

/// Returns the builder's folders that messages and debug information would name, and their names in
/// the program, which are the same for all builders. Of two that match, rustc takes the last.
fn builders_paths() -> anyhow::Result<Vec<(PathBuf, &'static str)>> {
    let root = suite::root()
        .canonicalize()
        .context("looking for the workspace")?;
    let mut paths = vec![
        (crate::target_dir()?, "/dptrace/target"),
        (root, "/dptrace"),
    ];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|it| it.join(".cargo")));
    // A folder for each registry, whose name depends on its address: that of a mirror is another.
    let registries = home
        .context("there is no home directory")?
        .join("registry/src");
    for entry in fs::read_dir(&registries).into_iter().flatten() {
        let entry = entry.with_context(|| format!("reading {}", registries.display()))?;
        paths.push((entry.path(), "/cargo"));
    }
    Ok(paths)
}

/// Strips the program of its symbols, which go into a separate file that debuggers find by the
/// build id.
pub(super) fn strip(
    hardware: &Hardware,
    built: &Path,
    program: &Path,
    debug: &Path,
) -> anyhow::Result<()> {
    let objcopy = || Command::new(hardware.binutil("objcopy"));
    run_command(objcopy().arg("--only-keep-debug").arg(built).arg(debug))?;
    run_command(
        objcopy()
            .arg("--strip-all")
            .args(KEPT_FUNCTIONS)
            .arg(built)
            .arg(program),
    )
}

/// Rejects a program that can't be copied onto any machine and started there, or that names folders
/// of its builder.
pub(super) fn check(program: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(program).with_context(|| format!("reading {}", program.display()))?;
    let size = bytes.len() as u64;
    ensure!(
        size <= MAX_PROGRAM_BYTES,
        "the program has {size} bytes: the most is {MAX_PROGRAM_BYTES}; \
         cargo bloat says what takes the room"
    );
    let dynamic = output(
        Command::new("readelf")
            .args(["--wide", "--dynamic", "--program-headers"])
            .arg(program),
    )?;
    let needs: Vec<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)") || line.contains("interpreter:"))
        .collect();
    ensure!(
        needs.is_empty(),
        "the program needs what a machine may not have: {}",
        needs.join("; ")
    );
    for (path, _) in builders_paths()? {
        ensure!(
            !contains(&bytes, path.as_os_str().as_encoded_bytes()),
            "the program names a folder of its builder, and would be another one elsewhere: {}",
            path.display()
        );
    }
    Ok(())
}

/// Returns whether bytes contain others.
fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    let Some((first, rest)) = wanted.split_first() else {
        return true;
    };
    let mut left = bytes;
    while let Some(at) = left.iter().position(|it| it == first) {
        left = &left[at + 1..];
        if left.starts_with(rest) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn a_path_is_found_wherever_it_stands() {
        assert!(contains(b"at //home/me/src", b"/home/me"));
        assert!(contains(b"/home/me", b"/home/me"));
        assert!(!contains(b"/home/you/home/m", b"/home/me"));
    }
}
