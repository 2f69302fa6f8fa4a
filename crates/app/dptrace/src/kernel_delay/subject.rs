//! The processes whose threads are accounted for.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Child;

use anyhow::{Context as _, anyhow};
use console::messages::note;
use console::{interrupt, output, terminal};
use errors::usage;
use kernel_delay::{Subject, busiest_table, check_namespace};
use process_selector::{
    NoProcess, ProcessCount, ProcessSelector, Role, check_number, find_program,
};
use sys::process::HeldChild;
use text::printable::path as printable;

use super::args::KernelDelayArgs;

/// Process that is meant if none is named.
const DEFAULT_NAME: &str = "ovs-vswitchd";
const ROLE: Role = Role {
    command: "kernel-delay",
    takes: ProcessCount::All("measured"),
    starts: true,
};

/// Returns the processes that the options select, or one that waits to run the command.
pub(super) fn from_args(args: &KernelDelayArgs) -> anyhow::Result<Subject> {
    check_namespace()?;
    if let Some((program, arguments)) = args.command.split_first() {
        let path = find_program(program)?;
        output::refuse_inputs(
            args.output.as_deref(),
            [("the program to start", path.as_path())],
        )?;
        let held = HeldChild::spawn(path.as_os_str(), arguments)
            .with_context(|| format!("starting {}", printable(program)))?;
        return Ok(Subject::from_command(path, held, args.children));
    }
    let pids = match &args.cgroup {
        Some(path) => ProcessSelector::new(in_group(path)?.iter().map(u32::to_string))
            .with_children(args.children)
            .all(ROLE, &terminal::observer())?,
        None => named(args)?,
    };
    if pids.len() > 1 && (args.start_trigger.is_some() || args.stop_trigger.is_some()) {
        return Err(usage(format!(
            "triggers need one process, but these are {}: choose one with -p",
            pids.len()
        )));
    }
    Ok(Subject::from_processes(
        pids,
        args.children || args.cgroup.is_some(),
    ))
}

/// Returns the processes that the user names, or those of the default name.
fn named(args: &KernelDelayArgs) -> anyhow::Result<Vec<u32>> {
    let selector = args.process.selector();
    if selector.is_empty() && !process_selector::is_there(DEFAULT_NAME) {
        let table = busiest_table();
        return Err(usage(format!(
            "no process was named; the busiest ones:\n{table}choose one: dptrace kernel-delay -p \
             PID, or -p NAME"
        )));
    }
    let selector = selector.or_name(DEFAULT_NAME).with_children(args.children);
    let found = selector.all_traceable(ROLE, ", and --thread for its name", &terminal::observer());
    found.map_err(|error| match error.downcast_ref::<NoProcess>() {
        Some(none) => anyhow!("{none}; dptrace kernel-delay without arguments lists the busiest"),
        None => error,
    })
}

/// Returns the processes of a control group, except this one.
fn in_group(path: &Path) -> anyhow::Result<Vec<u32>> {
    let shown = printable(path);
    let found = host::cgroups::processes(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "there is no cgroup {shown}: give its folder below /sys/fs/cgroup, or its path as \
             /proc/PID/cgroup has it (systemd-cgls lists all)"
        ),
        _ => anyhow::Error::new(error).context(format!("reading the cgroup {shown}")),
    })?;
    let found: Vec<u32> = found
        .into_iter()
        .filter(|&pid| pid != std::process::id() && check_number(pid, "").is_ok())
        .collect();
    if found.is_empty() {
        return Err(anyhow!("no process is in the cgroup {shown}"));
    }
    Ok(found)
}

/// Reports that the process we started keeps running, or that it failed. Nothing is reported of one
/// that the user has interrupted together with us.
pub(super) fn leave(child: Option<Child>) -> anyhow::Result<()> {
    let Some(mut child) = child else {
        return Ok(());
    };
    match child.try_wait().context("checking the command")? {
        None => note(&format!("process {} continues to run", child.id())),
        Some(status) if status.success() || interrupt::is_requested() => {}
        Some(status) => note(&format!("process {} failed: {status}", child.id())),
    }
    Ok(())
}
