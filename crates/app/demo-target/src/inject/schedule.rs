//! The CPU and the priority of the calling thread, and the process's limit on open files.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::options::Options;
use crate::reactor::REACTORS;

/// Real-time priority of a reactor while it is being delayed. Only the thread that preempts it has
/// a higher one.
pub(crate) const REACTOR_PRIORITY: i32 = 1;

/// Limit on the time of a thread in the real-time class. Threads bound to the CPU (workers, the RCU
/// threads, agents of the machine) wait as long.
pub(crate) const MAX_BURST: Duration = Duration::from_millis(5);

/// Minimum ratio of the interval to the length of delays on a CPU, for them to run in the real-time
/// class.
const BURST_SPACING: u32 = 10;

/// Thread and CPU of a reactor.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) lcore: u32,
    /// Thread id in the kernel.
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
        let may_burst =
            cpu.is_some_and(|cpu| may_burst(cpu, is_only_cpu(), options.inject_for, every));
        Self {
            lcore,
            tid: rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .cast_unsigned(),
            cpu,
            may_burst,
        }
    }
}

/// Returns true if delays of this length may run in the real-time class on this CPU. CPU 0 is left
/// to the machine's own work, if there is another CPU.
fn may_burst(cpu: u32, is_only_cpu: bool, length: Duration, every: Duration) -> bool {
    (cpu != 0 || is_only_cpu) && length <= MAX_BURST && length * BURST_SPACING <= every
}

/// CPUs and permission of a helper that must not wait for a reactor's delay to end.
pub(crate) struct HelperPlace {
    cpus: Vec<usize>,
    /// Permission to run in the real-time class, for microseconds.
    may_burst: bool,
}

impl HelperPlace {
    /// Chooses CPUs of the calling thread on which no reactor is delayed in the real-time class: a
    /// helper of usual priority would wait there for the end of the delay that it is to make. If
    /// there is no such CPU, the helper may run in that class, too.
    pub(crate) fn choose(options: &Options) -> Self {
        let allowed = allowed_cpus();
        let (is_only, every) = (is_only_cpu(), every_on_a_cpu(options, &allowed));
        Self::among(&allowed, |cpu| {
            may_burst(cpu, is_only, options.inject_for, every)
        })
    }

    fn among(allowed: &[usize], may_burst: impl Fn(u32) -> bool) -> Self {
        let is_shielded = |cpu: u32| {
            may_burst(cpu) && (0..REACTORS).any(|lcore| cpu_of(lcore, allowed) == Some(cpu))
        };
        let unshielded = allowed
            .iter()
            .copied()
            .filter(|cpu| !is_shielded(*cpu as u32));
        let mut cpus: Vec<usize> = unshielded.collect();
        if cpus.is_empty() {
            cpus = allowed.to_vec();
        }
        let may_burst = cpus.iter().all(|cpu| may_burst(*cpu as u32));
        Self { cpus, may_burst }
    }

    /// Moves the calling thread there, ahead of all threads of usual priority, if that is
    /// permitted. Makes only system calls.
    pub(crate) fn take(&self) {
        let mut set = CpuSet::new();
        for cpu in &self.cpus {
            set.set(*cpu);
        }
        let _ = sched_setaffinity(None, &set);
        get_ahead(self.may_burst);
    }
}

/// Returns the time between two delays on one CPU: reactors that share it take turns.
fn every_on_a_cpu(options: &Options, allowed: &[usize]) -> Duration {
    options.inject_every / REACTORS.div_ceil(allowed.len().max(1) as u32)
}

/// Returns true if CPU 0 is the machine's only one; false if that cannot be read.
fn is_only_cpu() -> bool {
    std::fs::read_to_string("/sys/devices/system/cpu/online")
        .is_ok_and(|online| online.trim() == "0")
}

/// Returns the CPUs on which the calling thread may run.
fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

/// Returns the CPU for a reactor: the last allowed one for lcore 0, the one before it for lcore 1,
/// and so on, again from the last on if there are more lcores. So CPU 0 comes last.
fn cpu_of(lcore: u32, allowed: &[usize]) -> Option<u32> {
    allowed
        .iter()
        .rev()
        .nth(lcore as usize % allowed.len().max(1))
        .map(|cpu| *cpu as u32)
}

/// Pins the calling thread to this CPU. Returns true on success.
pub(crate) fn pin(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

/// Moves the calling thread ahead of all threads of usual priority, if that is permitted: into the
/// real-time class if it `may_burst`. Returns the resulting priority.
pub(crate) fn get_ahead(may_burst: bool) -> &'static str {
    if may_burst && set_fifo(REACTOR_PRIORITY + 1) {
        return "SCHED_FIFO";
    }
    // Linux has a nice value for each thread, so this is the thread's (`setpriority(2)`, "C
    // library/kernel differences").
    if rustix::process::setpriority_process(None, -20).is_ok() {
        "nice -20"
    } else {
        "nice 0"
    }
}

/// Moves the calling thread to the real-time class, if that is permitted. Returns true on success.
#[expect(unsafe_code, reason = "rustix has no such call")]
pub(crate) fn set_fifo(priority: i32) -> bool {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads the struct, which is there until the call returns. 0 is the calling
    // thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

/// Returns the calling thread to the usual class, with its former nice value.
#[expect(unsafe_code, reason = "rustix has no such call")]
pub(crate) fn set_usual() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. It is always permitted.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) };
}

/// Raises the soft limit of open files: some shells have 256.
pub(crate) fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    // If it is not enough, opening files fails.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_short_and_rare_and_leave_cpu_0_alone() {
        let ms = Duration::from_millis;
        assert!(may_burst(1, false, ms(2), ms(50)) && may_burst(1, false, ms(5), ms(50)));
        assert!(
            !may_burst(0, false, ms(2), ms(50)),
            "CPU 0, and there is another one"
        );
        assert!(
            may_burst(0, true, ms(2), ms(50)),
            "CPU 0, and there is no other one"
        );
        assert!(!may_burst(1, false, ms(6), ms(600)), "longer than 5 ms");
        assert!(
            !may_burst(1, false, ms(2), ms(19)),
            "more than a tenth of the time"
        );
    }

    #[test]
    fn a_helper_does_not_wait_behind_a_reactor_in_the_real_time_class() {
        let place = |allowed: &[usize]| {
            let place = HelperPlace::among(allowed, |cpu| cpu != 0);
            (place.cpus, place.may_burst)
        };
        assert_eq!(place(&[0, 1]), (vec![0], false));
        assert_eq!(place(&[0, 1, 2, 3]), (vec![0, 1], false));
        assert_eq!(place(&[1, 2, 3]), (vec![1], true));
        assert_eq!(place(&[1]), (vec![1], true), "no other CPU");
        let calm = HelperPlace::among(&[0, 1], |_| false);
        assert_eq!((calm.cpus, calm.may_burst), (vec![0, 1], false));
    }

    #[test]
    fn reactors_come_to_cpu_0_last() {
        assert_eq!(
            [0, 1, 2, 3].map(|lcore| cpu_of(lcore, &[0, 1, 3])),
            [Some(3), Some(1), Some(0), Some(3)]
        );
        assert_eq!(cpu_of(1, &[]), None);
    }
}
