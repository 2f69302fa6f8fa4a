//! The processes that tests and benches start: [`command`] creates all of them, so that none
//! outlives its test.
//!
//! A program that a test creates and starts at once is written by another process. A thread of the
//! test itself must not have the file open for writing. A child that another thread starts at that
//! moment would inherit it until it executes its own program, and a file that is open for writing
//! cannot be executed (ETXTBSY, execve(2)).

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Maximum lifetime of a child: more than any test takes, also in the deep check.
const MAX_LIFETIME: Duration = Duration::from_mins(10);

/// Returns the command for a child that ends with its test. It is killed when the thread that
/// started it ends, also if the test's process is killed, and after ten minutes at the latest. It
/// stays in the process group of the test.
///
/// A grandchild is not bound. A shell that is to loop, for example, must be the child itself:
/// `exec` it.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    within(program, MAX_LIFETIME)
}

/// Returns the command for a child with a separate time limit.
fn within(program: impl AsRef<OsStr>, longest: Duration) -> Command {
    let mut command = Command::new(program);
    sys::process::bind_to_starter(&mut command, longest);
    command
}

/// Kills a child, if it has not ended yet, and waits for its end. If a signal ended it, removes its
/// trace from `/dev/shm`, by SPDK's naming: SPDK applications do not remove it themselves then.
pub fn end(child: &mut Child) {
    use std::os::unix::process::ExitStatusExt as _;
    // The child may have ended.
    let _ = child.kill();
    if !child.wait().is_ok_and(|status| status.signal().is_some()) {
        return;
    }
    let ending = format!("_trace.pid{}", child.id());
    for entry in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name().to_string_lossy().ends_with(&ending) {
            // Another process may have removed it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Copies a program to a file that all users may execute.
///
/// # Panics
/// If it cannot be copied.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let status = install().arg(from).arg(to).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{} cannot be copied to {}",
        from.display(),
        to.display()
    );
}

/// Writes a program with these bytes, which all users may execute.
///
/// # Panics
/// If it cannot be written.
#[track_caller]
pub fn write_program(to: impl AsRef<Path>, bytes: &[u8]) {
    let to = to.as_ref();
    let written = install()
        .arg("/dev/stdin")
        .arg(to)
        .stdin(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            if let Some(mut input) = child.stdin.take() {
                input.write_all(bytes)?;
            }
            child.wait()
        });
    assert!(
        written.is_ok_and(|status| status.success()),
        "{} cannot be written",
        to.display()
    );
}

fn install() -> Command {
    let mut install = command("install");
    install.arg("--mode=755");
    install
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
                        assert_eq!(command(&path).status().unwrap().code(), Some(7));
                        std::fs::remove_file(&path).unwrap();
                        copy_program("/bin/true", &path);
                        assert!(command(&path).status().unwrap().success());
                        std::fs::remove_file(&path).unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it_and_by_its_limit() {
        use std::os::unix::process::ExitStatusExt as _;
        let start = || {
            within("sleep", Duration::from_mins(10))
                .arg("1000")
                .spawn()
                .unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(9),
            "it was killed when the thread ended"
        );
        let mut child = within("sleep", Duration::from_secs(1))
            .arg("1000")
            .spawn()
            .unwrap();
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(14),
            "it was ended by its limit"
        );
    }
}
