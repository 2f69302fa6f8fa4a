//! The processes whose threads are accounted for.

use anyhow::{Context as _, anyhow};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Child;

use host::proc::{Stat, folder};
use host::{HostError, Pid, Process};
use kernel_delay::live::{command_line, processes};
use sys::process::HeldChild;

use super::args::KernelDelayArgs;
use super::busiest;
use crate::failure::{note, unsupported, usage};
use crate::record::find_program;
use crate::target::{Files, printable};

/// The process that people ask about who name none.
const DEFAULT_NAME: &str = "ovs-vswitchd";

/// The processes.
pub(super) struct Subject {
    /// There is at least one.
    pub(super) pids: Vec<u32>,
    /// Whether those that they start are accounted for, too.
    pub(super) children: bool,
    /// The program of a command.
    program: Option<PathBuf>,
    /// It, where it waits to run its program.
    pub(super) held: Option<HeldChild>,
}

/// The kernel's programs know processes by their numbers in the first namespace; ours would be others elsewhere.
fn check_namespace() -> anyhow::Result<()> {
    match host::system::in_first_pid_namespace() {
        Some(false) => Err(unsupported(
            "dptrace runs in a container's namespace of process numbers, where kernel-delay can't distinguish processes; \
             run it on the host (or with --pid=host)",
        )),
        _ => Ok(()),
    }
}

impl Subject {
    pub(super) fn of(args: &KernelDelayArgs) -> anyhow::Result<Self> {
        check_namespace()?;
        if let Some((program, arguments)) = args.command.split_first() {
            let path = find_program(program)?;
            let held = HeldChild::spawn(path.as_os_str(), arguments)
                .with_context(|| format!("starting {}", printable(program)))?;
            let pids = vec![held.pid()];
            return Ok(Self { pids, children: args.children, program: Some(path), held: Some(held) });
        }
        let mut pids = if let Some(path) = &args.cgroup {
            in_group(path)?
        } else if args.pid.is_empty() {
            if args.name.is_none() && processes(DEFAULT_NAME).is_empty() {
                return Err(usage(busiest::table()));
            }
            named(args.name.as_deref().unwrap_or(DEFAULT_NAME))?
        } else {
            args.pid.iter().try_for_each(|&pid| check(pid))?;
            args.pid.clone()
        };
        if args.children {
            pids.extend(descendants(&pids));
        }
        let mut seen = HashSet::new();
        pids.retain(|pid| seen.insert(*pid));
        if pids.len() > 1 && (args.start_trigger.is_some() || args.stop_trigger.is_some()) {
            return Err(usage(format!("triggers need one process, and these are {}: choose one with -p", pids.len())));
        }
        Ok(Self { pids, children: args.children || args.cgroup.is_some(), program: None, held: None })
    }

    /// The process, or the first one.
    pub(super) fn pid(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// Its files, for triggers: of a command the program and the libraries that it is going to load.
    pub(super) fn files(&self) -> anyhow::Result<Files> {
        match &self.program {
            Some(program) => Ok(Files::of_program(program)),
            None => Ok(Files::of_process(self.pid())?.0),
        }
    }
}

/// An error if there is no such process, or nothing to be measured of it.
fn check(pid: u32) -> anyhow::Result<()> {
    let group = host::proc::process_of(Pid(pid)).with_context(|| format!("no process has the pid {pid}"))?;
    if group.0 != pid {
        return Err(usage(format!("{pid} is a thread of process {group}: give that, and --thread for its name")));
    }
    // All else that can be wrong with the process's files is of no interest here.
    match Process::open(Pid(pid)) {
        Err(error @ HostError::KernelThread { .. }) => Err(error.into()),
        _ => Ok(()),
    }
}

/// How many processes of one name are listed.
const LISTED: usize = 10;

/// All processes of this name.
fn named(wanted: &str) -> anyhow::Result<Vec<u32>> {
    let mut found = processes(wanted);
    found.retain(|&pid| check(pid).is_ok());
    if found.is_empty() {
        return Err(anyhow!("no process is called {wanted} (-p takes a number, --name another name)"));
    }
    if found.len() > 1 {
        let lines: Vec<String> =
            found.iter().take(LISTED).map(|&pid| format!("\n  {pid}  {}", command_line(pid))).collect();
        let more = if found.len() > LISTED { "\n  ..." } else { "" };
        let (count, lines) = (found.len(), lines.concat());
        note(&format!("{count} processes are called {wanted}, and all are measured (-p takes one):{lines}{more}"));
    }
    Ok(found)
}

/// The processes of a control group, without this one.
fn in_group(path: &Path) -> anyhow::Result<Vec<u32>> {
    let shown = printable(path);
    let found = host::cgroups::processes(path).with_context(|| {
        format!("there is no cgroup {shown} (its folder below /sys/fs/cgroup, or its path as /proc/PID/cgroup has it)")
    })?;
    let found: Vec<u32> = found.into_iter().filter(|&pid| pid != std::process::id() && check(pid).is_ok()).collect();
    if found.is_empty() {
        return Err(anyhow!("no process is in the cgroup {shown}"));
    }
    Ok(found)
}

/// What these processes have started, and what those have (proc_pid_stat(5), field 4: the parent).
fn descendants(of: &[u32]) -> Vec<u32> {
    let parent = |pid| Some((pid, Stat::read(&folder(Pid(pid))).ok()?.number(4)? as u32));
    let parents: Vec<(u32, u32)> = host::proc::processes().into_iter().filter_map(parent).collect();
    let own = std::process::id();
    let mut found: Vec<u32> = Vec::new();
    let mut left = of.to_vec();
    while let Some(parent) = left.pop() {
        for &(child, _) in parents.iter().filter(|(child, of)| *of == parent && *child != own) {
            if !found.contains(&child) {
                found.push(child);
                left.push(child);
            }
        }
    }
    found
}

/// Leaves the process that we started to itself.
pub(super) fn leave(child: Option<Child>) -> anyhow::Result<()> {
    if let Some(mut child) = child
        && child.try_wait().context("checking the command")?.is_none()
    {
        note(&format!("process {} continues to run", child.id()));
    }
    Ok(())
}
