//! Programs that users name, and whether a process can be looked at.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use host::{HostError, Pid, Process};
use text::printable::path as printable;

/// Checks that there is such a process. If we may not look into it, its trace may be readable all
/// the same.
pub fn check_process(pid: u32) -> anyhow::Result<()> {
    match Process::open(Pid(pid)).and_then(|process| process.is_first_thread()) {
        Err(
            error @ (HostError::NoProcess { .. }
            | HostError::KernelThread { .. }
            | HostError::Thread { .. }),
        ) => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the file of a command's name, as execvp(3) finds it: one that can be run.
pub fn find_program(name: &OsStr) -> anyhow::Result<PathBuf> {
    let found = host::find_program(name);
    let path = found.with_context(|| format!("there is no program {} in PATH", printable(name)))?;
    let shown = printable(&path);
    let metadata =
        std::fs::metadata(&path).with_context(|| format!("there is no program {shown}"))?;
    if !metadata.is_file() {
        bail!(
            "{shown} is not a program: it is {}",
            if metadata.is_dir() {
                "a directory"
            } else {
                "not a regular file"
            }
        );
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        bail!("{shown} is not executable: if it is a program, use chmod +x");
    }
    Ok(path)
}
