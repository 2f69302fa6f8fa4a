//! The CPUs and processes that the options select.

use console::terminal;
use cpus::Subject;
use errors::usage;
use kernel_text::cpus::CpuSet;
use process_selector::{ProcessCount, Role};
use text::printable;

use super::CpusArgs;

const ROLE: Role = Role {
    command: "cpus",
    takes: ProcessCount::All("checked"),
    starts: false,
};

/// Returns the subject of `--check`: at least one CPU or one process.
pub(super) fn for_check(args: &CpusArgs) -> anyhow::Result<Subject> {
    let subject = for_audit(args)?;
    if subject.cpus.is_none() && subject.pids.is_empty() {
        return Err(usage(
            "no CPUs to check: list them, as in 2-5,8, or name their process with -p PID or -p \
             NAME",
        ));
    }
    Ok(subject)
}

/// Returns the subject of the options. Without CPUs and processes, it is all pollers.
pub(super) fn for_audit(args: &CpusArgs) -> anyhow::Result<Subject> {
    let cpus = args.cpus.as_deref().map(list).transpose()?;
    let selector = args.process.selector();
    let pids = if selector.is_empty() {
        Vec::new()
    } else {
        selector.all(ROLE, &terminal::observer())?
    };
    Ok(Subject { cpus, pids })
}

/// Parses a typed list of CPUs, which must all be online.
fn list(typed: &str) -> anyhow::Result<CpuSet> {
    let Some(cpus) = CpuSet::from_list(typed).filter(|cpus| !cpus.is_empty()) else {
        let shown = printable::text(typed.as_bytes());
        return Err(usage(format!(
            "{shown} is not a list of CPUs such as 2-5,8; to name a process, use -p {shown}"
        )));
    };
    let online: CpuSet = host::cpus::online().into_iter().collect();
    let missing = cpus.without(&online);
    if !missing.is_empty() {
        return Err(usage(format!(
            "CPU {missing} is not online; these are: {online}"
        )));
    }
    Ok(cpus)
}
