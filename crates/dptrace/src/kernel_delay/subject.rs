//! The process whose threads are accounted for.

use anyhow::{Context as _, anyhow};
use std::path::PathBuf;
use std::process::Child;

use host::{HostError, Pid, Process};
use kernel_delay::live::{command_line, processes};
use sys::process::HeldChild;

use super::args::KernelDelayArgs;
use super::busiest;
use crate::failure::{note, unsupported, usage};
use crate::record::find_program;
use crate::target::Files;

/// The process that people ask about who name none.
const DEFAULT_NAME: &str = "ovs-vswitchd";

/// The process.
pub(super) struct Subject {
    pub(super) pid: u32,
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
            std::fs::metadata(&path)
                .with_context(|| format!("there is no program {}", crate::target::printable(&path)))?;
            let held = HeldChild::spawn(path.as_os_str(), arguments)
                .with_context(|| format!("starting {}", crate::target::printable(program)))?;
            return Ok(Self { pid: held.pid(), program: Some(path), held: Some(held) });
        }
        let pid = match args.pid {
            Some(pid) => pid,
            None if args.name.is_none() && processes(DEFAULT_NAME).is_empty() => return Err(usage(busiest::table())),
            None => named(args.name.as_deref().unwrap_or(DEFAULT_NAME))?,
        };
        let group = host::proc::process_of(Pid(pid)).with_context(|| format!("no process has the pid {pid}"))?;
        if group.0 != pid {
            return Err(usage(format!("{pid} is a thread of process {group}: give that, and --thread for its name")));
        }
        // All else that can be wrong with the process's files is of no interest here.
        if let Err(error @ HostError::KernelThread { .. }) = Process::open(Pid(pid)) {
            return Err(error.into());
        }
        Ok(Self { pid, program: None, held: None })
    }

    /// Its files, for triggers: of a command the program and the libraries that it is going to load.
    pub(super) fn files(&self) -> anyhow::Result<Files> {
        match &self.program {
            Some(program) => Ok(Files::of_program(program)),
            None => Ok(Files::of_process(self.pid)?.0),
        }
    }
}

/// The one process of this name.
fn named(wanted: &str) -> anyhow::Result<u32> {
    let found = processes(wanted);
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(anyhow!("no process is called {wanted} (-p takes a number, --name another name)")),
        several => {
            let list: Vec<String> = several.iter().map(|&pid| format!("\n  {pid}  {}", command_line(pid))).collect();
            Err(usage(format!("{} processes are called {wanted}, choose with -p:{}", several.len(), list.concat())))
        }
    }
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
