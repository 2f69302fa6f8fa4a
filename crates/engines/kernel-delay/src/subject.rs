//! Processes whose threads are accounted for.

use std::path::PathBuf;

use errors::unsupported;
use host::{Files, HostError};
use sys::process::HeldChild;

/// Processes to measure.
pub struct Subject {
    /// Numbers of the processes; at least one.
    pub pids: Vec<u32>,
    /// True to account for the processes that they start, too.
    pub children: bool,
    /// Program of a command.
    program: Option<PathBuf>,
    /// Process that waits to run it.
    pub held: Option<HeldChild>,
}

/// Fails in a container's PID namespace: the kernel's programs identify processes by their numbers
/// in the first namespace, and ours would differ elsewhere.
pub fn check_namespace() -> anyhow::Result<()> {
    match host::system::in_first_pid_namespace() {
        Some(false) => Err(unsupported(
            "dptrace runs in a container's namespace of process numbers, where kernel-delay can't distinguish processes; \
             run it on the host (or with --pid=host)",
        )),
        _ => Ok(()),
    }
}

impl Subject {
    /// Takes running processes.
    pub fn from_processes(pids: Vec<u32>, children: bool) -> Self {
        Self {
            pids,
            children,
            program: None,
            held: None,
        }
    }

    /// Takes a process that waits to run this program.
    pub fn from_command(program: PathBuf, held: HeldChild, children: bool) -> Self {
        Self {
            pids: vec![held.pid()],
            children,
            program: Some(program),
            held: Some(held),
        }
    }

    /// Returns the process, or the first one.
    fn pid(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// Returns its files, for triggers; for a command, the program and the libraries that it is
    /// going to load.
    pub(crate) fn files(&self) -> Result<Files, HostError> {
        match &self.program {
            Some(program) => Ok(Files::from_program(program)),
            None => Ok(Files::from_process(self.pid())?.0),
        }
    }
}
