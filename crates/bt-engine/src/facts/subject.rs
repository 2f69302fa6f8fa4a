//! Whose events count: processes that run, a command that waits to run, or everybody.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;

use host::{FilePlace, HostError, Pid, Process};
use kernel_text::maps::Device;
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
    /// Those of several processes that run, by their numbers. Those that have ended are left out, unless all have. Only in the
    /// kernel's first PID namespace.
    Pids(Vec<u32>),
    /// Those of a program that the engine starts. It waits before its first instruction until the session is polled for the
    /// first time, and is ended with the session.
    Command {
        /// A path, or a name that is looked for in `PATH`.
        program: OsString,
        /// Its arguments, without its name.
        arguments: Vec<OsString>,
    },
}

/// Those of the processes that have not ended, of which there must be one.
fn those_that_run(pids: &[u32]) -> Result<Vec<Process>, Error> {
    let mut gone = None;
    let mut processes = Vec::new();
    for pid in pids {
        match Process::open(Pid(*pid)) {
            Ok(process) => processes.push(process),
            Err(error @ (HostError::NoProcess { .. } | HostError::Ended { .. })) => gone = gone.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    match gone {
        Some(error) if processes.is_empty() => Err(error.into()),
        _ => Ok(processes),
    }
}

/// The files of processes that may run the same ones. Two files can have one path, in containers, or after an update: the second
/// then has a name by which it is found through its process.
fn files_of_several(processes: &[Process]) -> Vec<Vec<FilePlace>> {
    let mut known: HashMap<(Device, u64), FilePlace> = HashMap::new();
    let mut paths: HashSet<PathBuf> = HashSet::new();
    let mut of_process = |process: &Process| {
        let files = process.mapped_files().into_iter().map(|(place, mapping)| {
            let file = known.entry((mapping.device, mapping.inode)).or_insert_with(|| {
                if paths.insert(place.path().to_owned()) {
                    return place;
                }
                // The mapped file itself (proc_pid_map_files(5)).
                let range = format!("map_files/{:x}-{:x}", mapping.start.0, mapping.end.0);
                FilePlace::at(&host::proc::folder(process.pid()).join(range))
            });
            file.clone()
        });
        files.collect()
    };
    processes.iter().map(&mut of_process).collect()
}

/// A target that was looked up.
pub(crate) enum Subject {
    /// Everybody.
    All,
    /// Processes that run, as they were when they were read; there is at least one.
    Processes(Vec<Process>),
    /// A command that waits before its first instruction: its process runs nothing of its own yet.
    Command { program: PathBuf, pid: u32 },
}

impl Subject {
    /// Reads the process, or starts the command, which waits.
    pub(crate) fn open(target: &Target) -> Result<(Self, Option<HeldChild>), Error> {
        match target {
            Target::All => Ok((Self::All, None)),
            Target::Pid(pid) => Ok((Self::Processes(vec![Process::open(Pid(*pid))?]), None)),
            Target::Pids(pids) => Ok((Self::Processes(those_that_run(pids)?), None)),
            Target::Command { program: name, arguments } => {
                let program = host::find_program(name);
                let program = program.ok_or_else(|| Error::NoProgram { name: printable(name) })?;
                let held = HeldChild::spawn(program.as_os_str(), arguments);
                let held = held.map_err(|source| Error::Start { name: printable(name), source })?;
                Ok((Self::Command { program, pid: held.pid() }, Some(held)))
            }
        }
    }

    /// The process, or the first of several.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pids().first().copied()
    }

    /// The processes; none where everybody's events count.
    pub(crate) fn pids(&self) -> Vec<u32> {
        match self {
            Self::All => Vec::new(),
            Self::Processes(processes) => processes.iter().map(|process| process.pid().0).collect(),
            Self::Command { pid, .. } => vec![*pid],
        }
    }

    /// The program and the libraries of each process, the program first. Processes share the files that they share.
    pub(crate) fn files(&self) -> Vec<Vec<FilePlace>> {
        match self {
            Self::All => Vec::new(),
            Self::Command { program, .. } => vec![vec![FilePlace::at(program)]],
            Self::Processes(processes) => match processes.as_slice() {
                [process] => vec![std::iter::once(process.program()).chain(process.libraries()).collect()],
                several => files_of_several(several),
            },
        }
    }

    pub(crate) fn child(&self) -> Option<u32> {
        match self {
            Self::Command { pid, .. } => Some(*pid),
            _ => None,
        }
    }
}
