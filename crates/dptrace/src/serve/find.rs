//! Finds the processes that are to be followed, as they come and go.
//!
//! Looking who has a file mapped takes a look at every process, so it is done for files that are new or have changed; of a file
//! that nobody has, once in a while, since an application takes over the file of the one before it.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use host::{Pid, proc};

use crate::application::{Application, number_of};
use crate::input;
use crate::process;

/// Time between two looks at a file that nobody has.
const AGAIN: Duration = Duration::from_secs(20);

/// Which processes.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// All that write a trace.
    All,
    /// These, whether they write one or not.
    These { pids: Vec<u32>, names: Vec<String> },
}

/// A process, by what distinguishes it from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) pid: u32,
    pub(super) start: u64,
}

/// A process that is to be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) process: Identity,
    /// Its trace, and which file that is: one of the same name may take its place.
    pub(super) trace: Option<(PathBuf, u64)>,
}

/// A trace file that was looked at.
struct Known {
    file: FileIdentity,
    writers: Vec<Identity>,
    looked: Instant,
}

/// A file, and whether it was made anew.
type FileIdentity = (u64, u64, i64, i64);

pub(super) struct Finder {
    wanted: Wanted,
    known: HashMap<PathBuf, Known>,
}

impl Finder {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, known: HashMap::new() }
    }

    /// What there is now.
    pub(super) fn look(&mut self) -> Vec<Found> {
        match &self.wanted {
            Wanted::All => self.writers(),
            Wanted::These { pids, names } => {
                let named = names.iter().flat_map(|name| process::called(name));
                let mut pids: Vec<u32> = pids.iter().copied().chain(named).collect();
                pids.sort_unstable();
                pids.dedup();
                pids.into_iter().filter_map(Self::of).collect()
            }
        }
    }

    /// A process that was named.
    fn of(pid: u32) -> Option<Found> {
        let process = Identity::of(pid)?;
        let trace = input::trace_of(pid).ok().and_then(|path| {
            let inode = path.symlink_metadata().ok()?.ino();
            Some((path, inode))
        });
        Some(Found { process, trace })
    }

    /// The processes that write traces.
    fn writers(&mut self) -> Vec<Found> {
        // Where nothing can be listed there is nothing.
        let mut files: Vec<(PathBuf, FileIdentity)> = Vec::new();
        for path in input::traces().unwrap_or_default() {
            if let Ok(file) = path.symlink_metadata() {
                files.push((path, (file.dev(), file.ino(), file.ctime(), file.ctime_nsec())));
            }
        }
        self.known.retain(|path, _| files.iter().any(|(it, _)| it == path));
        let is_due = |path: &PathBuf, file: &FileIdentity| match self.known.get(path) {
            None => true,
            Some(known) if known.file != *file => true,
            Some(known) if known.writers.iter().any(Identity::lives) => false,
            // Of a file with a process's number in its name that one alone is of interest.
            Some(known) => {
                known.looked.elapsed() >= AGAIN && number_of(path).is_none_or(|pid| Identity::of(pid).is_some())
            }
        };
        let due: Vec<(PathBuf, FileIdentity)> =
            files.iter().filter(|(path, file)| is_due(path, file)).cloned().collect();
        let applications = Application::of_each(due.iter().map(|(path, _)| path.as_path()));
        for ((path, file), application) in due.into_iter().zip(applications) {
            let writers = application.pids().filter_map(Identity::of).collect();
            self.known.insert(path, Known { file, writers, looked: Instant::now() });
        }
        let mut found: Vec<Found> = Vec::new();
        // The newest file of a process is last.
        for (path, file) in files.into_iter().rev() {
            let Some(known) = self.known.get(&path) else { continue };
            for writer in known.writers.iter().filter(|writer| writer.lives()) {
                if !found.iter().any(|it| it.process == *writer) {
                    found.push(Found { process: *writer, trace: Some((path.clone(), file.1)) });
                }
            }
        }
        found
    }
}

impl Identity {
    /// A living process.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start: proc::start_of_living(Pid(pid))? })
    }

    fn lives(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }
}
