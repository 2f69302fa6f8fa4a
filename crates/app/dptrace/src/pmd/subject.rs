//! The process, and which of its threads poll.

use errors::usage;
use host::control::{Listening, listening};
use host::proc::{name, task, threads};
use host::{Pid, cpus};
use text::printable;

use super::PmdArgs;
use crate::process::{self, Role, Takes};

const ROLE: Role = Role { command: "pmd", takes: Takes::One, starts: false };
/// The process that is meant if none is named.
const DEFAULT_NAME: &str = "ovs-vswitchd";
/// What the threads of lcores are called: by DPDK since 23.11, since 20.11, and before.
const LCORES: [&str; 4] = ["dpdk-worker", "rte-worker-", "lcore-worker-", "lcore-slave-"];

/// What was asked for.
pub(super) struct Subject {
    pub(super) pid: u32,
    /// The threads that poll, in the order of their names.
    pub(super) threads: Vec<PollThread>,
    /// The sockets at which the process listens.
    pub(super) sockets: Vec<Listening>,
}

/// A thread that polls.
#[derive(Clone, Debug)]
pub(super) struct PollThread {
    pub(super) tid: u32,
    /// As it is shown: `pmd-c01`.
    pub(super) name: String,
    /// The number of its CPU in the texts of Open vSwitch; none of other programs' threads.
    pub(super) core: Option<u32>,
    /// The CPU that it is pinned to, if it is to one.
    pub(super) cpu: Option<usize>,
}

impl Subject {
    /// What the options mean: a process with threads that poll.
    pub(super) fn of(args: &PmdArgs) -> anyhow::Result<Self> {
        let pid = pid(args)?;
        let mut found: Vec<PollThread> =
            threads(Pid(pid)).into_iter().filter_map(|tid| poll_thread(pid, tid)).collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        if found.is_empty() {
            return Err(usage(format!(
                "process {pid} has no PMD threads and no lcores: Open vSwitch has them with datapath_type=netdev and a port that \
                 is polled (type dpdk, afxdp); of others: dptrace kernel-delay -p {pid}"
            )));
        }
        let sockets = listening(Pid(pid)).unwrap_or_default();
        Ok(Self { pid, threads: found, sockets })
    }
}

/// The process. Of several of the name one is meant if it alone has threads that poll: Open vSwitch's monitor has the name, too.
fn pid(args: &PmdArgs) -> anyhow::Result<u32> {
    let named = match &args.name {
        Some(name) => process::all_called(name, ROLE)?,
        None if args.pid.is_empty() => process::all_called(DEFAULT_NAME, ROLE)?,
        None => return process::one(&args.pid, ROLE),
    };
    let polls = |pid: &u32| threads(Pid(*pid)).into_iter().any(|tid| poll_thread(*pid, tid).is_some());
    let polling: Vec<u32> = named.iter().copied().filter(polls).collect();
    let left = if polling.len() == 1 { polling } else { named };
    let words: Vec<String> = left.iter().map(u32::to_string).collect();
    process::one(&words, ROLE)
}

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
    let name = if core.is_some() { shown.split('/').next().unwrap_or(&shown).to_owned() } else { shown.into_owned() };
    Some(PollThread { tid: tid.0, name, core, cpu })
}

/// The CPU in the name of a PMD thread: `pmd-c01/id:8` (`pmd_thread_name` in `lib/dpif-netdev.c`).
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
