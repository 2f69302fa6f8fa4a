//! The machine and its setup, as far as they decide how long a thread waits: texts as the kernel
//! has them.

use std::path::Path;

use crate::proc;

/// The folder of the CPUs (Documentation/admin-guide/cputopology.rst).
const CPUS: &str = "/sys/devices/system/cpu";

/// Returns the machine's name.
pub fn hostname() -> Option<String> {
    line("/proc/sys/kernel/hostname")
}

/// Returns the kernel's command line.
pub fn kernel_command_line() -> Option<String> {
    line("/proc/cmdline")
}

/// Returns the source of the kernel's clock: `tsc` if ticks and nanoseconds are of the same
/// counter.
pub fn clock_source() -> Option<String> {
    line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Returns a list of CPUs as the kernel prints it, `0-3,8`: `online`, `isolated` (`isolcpus=`) or
/// `nohz_full`. Empty if there are none.
pub fn cpu_list(which: &str) -> Option<String> {
    line(Path::new(CPUS).join(which)).map(|list| {
        if list == "(null)" {
            String::new()
        } else {
            list
        }
    })
}

/// Returns the frequency governors in use, each once; empty if the machine does not change its
/// frequency, like most virtual ones.
pub fn governors() -> Vec<String> {
    let cpu =
        |number: u32| line(Path::new(CPUS).join(format!("cpu{number}/cpufreq/scaling_governor")));
    let mut all: Vec<String> = crate::cpus::online().into_iter().filter_map(cpu).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Scheduling of a thread; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// CPUs on which it may run, as the kernel lists them; empty if unknown.
    pub affinity: String,
    /// Policy, by its name in sched(7).
    pub policy: &'static str,
    /// Priority of a real-time policy, from 1; 0 otherwise.
    pub priority: u32,
}

/// Returns the scheduling of a thread, by its folder.
pub fn scheduling(task: &Path) -> Option<Scheduling> {
    scheduling_of(&proc::Stat::read(task).ok()?, task)
}

/// Returns the same, from a `stat` that was read.
pub(crate) fn scheduling_of(stat: &proc::Stat, task: &Path) -> Option<Scheduling> {
    let affinity = proc::status(task, "Cpus_allowed_list")
        .ok()
        .flatten()
        .unwrap_or_default();
    let priority = u32::try_from(stat.number(RT_PRIORITY)?).ok()?;
    Some(Scheduling {
        affinity,
        policy: policy(stat.number(POLICY)?),
        priority,
    })
}

/// Field of the real-time priority in `/proc/PID/stat` (proc_pid_stat(5)).
const RT_PRIORITY: usize = 40;
/// Field of the policy in `/proc/PID/stat` (proc_pid_stat(5)).
const POLICY: usize = 41;

/// Returns the name of a policy (`include/uapi/linux/sched.h`).
fn policy(number: u64) -> &'static str {
    match number {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        _ => "unknown",
    }
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    Some(proc::text(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        assert!(hostname().is_some_and(|name| !name.is_empty()));
        assert!(cpu_list("online").is_some_and(|list| list.starts_with('0')));
        assert_eq!(cpu_list("no such list"), None);
        let own = scheduling(&proc::own_folder()).unwrap();
        assert!(
            !own.affinity.is_empty() && own.policy.starts_with("SCHED_"),
            "{own:?}"
        );
    }
}
