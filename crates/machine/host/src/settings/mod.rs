//! How a machine is set up for CPUs on which threads poll: what the kernel says in /proc and /sys, as data. What that means is
//! for `cpus` to say.
//!
//! Each reader takes the folder in which /proc and /sys are, so that it can be tested on made trees.

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
pub use root::{Reading, Root, Unread, Why};
pub use threads::{Snapshot, Thread};

/// What was read of a machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel's release, `(6, 12)`; none if it is not known.
    pub release: Option<(u32, u32)>,
    /// What the kernel was started with.
    pub command_line: Reading<String>,
    /// The CPUs that are in use.
    pub online: CpuSet,
    /// The CPUs of `isolcpus=`.
    pub isolated: Reading<CpuSet>,
    /// The CPUs of `nohz_full=`; absent if the kernel was built without it.
    pub nohz_full: Reading<CpuSet>,
    /// The CPUs of isolated partitions of cgroup v2 (`cpuset.cpus.isolated`), which root may read.
    pub partitions: Reading<CpuSet>,
    /// Each CPU that is in use.
    pub cores: BTreeMap<u32, Core>,
    /// The interrupts of devices, by number.
    pub interrupts: Vec<Interrupt>,
    /// How often each interrupt came, at the begin and at the end of the window.
    pub counts: [Reading<Counts>; 2],
    /// The queues of network devices that have a mask of CPUs.
    pub queues: Reading<Vec<Queue>>,
    /// The CPUs of unbound workqueues.
    pub workqueues: Reading<CpuSet>,
    /// Microseconds that real-time threads may run in each period; -1 for no limit.
    pub rt_runtime: Reading<i64>,
    /// That period, in microseconds.
    pub rt_period: Reading<i64>,
    /// Nanoseconds of each second that a CPU's fair server gives to ordinary threads, by CPU. Since Linux 6.12; for root.
    pub fair_servers: Reading<BTreeMap<u32, u64>>,
    /// Seconds between two updates of the statistics of memory.
    pub stat_interval: Reading<i64>,
    /// Whether a watchdog runs.
    pub watchdog: Reading<i64>,
    /// Whether the one that uses NMIs runs.
    pub nmi_watchdog: Reading<i64>,
    /// The CPUs that the watchdogs are on.
    pub watchdog_cpus: Reading<CpuSet>,
    /// Who gets transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Reading<String>,
    /// Where the kernel's time comes from.
    pub clock: Clock,
    /// The number of NUMA nodes.
    pub nodes: usize,
    /// All threads, as far as they were read.
    pub threads: Vec<Thread>,
    /// The number of threads that were not read, because there are too many.
    pub threads_left_out: usize,
    /// Nanoseconds between the two snapshots of the threads.
    pub window: u64,
    /// The processes that were asked for.
    pub processes: Vec<Placement>,
}

impl Facts {
    /// Reads a machine, `window` nanoseconds after the snapshot was taken; of these processes more than of others.
    pub fn read(root: &Root, before: &Snapshot, window: u64, pids: &[u32]) -> Self {
        let counts = root.text("/proc/interrupts").map(|text| Counts::parse(&text));
        let (threads, threads_left_out) = threads::read(root, before);
        let online = root.list("/sys/devices/system/cpu/online").unwrap_or_default();
        let cores: BTreeMap<u32, Core> = online.iter().map(|cpu| (cpu, Core::read(root, cpu))).collect();
        let listed_nodes = root.list("/sys/devices/system/node/online").map_or(1, |nodes| nodes.len());
        Self {
            release: root.text("/proc/sys/kernel/osrelease").ok().and_then(|text| crate::system::version(&text)),
            command_line: root.text("/proc/cmdline").map(|text| text.trim().to_owned()),
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
            huge_pages: root.text("/sys/kernel/mm/transparent_hugepage/enabled").map(|text| chosen(&text)),
            clock: Clock::read(root),
            nodes: listed_nodes,
            processes: pids.iter().map(|&pid| Placement::read(root, pid, listed_nodes)).collect(),
            counts: [before.counts.clone(), counts],
            threads,
            threads_left_out,
            window,
            online,
            cores,
        }
    }
}

/// The word in brackets of those that can be chosen; all of the text if none is.
fn chosen(text: &str) -> String {
    crate::system::chosen(text).unwrap_or_else(|| text.trim().to_owned())
}
