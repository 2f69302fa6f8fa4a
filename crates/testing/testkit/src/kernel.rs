//! The right to run a test on the live kernel, or with a program that may not be here.
//!
//! A test that can't run says `SKIPPED (what): reason` and passes; with `DPTRACE_REQUIRE_KERNEL_TESTS=1`, as in CI, that is a
//! failure, unless it was skipped by [`skip_if_permitted`]. With `DPTRACE_NO_KERNEL_TESTS=1` none runs, also as root: `cargo xtask
//! check`.
//!
//! Tests of the live kernel run beside each other, in all test programs of this machine, but for those that count or probe the whole
//! machine and would see the others ([`may_run_alone`]): locks on one file keep these apart.
//!
//! `.ci/tests` names two files in which tests are noted: `DPTRACE_KERNEL_TESTS_LOG` for each one that may run, since no others are
//! repeated, and `DPTRACE_SKIPS_LOG` for each one that was skipped.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Says that a test did not run.
///
/// # Panics
/// If it had to.
#[track_caller]
pub fn skip(what: &str, reason: &str) {
    let required = std::env::var_os("DPTRACE_REQUIRE_KERNEL_TESTS").is_some_and(|value| value == "1");
    assert!(!required, "kernel tests are required, but: {reason}");
    skip_if_permitted(what, reason);
}

/// Says that a test, or a part of one, did not run, for a reason that some machines have by their nature: a kernel without kprobes,
/// for example. CI fails if `what` is not in `.ci/permitted-skips`.
pub fn skip_if_permitted(what: &str, reason: &str) {
    println!("SKIPPED ({what}): {reason}");
    append("DPTRACE_SKIPS_LOG", &format!("{what}: {reason}"));
}

/// The turn of a kernel test, which it keeps until it is over.
#[derive(Debug)]
#[must_use = "others may disturb the test once it is dropped"]
pub struct Turn {
    /// Closing it releases the lock, also if the test's process is killed.
    _lock: File,
}

/// Returns the turn of a test that bears other kernel tests beside it. None without root.
#[track_caller]
pub fn may_run(what: &str) -> Option<Turn> {
    is_permitted(what).then(|| turn(File::lock_shared))
}

/// Returns the turn of a test that counts, probes or judges the whole machine: no other kernel test runs meanwhile. None without
/// root.
#[track_caller]
pub fn may_run_alone(what: &str) -> Option<Turn> {
    is_permitted(what).then(alone)
}

/// Returns the turn of a test that runs without root, too, and would see what others do on the machine.
pub fn alone() -> Turn {
    turn(File::lock)
}

/// Returns whether a kernel test may run that bears all others, also those that look at the whole machine; says why not. A test may
/// ask several times.
#[track_caller]
pub fn is_permitted(what: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    if std::env::var_os("DPTRACE_NO_KERNEL_TESTS").is_some_and(|value| value == "1") {
        skip(what, "DPTRACE_NO_KERNEL_TESTS is set");
        return false;
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root {
        note();
    } else {
        skip(what, "not root");
    }
    is_root
}

/// Waits for the turn. Who waits holds the turnstile, so that a test that needs the machine for itself is not passed by others for
/// ever.
fn turn(lock: fn(&File) -> std::io::Result<()>) -> Turn {
    let _turnstile = locked(&lock_file("turnstile"), File::lock);
    Turn { _lock: locked(&lock_file("turn"), lock) }
}

/// The files are the machine's, not this clone's: the kernel is, too.
fn lock_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dptrace-kernel-tests.{name}"))
}

/// # Panics
/// If there can be no such lock.
fn locked(path: &Path, lock: fn(&File) -> std::io::Result<()>) -> File {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.and_then(|file| lock(&file).map(|()| file));
    file.unwrap_or_else(|error| panic!("locking {}: {error}", path.display()))
}

/// Notes the calling test: the name of its program's file, and its own name, which is that of its thread.
fn note() {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let thread = std::thread::current();
    append("DPTRACE_KERNEL_TESTS_LOG", &format!("{program} {}", thread.name().unwrap_or_default()));
}

/// Appends a line to the file that this variable names, if there is one.
///
/// # Panics
/// If it cannot be written.
fn append(variable: &str, line: &str) {
    let Some(path) = std::env::var_os(variable) else { return };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write, which several programs can make at the same time.
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("writing {}: {error}", Path::new(&path).display()));
}
