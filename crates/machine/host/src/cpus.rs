//! Online CPUs, and the CPUs that threads may run on.

use std::collections::BTreeSet;
use std::path::Path;

use crate::proc;

pub use sys::cpus::possible;

/// File in which the kernel lists the CPUs that are in use
/// (Documentation/admin-guide/cputopology.rst).
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Returns the numbers of the online CPUs, in order; only the first one if the kernel does not list
/// them.
pub fn online() -> Vec<u32> {
    let listed = proc::text(ONLINE)
        .ok()
        .and_then(|list| sys::cpus::parse_list(&list))
        .unwrap_or_default();
    let cpus: Vec<u32> = listed
        .into_iter()
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Returns the CPUs that a thread may run on, by its folder (`Cpus_allowed_list` of
/// proc_pid_status(5)).
pub fn allowed(task: &Path) -> Option<BTreeSet<usize>> {
    sys::cpus::parse_list(&proc::status(task, "Cpus_allowed_list").ok()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_may_run_somewhere() {
        let online: BTreeSet<usize> = online().into_iter().map(|cpu| cpu as usize).collect();
        assert!(online.iter().all(|cpu| *cpu < possible().unwrap()));
        assert!(!allowed(&proc::own_folder()).unwrap().is_empty());
    }
}
