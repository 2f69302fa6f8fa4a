//! Threads that want a CPU, and CPU time that hypervisors take.

use std::collections::HashMap;
use std::path::Path;

use crate::proc;
use crate::process::Pid;

/// The folder of all processes (proc(5)).
const PROC: &str = "/proc";

/// A running or runnable thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusyThread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name, of arbitrary bytes.
    pub name: Vec<u8>,
    /// CPU on which it is, or ran last (field 39 of proc_pid_stat(5)).
    pub cpu: u32,
    /// CPU time so far, in nanoseconds.
    pub ran: u64,
}

/// Returns the running and runnable threads of these processes, or of all.
pub fn busy_threads(pids: Option<&[u32]>) -> Vec<BusyThread> {
    let all = || proc::numbers(Path::new(PROC));
    let pids = pids.map_or_else(all, <[u32]>::to_vec);
    let threads = |pid: u32| {
        proc::threads(Pid(pid))
            .into_iter()
            .filter_map(move |tid| busy(pid, tid.0))
    };
    pids.into_iter().flat_map(threads).collect()
}

fn busy(pid: u32, tid: u32) -> Option<BusyThread> {
    let folder = proc::task(Pid(pid), Pid(tid));
    let stat = proc::Stat::read(&folder)
        .ok()
        .filter(|stat| stat.state() == Some('R'))?;
    let cpu = u32::try_from(stat.number(39)?).ok()?;
    Some(BusyThread {
        pid,
        tid,
        cpu,
        ran: proc::ran(&folder).unwrap_or(0),
        name: stat.name,
    })
}

/// Returns true if a thread runs at present, or could.
pub fn is_busy(tid: u32) -> bool {
    let stat = proc::Stat::read(&Path::new(PROC).join(tid.to_string()));
    stat.is_ok_and(|stat| stat.state() == Some('R'))
}

/// Scheduling of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduling {
    /// Id and name of its process.
    pub process: (u32, Vec<u8>),
    /// Policy (`SCHED_FIFO` is 1; field 41 of proc_pid_stat(5)).
    pub policy: u64,
    /// Priority of a real-time policy.
    pub priority: u64,
    /// Nice value, for other policies.
    pub nice: i64,
    /// Path of its control group, in the hierarchy that is listed last: that of the second version.
    pub cgroup: Option<String>,
    /// CPUs that it may run on, as the kernel lists them.
    pub affinity: Option<String>,
}

/// Returns the scheduling of a thread; `None` if it has exited.
pub fn scheduling(tid: u32) -> Option<Scheduling> {
    let folder = Path::new(PROC).join(tid.to_string());
    let stat = proc::Stat::read(&folder).ok()?;
    let pid = proc::process_of(Pid(tid)).ok()?;
    let groups = proc::text(folder.join("cgroup")).unwrap_or_default();
    let cgroup = groups
        .lines()
        .last()
        .and_then(|line| line.splitn(3, ':').nth(2))
        .map(str::to_owned);
    Some(Scheduling {
        process: (
            pid.0,
            proc::name(&Path::new(PROC).join(pid.to_string())).unwrap_or_default(),
        ),
        policy: stat.number(41)?,
        priority: stat.number(40)?,
        nice: nice(&folder).unwrap_or(0),
        cgroup,
        affinity: proc::status(&folder, "Cpus_allowed_list").ok()?,
    })
}

/// Parses field 19, the only one that may be negative.
fn nice(folder: &Path) -> Option<i64> {
    let text = proc::text(folder.join("stat")).ok()?;
    text.rsplit(')')
        .next()?
        .split_ascii_whitespace()
        .nth(16)?
        .parse()
        .ok()
}

/// Returns the time that a hypervisor took from each CPU, in hundredths of a second (`steal` of
/// proc_stat(5)).
pub fn stolen() -> HashMap<u32, u64> {
    let text = proc::text(Path::new(PROC).join("stat")).unwrap_or_default();
    let of = |line: &str| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((
            cpu.parse().ok()?,
            times.split_ascii_whitespace().nth(7)?.parse().ok()?,
        ))
    };
    text.lines().filter_map(of).collect()
}

/// Returns the CPUs that an interrupt is for, as the kernel lists them.
pub fn interrupt_affinity(number: u64) -> Option<String> {
    let path = Path::new(PROC)
        .join("irq")
        .join(number.to_string())
        .join("smp_affinity_list");
    proc::text(path).ok().map(|list| list.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_runs_and_is_scheduled() {
        let own = std::process::id();
        assert!(
            busy_threads(Some(&[own]))
                .iter()
                .any(|thread| thread.pid == own)
        );
        let scheduling = scheduling(own).unwrap();
        assert_eq!(scheduling.process.0, own);
        assert!((-20..20).contains(&scheduling.nice) && scheduling.affinity.is_some());
        assert!(!stolen().is_empty());
    }
}
