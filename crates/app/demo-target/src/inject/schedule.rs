//! The CPU and the priority of the calling thread, and how many files the process may open.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::options::Options;
use crate::reactor::REACTORS;

/// Real-time priority of a reactor while it is being delayed. Only the thread that preempts it has a higher one.
pub(crate) const REACTOR_PRIORITY: i32 = 1;

/// Longest time that a thread stays in the real-time class. What is bound to the CPU (workers, the RCU threads, agents of the
/// machine) waits as long.
pub(crate) const LONGEST_BURST: Duration = Duration::from_millis(5);

/// Delays take at most one part in this number of a CPU's time, if they are to run in the real-time class.
const BURST_SPACING: u32 = 10;

/// Where a reactor runs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) lcore: u32,
    /// As the kernel numbers it.
    pub(crate) tid: u32,
    pub(crate) cpu: Option<u32>,
    /// Permission of its delays to run in the real-time class.
    pub(crate) may_burst: bool,
}

impl Thread {
    /// Pins the calling thread, a reactor, to a CPU of its own.
    pub(crate) fn pin(lcore: u32, options: &Options) -> Self {
        let allowed = allowed_cpus();
        let cpu = cpu_of(lcore, &allowed).filter(|cpu| pin(*cpu));
        let every = every_on_a_cpu(options, &allowed);
        let may_burst = cpu.is_some_and(|cpu| may_burst(cpu, is_only_cpu(), options.inject_for, every));
        Self { lcore, tid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), cpu, may_burst }
    }
}

/// Returns whether delays of that length may run in the real-time class on that CPU. CPU 0 is left to the machine's own work,
/// if there is another CPU.
fn may_burst(cpu: u32, is_only_cpu: bool, length: Duration, every: Duration) -> bool {
    (cpu != 0 || is_only_cpu) && length <= LONGEST_BURST && length * BURST_SPACING <= every
}

/// Returns whether a helper of the delays may run in the real-time class, for microseconds: on each CPU that the calling thread may
/// run on.
pub(crate) fn helper_may_burst(options: &Options) -> bool {
    let allowed = allowed_cpus();
    let (is_only, every) = (is_only_cpu(), every_on_a_cpu(options, &allowed));
    allowed.iter().all(|cpu| may_burst(*cpu as u32, is_only, options.inject_for, every))
}

/// Returns the time between two delays on one CPU: reactors that share it take turns.
fn every_on_a_cpu(options: &Options, allowed: &[usize]) -> Duration {
    options.inject_every / REACTORS.div_ceil(allowed.len().max(1) as u32)
}

/// Returns whether CPU 0 is the only one that the machine has; false if it cannot be read.
fn is_only_cpu() -> bool {
    std::fs::read_to_string("/sys/devices/system/cpu/online").is_ok_and(|online| online.trim() == "0")
}

/// Returns the CPUs that the calling thread may run on.
fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Returns the CPU for a reactor: the last of those that are allowed for lcore 0, the one before it for lcore 1, and so on, from
/// the last on again if there are more lcores. So CPU 0 comes last.
fn cpu_of(lcore: u32, allowed: &[usize]) -> Option<u32> {
    allowed.iter().rev().nth(lcore as usize % allowed.len().max(1)).map(|cpu| *cpu as u32)
}

/// Has the calling thread run on that CPU only; says whether it is so now.
pub(crate) fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

/// Has the calling thread run before all threads of usual priority, if that is permitted: in the real-time class if it
/// `may_burst`. Returns how.
pub(crate) fn get_ahead(may_burst: bool) -> &'static str {
    if may_burst && set_fifo(REACTOR_PRIORITY + 1) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_short_and_rare_and_leave_cpu_0_alone() {
        let ms = Duration::from_millis;
        assert!(may_burst(1, false, ms(2), ms(50)) && may_burst(1, false, ms(5), ms(50)));
        assert!(!may_burst(0, false, ms(2), ms(50)), "CPU 0, and there is another one");
        assert!(may_burst(0, true, ms(2), ms(50)), "CPU 0, and there is no other one");
        assert!(!may_burst(1, false, ms(6), ms(600)), "longer than 5 ms");
        assert!(!may_burst(1, false, ms(2), ms(19)), "more than a tenth of the time");
    }

    #[test]
    fn reactors_come_to_cpu_0_last() {
        assert_eq!([0, 1, 2, 3].map(|lcore| cpu_of(lcore, &[0, 1, 3])), [Some(3), Some(1), Some(0), Some(3)]);
        assert_eq!(cpu_of(1, &[]), None);
    }
}
