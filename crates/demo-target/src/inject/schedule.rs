//! The CPU and the priority of the calling thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPU for a reactor, as SPDK gives each lcore one: the next one of those that are allowed, from the first on again if
/// there are more lcores.
pub(crate) fn cpu_of(lcore: u32) -> Option<u32> {
    let set = sched_getaffinity(None).ok()?;
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    allowed.get(lcore as usize % allowed.len().max(1)).map(|cpu| *cpu as u32)
}

/// Has the calling thread run on that CPU only; says whether it is so now.
pub(crate) fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

/// Has the calling thread run before all threads of usual priority, if that is permitted; says how.
pub(crate) fn get_ahead() -> &'static str {
    if set_fifo() {
        return "SCHED_FIFO";
    }
    // Since Linux has a nice value for each thread, this is the thread's (`setpriority(2)`, "C library/kernel differences").
    if rustix::process::setpriority_process(None, -20).is_ok() { "nice -20" } else { "nice 0" }
}

/// The real-time class, at its lowest priority: enough to get ahead of all others.
#[expect(unsafe_code, reason = "rustix has no such call")]
fn set_fifo() -> bool {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the struct, which is there until the call returns. 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}
