//! The CPU for busy tests: the last one, since CPU 0 does the machine's own work.

use sys::sched::{allowed_cpus, run_on};

/// Returns the last CPU that the calling thread may use.
///
/// # Panics
/// If the kernel does not return these CPUs.
#[must_use]
pub fn last_cpu() -> usize {
    allowed().pop().unwrap_or_default()
}

/// Binds the calling thread, and all that it starts from now on, to the last CPU that it may use.
///
/// # Panics
/// If the kernel does not permit that.
pub fn stay_on_last_cpu() {
    bind(&[last_cpu()]);
}

/// Binds everything that `start` starts to the last CPU that the calling thread may use. The thread
/// itself may use all of its CPUs again afterwards.
///
/// # Panics
/// If the kernel does not permit that.
pub fn on_last_cpu<T>(start: impl FnOnce() -> T) -> T {
    let all = allowed();
    stay_on_last_cpu();
    let started = start();
    bind(&all);
    started
}

fn allowed() -> Vec<usize> {
    allowed_cpus().unwrap_or_else(|error| panic!("sched_getaffinity(2): {error}"))
}

fn bind(cpus: &[usize]) {
    run_on(cpus).unwrap_or_else(|error| panic!("sched_setaffinity(2), CPUs {cpus:?}: {error}"));
}
