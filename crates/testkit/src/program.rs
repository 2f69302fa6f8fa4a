//! Programs that a test makes and starts at once.
//!
//! No thread of the test itself has such a file open for writing: a child that another thread starts at that moment would have it
//! open, too, until it executes its own program, and a file that is open for writing cannot be executed (ETXTBSY, execve(2)).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program to a file that all users may execute.
///
/// # Panics
/// If it cannot be copied.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let status = install().arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be copied to {}", from.display(), to.display());
}

/// Writes a program of these bytes, which all users may execute.
///
/// # Panics
/// If it cannot be written.
#[track_caller]
pub fn write_program(to: impl AsRef<Path>, bytes: &[u8]) {
    let to = to.as_ref();
    let written = install().arg("/dev/stdin").arg(to).stdin(Stdio::piped()).spawn().and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            input.write_all(bytes)?;
        }
        child.wait()
    });
    assert!(written.is_ok_and(|status| status.success()), "{} cannot be written", to.display());
}

fn install() -> Command {
    let mut command = Command::new("install");
    command.arg("--mode=755");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_can_be_started_while_other_threads_start_theirs() {
        let path = std::env::temp_dir().join(format!("testkit-program-{}", std::process::id()));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = path.with_extension(thread.to_string());
                scope.spawn(move || {
                    for _ in 0..10 {
                        write_program(&path, b"#!/bin/sh\nexit 7\n");
                        assert_eq!(Command::new(&path).status().unwrap().code(), Some(7));
                        std::fs::remove_file(&path).unwrap();
                        copy_program("/bin/true", &path);
                        assert!(Command::new(&path).status().unwrap().success());
                        std::fs::remove_file(&path).unwrap();
                    }
                });
            }
        });
    }
}
