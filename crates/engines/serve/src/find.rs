//! Finder of the processes to follow, as they come and go.
//!
//! To find who has a file mapped, every process is examined. So this is done only for files that
//! are new or have changed. A file that nobody has is examined again once in a while, since an
//! application takes over the file of the one before it.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::{Pid, proc, user_file};
use ordering::Order as _;
use spdk_trace::Follower;
use trace_source::{Application, FileSource, number_of};

/// Time between two looks at a file that nobody has.
const UNUSED_FILE_RETRY: Duration = Duration::from_secs(20);
/// Time between the first two looks at a file that is no trace, or none yet. It doubles each time,
/// up to [`LAST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(2);
/// Longest time between two looks at a file that is no trace.
const LAST_RETRY: Duration = Duration::from_mins(1);
/// Limit on the files that are opened at one look: anybody can make any number of them.
const MAX_OPENED: usize = 64;

/// Choice of processes.
#[derive(Clone, Debug)]
pub enum ProcessFilter {
    /// All processes that write a trace.
    All,
    /// These processes, whether they write a trace or not.
    These {
        /// Numbers of processes.
        pids: Vec<u32>,
        /// Names of processes.
        names: Vec<String>,
    },
}

/// Process number with the start time, which distinguishes it from a later process of the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

/// Process to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) process: Identity,
    /// Trace and its inode: another file of the same name may take its place.
    pub(crate) trace: Option<(PathBuf, u64)>,
    /// User of the process; `None` if it was named on the command line, and so has a place before
    /// all others.
    pub(crate) user: Option<u32>,
}

/// Process that writes a trace, with its user.
#[derive(Clone, Copy)]
struct Writer {
    process: Identity,
    user: u32,
}

/// File that was looked at.
struct InspectedFile {
    file: FileIdentity,
    /// Processes that write it; `None` if it is no trace.
    writers: Option<Vec<Writer>>,
    looked: Instant,
    /// Time until the next look, if it is no trace.
    retry: Duration,
}

impl InspectedFile {
    /// Returns true if it is time for another look.
    fn is_due(&self, path: &Path) -> bool {
        match &self.writers {
            None => self.looked.elapsed() >= self.retry,
            Some(writers) if writers.iter().any(|writer| writer.process.lives()) => false,
            // If the file's name has a process's number, only that process is of interest.
            Some(_) => {
                self.looked.elapsed() >= UNUSED_FILE_RETRY
                    && number_of(path).is_none_or(|pid| Identity::from_pid(pid).is_some())
            }
        }
    }
}

/// Identity of a file: its device, inode, user, and the time of its last change, since a new file
/// may get the number of an old one.
type FileIdentity = (u64, u64, u32, i64, i64);

fn identity_of(file: &Metadata) -> FileIdentity {
    (
        file.dev(),
        file.ino(),
        file.uid(),
        file.ctime(),
        file.ctime_nsec(),
    )
}

pub(crate) struct Finder {
    wanted: ProcessFilter,
    known: HashMap<PathBuf, InspectedFile>,
}

impl Finder {
    pub(crate) fn new(wanted: ProcessFilter) -> Self {
        Self {
            wanted,
            known: HashMap::new(),
        }
    }

    /// Returns the processes to follow now.
    pub(crate) fn look(&mut self) -> Vec<Candidate> {
        match &self.wanted {
            ProcessFilter::All => self.writers(),
            ProcessFilter::These { pids, names } => {
                let named = names.iter().flat_map(|name| process_selector::called(name));
                let mut pids: Vec<u32> = pids.iter().copied().chain(named).collect();
                pids.order();
                pids.dedup();
                let mut found: Vec<Candidate> =
                    pids.into_iter().filter_map(Self::candidate).collect();
                follow_once(&mut found);
                found
            }
        }
    }

    /// Returns a process that was named; `None` if it does not live.
    fn candidate(pid: u32) -> Option<Candidate> {
        let process = Identity::from_pid(pid)?;
        let trace = trace_source::trace_of(pid).ok().and_then(|path| {
            let inode = path.symlink_metadata().ok()?.ino();
            Some((path, inode))
        });
        Some(Candidate {
            process,
            trace,
            user: None,
        })
    }

    /// Looks into the files that are due: for processes that write them, if they are traces.
    fn look_into(&mut self, files: &[(PathBuf, FileIdentity)]) {
        let is_due = |path: &PathBuf, file: &FileIdentity| match self.known.get(path) {
            Some(known) if known.file == *file => known.is_due(path),
            _ => true,
        };
        // Root's and our own first, then the newest: a user with many files keeps nobody from
        // these.
        let mut due: Vec<_> = files
            .iter()
            .rev()
            .filter(|(path, file)| is_due(path, file))
            .collect();
        due.order_by_key(|(_, (_, _, user, ..))| !user_file::is_trusted(*user));
        let (mut traces, mut others) = (Vec::new(), Vec::new());
        for (path, file) in due.into_iter().take(MAX_OPENED) {
            if is_trace(path) {
                traces.push((path.clone(), *file));
            } else {
                others.push((path.clone(), *file));
            }
        }
        self.note_others(others);
        let applications = Application::find_each(traces.iter().map(|(path, _)| path.as_path()));
        for ((path, file), application) in traces.into_iter().zip(applications) {
            let writers = Some(application.pids().filter_map(Writer::from_pid).collect());
            self.known.insert(
                path,
                InspectedFile {
                    file,
                    writers,
                    looked: Instant::now(),
                    retry: FIRST_RETRY,
                },
            );
        }
    }

    /// Notes files that are no traces: the time until the next look doubles each time.
    fn note_others(&mut self, others: Vec<(PathBuf, FileIdentity)>) {
        for (path, file) in others {
            let before = self
                .known
                .get(&path)
                .filter(|known| known.file == file && known.writers.is_none());
            let retry = before.map_or(FIRST_RETRY, |known| (2 * known.retry).min(LAST_RETRY));
            self.known.insert(
                path,
                InspectedFile {
                    file,
                    writers: None,
                    looked: Instant::now(),
                    retry,
                },
            );
        }
    }

    /// Returns the processes that write the files, each with its newest one, which is last.
    fn newest_of_each(&self, files: Vec<(PathBuf, FileIdentity)>) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        for (path, file) in files.into_iter().rev() {
            let Some(known) = self.known.get(&path) else {
                continue;
            };
            for &Writer { process, user } in known
                .writers
                .iter()
                .flatten()
                .filter(|writer| writer.process.lives())
            {
                if !found.iter().any(|it| it.process == process) {
                    found.push(Candidate {
                        process,
                        trace: Some((path.clone(), file.1)),
                        user: Some(user),
                    });
                }
            }
        }
        found
    }

    /// Returns the processes that write traces.
    fn writers(&mut self) -> Vec<Candidate> {
        // If the files can't be listed, there are none.
        let files = trace_source::trace_files()
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, file)| file.len() > 0);
        let files: Vec<(PathBuf, FileIdentity)> = files
            .map(|(path, file)| (path, identity_of(&file)))
            .collect();
        let there: HashSet<&Path> = files.iter().map(|(path, _)| path.as_path()).collect();
        self.known.retain(|path, _| there.contains(path.as_path()));
        self.look_into(&files);
        let mut found = self.newest_of_each(files);
        // A child that only inherited the file does not write it.
        follow_once(&mut found);
        found.retain(|found| found.trace.is_some());
        found
    }
}

/// Returns true if a file has the head of a trace: anybody can give a file such a name.
fn is_trace(path: &Path) -> bool {
    FileSource::open(path).is_ok_and(|source| Follower::new(&source).is_ok())
}

/// Leaves each trace to one process, since its requests would count several times. That is the
/// process whose number is in the trace's name, or else the one that was started first: others have
/// inherited it.
fn follow_once(found: &mut [Candidate]) {
    let first = |trace: &(PathBuf, u64)| {
        let writers = found
            .iter()
            .filter(|found| found.trace.as_ref() == Some(trace));
        let rank = |process: &Identity| {
            (
                number_of(&trace.0) != Some(process.pid),
                process.start,
                process.pid,
            )
        };
        writers.map(|found| found.process).min_by_key(rank)
    };
    let firsts: Vec<Option<Identity>> = found
        .iter()
        .map(|found| first(found.trace.as_ref()?))
        .collect();
    for (found, first) in found.iter_mut().zip(firsts) {
        if first != Some(found.process) {
            found.trace = None;
        }
    }
}

impl Writer {
    fn from_pid(pid: u32) -> Option<Self> {
        Some(Self {
            process: Identity::from_pid(pid)?,
            user: proc::user(Pid(pid))?,
        })
    }
}

impl Identity {
    /// Returns the identity of a living process; `None` if it does not live.
    pub(crate) fn from_pid(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            start: proc::start_of_living(Pid(pid))?,
        })
    }

    fn lives(&self) -> bool {
        Self::from_pid(self.pid) == Some(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_followed_once() {
        let found = |pid, start, trace: &str| Candidate {
            process: Identity { pid, start },
            trace: (!trace.is_empty()).then(|| (trace.into(), 7)),
            user: None,
        };
        let mut all = [
            found(10, 100, "/dev/shm/a_trace.pid20"),
            found(20, 200, "/dev/shm/a_trace.pid20"),
            found(31, 300, "/dev/shm/b_trace.0"),
            found(30, 300, "/dev/shm/b_trace.0"),
            found(40, 400, ""),
        ];
        follow_once(&mut all);
        let followed = all
            .iter()
            .filter(|found| found.trace.is_some())
            .map(|found| found.process.pid);
        assert_eq!(followed.collect::<Vec<_>>(), [20, 30]);
    }
}
