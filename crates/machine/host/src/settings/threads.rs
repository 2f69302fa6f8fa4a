//! All threads of the machine: the CPUs that they may run on, and the time that they ran in a
//! window.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use kernel_text::cpus::CpuSet;
use kernel_text::interrupts::Counts;

use super::root::{Reading, Root};
use crate::machine;
use crate::proc::{self, Stat};

/// Limit on threads that are read. One takes some 30 us.
const MAX_THREADS: usize = 20_000;
/// Flag of a thread whose affinity can't be changed from outside (`PF_NO_SETAFFINITY` of
/// `include/linux/sched.h`), in field 9 of `stat` (proc_pid_stat(5)).
const FIXED: u64 = 0x0400_0000;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name, of arbitrary bytes.
    pub name: Vec<u8>,
    /// True for a kernel thread.
    pub is_kernel: bool,
    /// True if its affinity can't be changed.
    pub is_fixed: bool,
    /// Policy, by its name in sched(7).
    pub policy: &'static str,
    /// Priority of a real-time policy, from 1; 0 otherwise.
    pub priority: u32,
    /// CPUs on which it may run.
    pub allowed: CpuSet,
    /// CPU on which it ran last.
    pub cpu: u32,
    /// Nanoseconds that it ran in the window; `None` if it is newer than the window's beginning.
    pub ran: Option<u64>,
}

/// Counters at the beginning of a window.
#[derive(Clone, Debug)]
pub struct Snapshot {
    ran: HashMap<u32, u64>,
    pub(super) counts: Reading<Counts>,
}

impl Snapshot {
    /// Takes a snapshot.
    pub fn read(root: &Root) -> Self {
        let counts = root
            .text("/proc/interrupts")
            .map(|text| Counts::parse(&text));
        let (tasks, _) = tasks(root);
        let ran = |(_, tid, folder): &(u32, u32, PathBuf)| Some((*tid, proc::ran(folder)?));
        Self {
            ran: tasks.iter().filter_map(ran).collect(),
            counts,
        }
    }
}

/// Reads all threads; returns them with the number of those left out.
pub(super) fn read(root: &Root, before: &Snapshot) -> (Vec<Thread>, usize) {
    let (tasks, left_out) = tasks(root);
    let read = |(pid, tid, folder): &(u32, u32, PathBuf)| thread(*pid, *tid, folder, before);
    (tasks.iter().filter_map(read).collect(), left_out)
}

fn thread(pid: u32, tid: u32, folder: &Path, before: &Snapshot) -> Option<Thread> {
    // Read first: the other reads take time, in which the thread runs on.
    let ran = proc::ran(folder)
        .zip(before.ran.get(&tid))
        .map(|(now, before)| now.saturating_sub(*before));
    let stat = Stat::read(folder).ok().filter(|stat| !stat.has_ended())?;
    let scheduling = machine::scheduling_of(&stat, folder)?;
    Some(Thread {
        pid,
        tid,
        is_kernel: stat.is_kernel_thread(),
        is_fixed: stat.flags() & FIXED != 0,
        policy: scheduling.policy,
        priority: scheduling.priority,
        allowed: CpuSet::from_list(&scheduling.affinity)?,
        cpu: u32::try_from(stat.number(39)?).ok()?,
        ran,
        name: stat.name,
    })
}

/// Returns the folders of all threads, at most `MAX_THREADS`, and the number of the others.
fn tasks(root: &Root) -> (Vec<(u32, u32, PathBuf)>, usize) {
    let folder = root.path("/proc");
    let mut tasks = Vec::new();
    let mut left_out = 0;
    for pid in proc::numbers(&folder) {
        let inner = folder.join(pid.to_string()).join("task");
        for tid in proc::numbers(&inner) {
            if tasks.len() < MAX_THREADS {
                tasks.push((pid, tid, inner.join(tid.to_string())));
            } else {
                left_out += 1;
            }
        }
    }
    (tasks, left_out)
}
