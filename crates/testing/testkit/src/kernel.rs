//! Permission to run a test on the live kernel, or with a program that may be missing.
//!
//! A test that can't run prints `SKIPPED (what): reason` and passes. With
//! `DPTRACE_REQUIRE_KERNEL_TESTS=1`, as in CI, that is a failure, unless it was skipped by
//! [`skip_if_permitted`]. With `DPTRACE_NO_KERNEL_TESTS=1` none runs, not even as root:
//! `cargo xtask check`.
//!
//! Tests of the live kernel run in parallel, across all test programs of this machine. Those that
//! count or probe the whole machine and would see the others run alone ([`may_run_alone`]): locks
//! on one file keep these apart.
//!
//! `.ci/tests` sets two files as logs of tests: `DPTRACE_KERNEL_TESTS_LOG` for each one that may
//! run, since only these are repeated, and `DPTRACE_SKIPS_LOG` for each one that was skipped.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Reports that a test did not run.
///
/// # Panics
/// If kernel tests are required.
#[track_caller]
pub fn skip(what: &str, reason: &str) {
    let required =
        std::env::var_os("DPTRACE_REQUIRE_KERNEL_TESTS").is_some_and(|value| value == "1");
    assert!(!required, "kernel tests are required, but: {reason}");
    skip_if_permitted(what, reason);
}

/// Reports that a test, or a part of one, did not run for a reason inherent to some machines: a
/// kernel without kprobes, for example. CI fails if `what` is not in `.ci/permitted-skips`.
pub fn skip_if_permitted(what: &str, reason: &str) {
    println!("SKIPPED ({what}): {reason}");
    append("DPTRACE_SKIPS_LOG", &format!("{what}: {reason}"));
}

/// The turn of a kernel test, which the test holds until its end.
#[derive(Debug)]
#[must_use = "others may disturb the test once it is dropped"]
pub struct Turn {
    /// Closing it releases the lock, also if the test's process is killed.
    _lock: File,
}

/// Returns the turn of a test that tolerates parallel kernel tests. `None` without root.
#[track_caller]
pub fn may_run(what: &str) -> Option<Turn> {
    is_permitted(what).then(|| turn(File::lock_shared))
}

/// Returns the turn of a test that counts, probes or judges the whole machine: no other kernel test
/// runs meanwhile. `None` without root.
#[track_caller]
pub fn may_run_alone(what: &str) -> Option<Turn> {
    is_permitted(what).then(alone)
}

/// Returns the turn of a test that also runs without root, and would see the effects of other
/// tests.
pub fn alone() -> Turn {
    turn(File::lock)
}

/// Returns whether a kernel test may run in parallel with all others, including those that look at
/// the whole machine; reports the reason if not. A test may call this several times.
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

/// Waits for the turn. A waiting test holds the turnstile, so that others can't forever overtake
/// one that needs the machine for itself.
fn turn(lock: fn(&File) -> std::io::Result<()>) -> Turn {
    let _turnstile = locked(&lock_file("turnstile"), File::lock);
    Turn {
        _lock: locked(&lock_file("turn"), lock),
    }
}

/// Returns the path of a lock file, which is shared by all clones on the machine, like the kernel.
fn lock_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dptrace-kernel-tests.{name}"))
}

/// # Panics
/// If the file can't be locked.
fn locked(path: &Path, lock: fn(&File) -> std::io::Result<()>) -> File {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.and_then(|file| lock(&file).map(|()| file));
    file.unwrap_or_else(|error| panic!("locking {}: {error}", path.display()))
}

/// Logs the calling test: the file name of its program, and its own name, which is that of its
/// thread.
fn note() {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let thread = std::thread::current();
    append(
        "DPTRACE_KERNEL_TESTS_LOG",
        &format!("{program} {}", thread.name().unwrap_or_default()),
    );
}

/// Appends a line to the file named by this environment variable, if it is set.
///
/// # Panics
/// If it cannot be written.
fn append(variable: &str, line: &str) {
    let Some(path) = std::env::var_os(variable) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // A single write, so that several programs can append at the same time.
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("writing {}: {error}", Path::new(&path).display()));
}
