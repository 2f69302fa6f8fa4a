//! Whose events count: a process that runs, a command that waits to run, or everybody.

use std::ffi::OsString;
use std::path::PathBuf;

use host::{Pid, Process};
use sys::process::HeldChild;

use crate::Error;
use crate::observe::printable;

/// Whose events count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Target {
    /// Those of all processes.
    #[default]
    All,
    /// Those of a process that runs, by its number.
    Pid(u32),
    /// Those of a program that the engine starts. It waits before its first instruction until the session is polled for the
    /// first time, and is ended with the session.
    Command {
        /// A path, or a name that is looked for in `PATH`.
        program: OsString,
        /// Its arguments, without its name.
        arguments: Vec<OsString>,
    },
}

/// A target that was looked up.
pub(crate) enum Subject {
    /// Everybody.
    All,
    /// A process that runs, as it was when it was read.
    Process(Box<Process>),
    /// A command that waits before its first instruction: its process runs nothing of its own yet.
    Command { program: PathBuf, pid: u32 },
}

impl Subject {
    /// Reads the process, or starts the command, which waits.
    pub(crate) fn open(target: &Target) -> Result<(Self, Option<HeldChild>), Error> {
        match target {
            Target::All => Ok((Self::All, None)),
            Target::Pid(pid) => Ok((Self::Process(Box::new(Process::open(Pid(*pid))?)), None)),
            Target::Command { program: name, arguments } => {
                let program = host::find_program(name);
                let program = program.ok_or_else(|| Error::NoProgram { name: printable(name) })?;
                let held = HeldChild::spawn(program.as_os_str(), arguments);
                let held = held.map_err(|source| Error::Start { name: printable(name), source })?;
                Ok((Self::Command { program, pid: held.pid() }, Some(held)))
            }
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Process(process) => Some(process.pid().0),
            Self::Command { pid, .. } => Some(*pid),
        }
    }

    pub(crate) fn child(&self) -> Option<u32> {
        match self {
            Self::Command { pid, .. } => Some(*pid),
            _ => None,
        }
    }
}
