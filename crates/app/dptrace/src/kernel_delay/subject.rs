//! The processes whose threads are accounted for.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context as _, anyhow};
use errors::{unsupported, usage};
use host::Files;
use sys::process::HeldChild;
use text::printable::path as printable;

use super::args::KernelDelayArgs;
use super::busiest;
use crate::messages::note;
use crate::output;
use crate::process::{self, Role, Takes};
use crate::record::find_program;

/// The process that people ask about who name none.
const DEFAULT_NAME: &str = "ovs-vswitchd";
const ROLE: Role = Role { command: "kernel-delay", takes: Takes::All("measured"), starts: true };

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
pub(crate) fn check_namespace() -> anyhow::Result<()> {
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
            output::refuse_inputs(args.output.as_deref(), [("the program to start", path.as_path())])?;
            let held = HeldChild::spawn(path.as_os_str(), arguments)
                .with_context(|| format!("starting {}", printable(program)))?;
            let pids = vec![held.pid()];
            return Ok(Self { pids, children: args.children, program: Some(path), held: Some(held) });
        }
        let mut pids = if let Some(path) = &args.cgroup {
            in_group(path)?
        } else if let Some(name) = &args.name {
            process::all_called(name, ROLE)?
        } else {
            named(args)?
        };
        if args.children {
            pids.extend(process::descendants(&pids));
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
    process::check_number(pid, ", and --thread for its name")
}

/// The processes of `-p` and of the words, or of the name that is meant if there is none.
fn named(args: &KernelDelayArgs) -> anyhow::Result<Vec<u32>> {
    let words = [args.pid.as_slice(), &args.processes].concat();
    if !words.is_empty() {
        let pids = process::all(&words, ROLE)?;
        // One of a name may have ended by now, which is no mistake.
        if process::are_numbers(&words) {
            pids.iter().try_for_each(|&pid| check(pid))?;
        }
        return Ok(pids);
    }
    if !process::is_there(DEFAULT_NAME) {
        return Err(usage(busiest::table()));
    }
    process::all_called(DEFAULT_NAME, ROLE)
}

/// The processes of a control group, without this one.
fn in_group(path: &Path) -> anyhow::Result<Vec<u32>> {
    let shown = printable(path);
    let found = host::cgroups::processes(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "there is no cgroup {shown}: give its folder below /sys/fs/cgroup, or its path as /proc/PID/cgroup has it \
             (systemd-cgls lists all)"
        ),
        _ => anyhow::Error::new(error).context(format!("reading the cgroup {shown}")),
    })?;
    let found: Vec<u32> = found.into_iter().filter(|&pid| pid != std::process::id() && check(pid).is_ok()).collect();
    if found.is_empty() {
        return Err(anyhow!("no process is in the cgroup {shown}"));
    }
    Ok(found)
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
