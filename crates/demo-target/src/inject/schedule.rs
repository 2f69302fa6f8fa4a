//! The CPU and the priority of the calling thread, and how many files the process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A reactor's real-time priority while it is being delayed. Nobody else's matters: there is at most one such thread on a CPU,
/// but for the one that preempts it.
pub(crate) const REACTOR_PRIORITY: i32 = 1;

/// Where a reactor runs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) lcore: u32,
    /// As the kernel numbers it.
    pub(crate) tid: u32,
    pub(crate) cpu: Option<u32>,
}

impl Thread {
    /// Pins the calling thread, a reactor, to a CPU of its own.
    pub(crate) fn pin(lcore: u32) -> Self {
        let cpu = cpu_of(lcore).filter(|cpu| pin(*cpu));
        Self { lcore, tid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), cpu }
    }
}

/// The CPU for a reactor, as SPDK gives each lcore one: the next one of those that are allowed, from the first on again if
/// there are more lcores.
fn cpu_of(lcore: u32) -> Option<u32> {
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
    if set_fifo(REACTOR_PRIORITY + 1) {
        return "SCHED_FIFO";
    }
    // Since Linux has a nice value for each thread, this is the thread's (`setpriority(2)`, "C library/kernel differences").
    if rustix::process::setpriority_process(None, -20).is_ok() { "nice -20" } else { "nice 0" }
}

/// Has the calling thread run in the real-time class, if that is permitted; says whether it does.
#[expect(unsafe_code, reason = "rustix has no such call")]
pub(crate) fn set_fifo(priority: i32) -> bool {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the struct, which is there until the call returns. 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

/// Has the calling thread run in the usual class again; its nice value is what it was.
#[expect(unsafe_code, reason = "rustix has no such call")]
pub(crate) fn set_usual() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. It is always permitted.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) };
}

/// Raises the soft limit of open files: some shells have 256.
pub(crate) fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    // Whether it is enough is seen when files are opened.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
