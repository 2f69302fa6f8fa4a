//! The right to run a test on the live kernel, or with a program that may not be here.
//!
//! A test that can't run says `SKIPPED (what): reason` and passes; with `DPTRACE_REQUIRE_KERNEL_TESTS=1`, as in CI, that is a
//! failure. With `DPTRACE_NO_KERNEL_TESTS=1` none runs, also as root: `cargo xtask check`.
//!
//! Each test that may run is noted in the file that `DPTRACE_KERNEL_TESTS_LOG` names, if it names one: `.ci/run` repeats no other
//! tests than these.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Says that a test did not run.
///
/// # Panics
/// If it had to.
#[track_caller]
pub fn skip(what: &str, reason: &str) {
    let required = std::env::var_os("DPTRACE_REQUIRE_KERNEL_TESTS").is_some_and(|value| value == "1");
    assert!(!required, "kernel tests are required, but: {reason}");
    println!("SKIPPED ({what}): {reason}");
}

/// The turn of a kernel test, of which one of a test program runs at a time: programs that meet on a CPU may be passed over
/// by the kernel. Nothing without root.
#[track_caller]
pub fn may_run(what: &str) -> Option<MutexGuard<'static, ()>> {
    use std::os::unix::fs::MetadataExt as _;
    if std::env::var_os("DPTRACE_NO_KERNEL_TESTS").is_some_and(|value| value == "1") {
        skip(what, "DPTRACE_NO_KERNEL_TESTS is set");
        return None;
    }
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        note();
        return Some(guard);
    }
    skip(what, "not root");
    None
}

/// Notes the calling test: the name of its program's file, a blank, and its own name, which is that of its thread.
///
/// # Panics
/// If it cannot be noted.
fn note() {
    let Some(path) = std::env::var_os("DPTRACE_KERNEL_TESTS_LOG") else { return };
    let program = std::env::current_exe().unwrap_or_else(|error| panic!("looking for the program of a test: {error}"));
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let thread = std::thread::current();
    let line = format!("{program} {}\n", thread.name().unwrap_or_default());
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // One write, which several programs can make at the same time.
    let noted = file.and_then(|mut file| file.write_all(line.as_bytes()));
    noted.unwrap_or_else(|error| panic!("noting a kernel test: {error}"));
}
