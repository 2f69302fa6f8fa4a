//! Setup of a machine for CPUs on which threads poll: the contents of /proc and /sys, as data.
//! `cpus` says what they mean.
//!
//! Each reader takes the folder that holds /proc and /sys, so that it can be tested on made trees.

mod cpus;
mod devices;
mod process;
mod root;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeMap;

use kernel_text::cpus::CpuSet;
use kernel_text::interrupts::Counts;

pub use cpus::{Clock, Core, IdleState};
pub use devices::{Interrupt, Queue};
pub use process::{Group, Placement};
pub use root::{Reading, Root, UnreadFile, UnreadReason};
pub use threads::{Snapshot, Thread};

/// Facts that were read of a machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Kernel release, `(6, 12)`; `None` if unknown.
    pub release: Option<(u32, u32)>,
    /// Kernel command line.
    pub command_line: Reading<String>,
    /// CPUs that are in use.
    pub online: CpuSet,
    /// CPUs of `isolcpus=`.
    pub isolated: Reading<CpuSet>,
    /// CPUs of `nohz_full=`; absent if the kernel was built without it.
    pub nohz_full: Reading<CpuSet>,
    /// CPUs of isolated partitions of cgroup v2 (`cpuset.cpus.isolated`), which root may read.
    pub partitions: Reading<CpuSet>,
    /// Each CPU that is in use.
    pub cores: BTreeMap<u32, Core>,
    /// Interrupts of devices, by number.
    pub interrupts: Vec<Interrupt>,
    /// Counts of each interrupt, at the beginning and at the end of the window.
    pub counts: [Reading<Counts>; 2],
    /// Queues of network devices that have a mask of CPUs.
    pub queues: Reading<Vec<Queue>>,
    /// CPUs of unbound workqueues.
    pub workqueues: Reading<CpuSet>,
    /// Microseconds that real-time threads may run in each period; -1 for no limit.
    pub rt_runtime: Reading<i64>,
    /// Length of that period, in microseconds.
    pub rt_period: Reading<i64>,
    /// Nanoseconds of each second that a CPU's fair server gives to ordinary threads, by CPU. Since Linux 6.12; for root.
    pub fair_servers: Reading<BTreeMap<u32, u64>>,
    /// Seconds between two updates of the statistics of memory.
    pub stat_interval: Reading<i64>,
    /// 1 if a watchdog runs, else 0.
    pub watchdog: Reading<i64>,
    /// 1 if the watchdog that uses NMIs runs, else 0.
    pub nmi_watchdog: Reading<i64>,
    /// CPUs that the watchdogs are on.
    pub watchdog_cpus: Reading<CpuSet>,
    /// Users of transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Reading<String>,
    /// Source of the kernel's time.
    pub clock: Clock,
    /// Number of NUMA nodes.
    pub nodes: usize,
    /// All threads, as far as they were read.
    pub threads: Vec<Thread>,
    /// Number of threads that were not read, because there are too many.
    pub threads_left_out: usize,
    /// Nanoseconds between the two snapshots of the threads.
    pub window: u64,
    /// Placement of the queried processes.
    pub processes: Vec<Placement>,
}

impl Facts {
    /// Reads a machine, `window` nanoseconds after the snapshot was taken, with more of these
    /// processes than of others.
    pub fn read(root: &Root, before: &Snapshot, window: u64, pids: &[u32]) -> Self {
        let counts = root
            .text("/proc/interrupts")
            .map(|text| Counts::parse(&text));
        let (threads, threads_left_out) = threads::read(root, before);
        let online = root
            .list("/sys/devices/system/cpu/online")
            .unwrap_or_default();
        let cores: BTreeMap<u32, Core> = online
            .iter()
            .map(|cpu| (cpu, Core::read(root, cpu)))
            .collect();
        let listed_nodes = root
            .list("/sys/devices/system/node/online")
            .map_or(1, |nodes| nodes.len());
        Self {
            release: root
                .text("/proc/sys/kernel/osrelease")
                .ok()
                .and_then(|text| crate::system::version(&text)),
            command_line: root
                .text("/proc/cmdline")
                .map(|text| text.trim().to_owned()),
            isolated: root.list("/sys/devices/system/cpu/isolated"),
            nohz_full: root.list("/sys/devices/system/cpu/nohz_full"),
            partitions: root.list("/sys/fs/cgroup/cpuset.cpus.isolated"),
            interrupts: devices::interrupts(root, counts.as_ref().ok()),
            queues: devices::queues(root),
            workqueues: root.mask("/sys/devices/virtual/workqueue/cpumask"),
            rt_runtime: root.number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period: root.number("/proc/sys/kernel/sched_rt_period_us"),
            fair_servers: cpus::fair_servers(root, &online),
            stat_interval: root.number("/proc/sys/vm/stat_interval"),
            watchdog: root.number("/proc/sys/kernel/watchdog"),
            nmi_watchdog: root.number("/proc/sys/kernel/nmi_watchdog"),
            watchdog_cpus: root.list("/proc/sys/kernel/watchdog_cpumask"),
            huge_pages: root
                .text("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|text| chosen(&text)),
            clock: Clock::read(root),
            nodes: listed_nodes,
            processes: pids
                .iter()
                .map(|&pid| Placement::read(root, pid, listed_nodes))
                .collect(),
            counts: [before.counts.clone(), counts],
            threads,
            threads_left_out,
            window,
            online,
            cores,
        }
    }
}

/// Returns the chosen word, which is in brackets; all of the text if none is.
fn chosen(text: &str) -> String {
    crate::system::chosen(text).unwrap_or_else(|| text.trim().to_owned())
}
