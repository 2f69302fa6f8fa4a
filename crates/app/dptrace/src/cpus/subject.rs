//! Which CPUs are meant, and whose threads.

use std::collections::BTreeSet;

use errors::usage;
use host::Pid;
use host::cpus::allowed;
use host::proc::{task, threads};
use kernel_text::cpus::CpuSet;
use text::printable;

use super::CpusArgs;
use crate::process::{self, Role, Takes};

const ROLE: Role = Role { command: "cpus", takes: Takes::All("checked"), starts: false };

/// What was asked for.
pub(super) struct Subject {
    /// The CPUs that were named; all of them are online.
    pub(super) cpus: Option<CpuSet>,
    /// The processes that were named, whose pollers are looked for.
    pub(super) pids: Vec<u32>,
}

impl Subject {
    /// What the options mean; at least one CPU or one process.
    pub(super) fn of(args: &CpusArgs) -> anyhow::Result<Self> {
        let subject = Self::of_audit(args)?;
        if subject.cpus.is_none() && subject.pids.is_empty() {
            return Err(usage(
                "no CPUs to look at: list them, as in 2-5,8, or name their process with -p PID or -p NAME",
            ));
        }
        Ok(subject)
    }

    /// What the options mean; neither CPUs nor processes stand for all pollers.
    pub(super) fn of_audit(args: &CpusArgs) -> anyhow::Result<Self> {
        let cpus = args.cpus.as_deref().map(list).transpose()?;
        let pids = match &args.name {
            Some(name) => process::all_called(name, ROLE)?,
            None if args.pid.is_empty() => Vec::new(),
            None => process::all(&args.pid, ROLE)?,
        };
        Ok(Self { cpus, pids })
    }

    /// The threads of the processes, if some were named.
    pub(super) fn threads(&self) -> Option<BTreeSet<u32>> {
        let threads = self.pids.iter().flat_map(|&pid| threads(Pid(pid)));
        (!self.pids.is_empty()).then(|| threads.map(|thread| thread.0).collect())
    }

    /// The CPUs to each of which a thread of the processes is pinned.
    pub(super) fn pinned(&self) -> BTreeSet<u32> {
        let tasks = self.pids.iter().flat_map(|&pid| threads(Pid(pid)).into_iter().map(move |tid| task(Pid(pid), tid)));
        let only = |cpus: BTreeSet<usize>| cpus.first().copied().filter(|_| cpus.len() == 1);
        tasks.filter_map(|task| u32::try_from(only(allowed(&task)?)?).ok()).collect()
    }
}

/// CPUs as they are typed, all of which must be there.
fn list(typed: &str) -> anyhow::Result<CpuSet> {
    let Some(cpus) = CpuSet::from_list(typed).filter(|cpus| !cpus.is_empty()) else {
        let shown = printable::text(typed.as_bytes());
        return Err(usage(format!("{shown}: no list of CPUs, as 2-5,8 is; a process is named with -p {shown}")));
    };
    let online: CpuSet = host::cpus::online().into_iter().collect();
    let missing = cpus.without(&online);
    if !missing.is_empty() {
        return Err(usage(format!("not online here: CPU {missing}; these are: {online}")));
    }
    Ok(cpus)
}
