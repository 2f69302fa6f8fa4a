//! The process, and its polling threads.

use errors::usage;
use host::control::{ListeningSocket, listening};
use host::proc::{name, task, threads};
use host::{Pid, cpus};
use observer::Observer;
use ordering::Order as _;
use text::printable;

/// Prefixes of lcore threads: DPDK since 23.11, since 20.11, and before.
const LCORES: [&str; 4] = [
    "dpdk-worker",
    "rte-worker-",
    "lcore-worker-",
    "lcore-slave-",
];

/// Process with polling threads.
pub struct Subject {
    pub(crate) pid: u32,
    /// Polling threads, sorted by name.
    pub(crate) threads: Vec<PollThread>,
    /// Sockets at which the process listens.
    pub(crate) sockets: Vec<ListeningSocket>,
}

/// Polling thread.
#[derive(Clone, Debug)]
pub(crate) struct PollThread {
    pub(crate) tid: u32,
    /// Displayed name: `pmd-c01`.
    pub(crate) name: String,
    /// Number of its CPU in the texts of Open vSwitch; `None` for other programs' threads.
    pub(crate) core: Option<u32>,
    /// CPU to which it is pinned, if exactly one.
    pub(crate) cpu: Option<usize>,
}

impl Subject {
    /// Finds the polling threads of a process. Returns an error if there are none.
    pub fn from_pid(pid: u32) -> anyhow::Result<Self> {
        let mut found: Vec<PollThread> = threads(Pid(pid))
            .into_iter()
            .filter_map(|tid| poll_thread(pid, tid))
            .collect();
        found.order_by(|one, other| one.name.cmp(&other.name));
        if found.is_empty() {
            return Err(usage(format!(
                "process {pid} has no PMD threads and no lcores: Open vSwitch has them with \
                 datapath_type=netdev and a polled port (type dpdk, afxdp); for other processes: \
                 dptrace kernel-delay -p {pid}"
            )));
        }
        let sockets = listening(Pid(pid)).unwrap_or_default();
        Ok(Self {
            pid,
            threads: found,
            sockets,
        })
    }

    /// Keeps the calling thread, and those that it starts, off the CPUs of polling threads, whose
    /// time it would take. Other CPUs reserved for the process may be used, such as that of Open
    /// vSwitch's main thread.
    pub fn keep_off(&self, observer: &Observer) {
        let Ok(ours) = sys::sched::allowed_cpus() else {
            return;
        };
        let polled = |cpu: &usize| self.threads.iter().any(|thread| thread.cpu == Some(*cpu));
        let others: Vec<usize> = ours.into_iter().filter(|cpu| !polled(cpu)).collect();
        if others.is_empty() || sys::sched::run_on(&others).is_err() {
            observer.note(
                "dptrace itself may run on the CPUs of these threads, because there is no other \
                 CPU: it takes some of their time",
            );
        }
    }
}

/// Returns true if a thread of the process polls.
pub fn polls(pid: u32) -> bool {
    threads(Pid(pid))
        .into_iter()
        .any(|tid| poll_thread(pid, tid).is_some())
}

/// Returns the thread if it polls.
fn poll_thread(pid: u32, tid: Pid) -> Option<PollThread> {
    let folder = task(Pid(pid), tid);
    let comm = name(&folder)?;
    let shown = printable::text(&comm);
    let core = core_of(&shown);
    if core.is_none() && !LCORES.iter().any(|lcore| shown.starts_with(lcore)) {
        return None;
    }
    let allowed = cpus::allowed(&folder).unwrap_or_default();
    let cpu = allowed.first().copied().filter(|_| allowed.len() == 1);
    let name = if core.is_some() {
        shown.split('/').next().unwrap_or(&shown).to_owned()
    } else {
        shown.into_owned()
    };
    Some(PollThread {
        tid: tid.0,
        name,
        core,
        cpu,
    })
}

/// Returns the CPU in the name of a PMD thread: `pmd-c01/id:8` (`pmd_thread_name` in
/// `lib/dpif-netdev.c`).
fn core_of(name: &str) -> Option<u32> {
    name.strip_prefix("pmd-c")?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_cores() {
        assert_eq!(core_of("pmd-c01/id:8"), Some(1));
        assert_eq!(core_of("pmd-c127/id:130"), Some(127));
        assert_eq!(core_of("pmd-cx"), None);
        assert_eq!(core_of("revalidator7"), None);
    }
}
