//! The CPUs that are meant, and the processes whose threads count.

use std::collections::BTreeSet;

use host::Pid;
use host::cpus::allowed;
use host::proc::{task, threads};
use kernel_text::cpus::CpuSet;

/// CPUs and processes to look at; neither stands for the CPUs of all pollers.
pub struct Subject {
    /// The CPUs that were named; all of them are online.
    pub cpus: Option<CpuSet>,
    /// The processes that were named, whose pollers are looked for.
    pub pids: Vec<u32>,
}

impl Subject {
    /// Returns the threads of the processes, if some were named.
    pub(crate) fn threads(&self) -> Option<BTreeSet<u32>> {
        let threads = self.pids.iter().flat_map(|&pid| threads(Pid(pid)));
        (!self.pids.is_empty()).then(|| threads.map(|thread| thread.0).collect())
    }

    /// Returns the CPUs to each of which a thread of the processes is pinned.
    pub(crate) fn pinned(&self) -> BTreeSet<u32> {
        let tasks = self.pids.iter().flat_map(|&pid| {
            threads(Pid(pid))
                .into_iter()
                .map(move |tid| task(Pid(pid), tid))
        });
        let only = |cpus: BTreeSet<usize>| cpus.first().copied().filter(|_| cpus.len() == 1);
        tasks
            .filter_map(|task| u32::try_from(only(allowed(&task)?)?).ok())
            .collect()
    }
}
