//! Traced processes: running ones, a command that waits to run, or all.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;

use host::{FilePlace, HostError, Pid, Process, proc};
use kernel_text::maps::Device;
use sys::process::HeldChild;

use crate::Error;
use crate::observe::printable;

/// Limit on the files of several processes that are held open: programs that fork share theirs, and
/// a process may have few descriptors (1024, by default).
const MAX_HELD_FILES: usize = 128;

/// Traced processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Target {
    /// All processes.
    #[default]
    All,
    /// A running process, by its number.
    Pid(u32),
    /// Several running processes, by their numbers. Those that have ended are left out, unless all
    /// have. Only in the kernel's first PID namespace.
    Pids(Vec<u32>),
    /// A program that the engine starts. It waits before its first instruction until the session is
    /// polled for the first time, and is ended with the session.
    #[non_exhaustive]
    Command {
        /// Path, or a name that is looked up in `PATH`.
        program: OsString,
        /// Arguments, without the name.
        arguments: Vec<OsString>,
    },
}

impl Target {
    /// Returns the target for a program that the engine starts, with its arguments.
    pub fn command(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self::Command {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }
}

/// Opens the processes that have not ended; returns an error if all have.
fn open_running(pids: &[u32]) -> Result<Vec<Process>, Error> {
    let mut processes = Vec::new();
    for pid in pids {
        match Process::open(Pid(*pid)) {
            Ok(process) => processes.push(process),
            Err(HostError::NoProcess { .. } | HostError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if processes.is_empty() {
        Err(Error::Ended {
            pids: pids.to_vec(),
        })
    } else {
        Ok(processes)
    }
}

/// Returns the error if all processes have ended; `None` while one lives, or if there are none.
pub(crate) fn all_ended(pids: &[u32]) -> Option<Error> {
    let has_ended = |pid: &u32| proc::start_of_living(Pid(*pid)).is_none();
    (!pids.is_empty() && pids.iter().all(has_ended)).then(|| Error::Ended {
        pids: pids.to_vec(),
    })
}

/// Returns the files of processes that may run the same ones, each held open: a process may end
/// while it is read. Two files can have one path, in containers, or after an update: the second
/// then has a name by which it is found through its process.
fn files_of_several(processes: &[Process]) -> Vec<Vec<FilePlace>> {
    let mut known: HashMap<(Device, u64), FilePlace> = HashMap::new();
    let mut paths: HashSet<PathBuf> = HashSet::new();
    let mut of_process = |process: &Process| {
        let mut files = Vec::new();
        for (place, mapping) in process.mapped_files() {
            let file = (mapping.device, mapping.inode);
            if let Some(known) = known.get(&file) {
                files.push(known.clone());
                continue;
            }
            let place = if paths.contains(place.path()) {
                // The mapped file itself (proc_pid_map_files(5)).
                let range = format!("map_files/{:x}-{:x}", mapping.start.0, mapping.end.0);
                FilePlace::at(&proc::folder(process.pid()).join(range))
            } else {
                place
            };
            // An ended process is not traced; others may have the same file.
            let Some(place) = held_while_alive(process.pid(), place, known.len()) else {
                break;
            };
            paths.insert(place.path().to_owned());
            known.insert(file, place.clone());
            files.push(place);
        }
        files
    };
    processes.iter().map(&mut of_process).collect()
}

/// Returns the file, held open if it can be; `None` if the process has ended. `held` is the number
/// of held files.
fn held_while_alive(pid: Pid, place: FilePlace, held: usize) -> Option<FilePlace> {
    match if held < MAX_HELD_FILES {
        place.hold().ok()
    } else {
        None
    } {
        Some(place) => Some(place),
        // The reason why it can't be read is reported when it is read.
        None => proc::start_of_living(pid).map(|_| place),
    }
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
            Target::Pids(pids) => Ok((Self::Processes(open_running(pids)?), None)),
            Target::Command {
                program: name,
                arguments,
            } => {
                let program = host::find_program(name);
                let program = program.ok_or_else(|| Error::NoProgram {
                    name: printable(name),
                })?;
                let held = HeldChild::spawn(program.as_os_str(), arguments);
                let held = held.map_err(|source| Error::Start {
                    name: printable(name),
                    source,
                })?;
                Ok((
                    Self::Command {
                        program,
                        pid: held.pid(),
                    },
                    Some(held),
                ))
            }
        }
    }

    /// Returns the process, or the first of several.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pids().first().copied()
    }

    /// Returns the processes; none if all processes are traced.
    pub(crate) fn pids(&self) -> Vec<u32> {
        match self {
            Self::All => Vec::new(),
            Self::Processes(processes) => processes.iter().map(|process| process.pid().0).collect(),
            Self::Command { pid, .. } => vec![*pid],
        }
    }

    /// Returns the program and the libraries of each process, the program first. Processes share
    /// the places of their common files.
    pub(crate) fn files(&self) -> Vec<Vec<FilePlace>> {
        match self {
            Self::All => Vec::new(),
            Self::Command { program, .. } => vec![vec![FilePlace::at(program)]],
            Self::Processes(processes) => match processes.as_slice() {
                [process] => vec![
                    std::iter::once(process.program())
                        .chain(process.libraries())
                        .collect(),
                ],
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
