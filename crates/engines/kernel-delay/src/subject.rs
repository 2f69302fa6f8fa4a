//! The processes whose threads are accounted for.

use std::path::PathBuf;

use errors::unsupported;
use host::{Files, HostError};
use sys::process::HeldChild;

/// The processes.
pub struct Subject {
    /// There is at least one.
    pub pids: Vec<u32>,
    /// True if those that they start are accounted for, too.
    pub children: bool,
    /// The program of a command.
    program: Option<PathBuf>,
    /// The process that waits to run it.
    pub held: Option<HeldChild>,
}

/// Fails in a container's namespace of process numbers: the kernel's programs know processes by their numbers in the first
/// namespace; ours would be others elsewhere.
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
    /// Takes processes that run.
    pub fn of_processes(pids: Vec<u32>, children: bool) -> Self {
        Self { pids, children, program: None, held: None }
    }

    /// Takes a process that waits to run this program.
    pub fn of_command(program: PathBuf, held: HeldChild, children: bool) -> Self {
        Self { pids: vec![held.pid()], children, program: Some(program), held: Some(held) }
    }

    /// Returns the process, or the first one.
    fn pid(&self) -> u32 {
        self.pids.first().copied().unwrap_or_default()
    }

    /// Returns its files, for triggers: of a command the program and the libraries that it is going to load.
    pub(crate) fn files(&self) -> Result<Files, HostError> {
        match &self.program {
            Some(program) => Ok(Files::of_program(program)),
            None => Ok(Files::of_process(self.pid())?.0),
        }
    }
}
