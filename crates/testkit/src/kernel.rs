//! The right to run a test on the live kernel.

use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Lets one kernel test of a test program run at a time: programs that meet on a CPU may be passed over by the kernel. Where
/// there is no root, it says that `what` was skipped; where `DPTRACE_REQUIRE_KERNEL_TESTS` is 1, that is a failure.
///
/// # Panics
/// As just said.
pub fn may_run(what: &str) -> Option<MutexGuard<'static, ()>> {
    use std::os::unix::fs::MetadataExt as _;
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return Some(guard);
    }
    let required = std::env::var_os("DPTRACE_REQUIRE_KERNEL_TESTS").is_some_and(|value| value == "1");
    assert!(!required, "kernel tests are required, but {what} needs root");
    println!("SKIPPED (kernel): {what} needs root");
    None
}
