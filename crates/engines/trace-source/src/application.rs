//! The application behind a trace file: the processes that write the file, and their state.

use std::path::Path;

use host::{Pid, proc};

/// Processes that write a trace file.
#[derive(Default)]
pub struct Application {
    processes: Vec<Process>,
    /// True if some processes' mappings could not be read, and the file's name has no process id.
    blind: bool,
}

/// Process id with the start time, which distinguishes it from later processes with the same id.
#[derive(PartialEq, Eq)]
struct Process {
    pid: u32,
    /// Start time, in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)).
    start_time: u64,
}

impl Application {
    /// Makes the application of these processes, without those that have ended.
    pub fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        Self {
            processes: pids.into_iter().filter_map(Process::find).collect(),
            blind: false,
        }
    }

    /// Finds the processes that have the file mapped or open for writing. If a process may not be
    /// inspected, the id in the file's name decides. Readers of the trace don't count.
    pub fn find(path: &Path) -> Self {
        Self::find_each([path]).pop().unwrap_or_default()
    }

    /// Does the same for several files: all processes are inspected once.
    pub fn find_each<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<Self> {
        let mut found: Vec<_> = paths
            .into_iter()
            .map(|path| (number_of(path), path.metadata(), Self::default()))
            .collect();
        let there = found
            .iter_mut()
            .filter_map(|(named, file, found)| Some((*named, file.as_ref().ok()?.clone(), found)));
        let (files, mut wanted): (Vec<_>, Vec<_>) = there
            .map(|(named, file, found)| (file, (named, found)))
            .unzip();
        for pid in proc::processes()
            .into_iter()
            .filter(|&pid| !files.is_empty() && pid != std::process::id())
        {
            let written = proc::writes(Pid(pid), &files);
            for (index, (named, application)) in wanted.iter_mut().enumerate() {
                match written.as_ref().map(|written| written[index]) {
                    Some(true) => application.add(pid),
                    Some(false) => {}
                    // Without access, the name must do.
                    None if *named == Some(pid) => application.add(pid),
                    None => application.blind |= named.is_none(),
                }
            }
        }
        found
            .into_iter()
            .map(|(_, _, application)| application)
            .collect()
    }

    fn add(&mut self, pid: u32) {
        self.processes.extend(Process::find(pid));
    }

    /// Returns the ids of the processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|process| process.pid)
    }

    /// Returns the advice to name the process that writes a live trace, for a trace that names no
    /// connections.
    pub fn advice(&self) -> Option<String> {
        self.pids().next().map(|pid| {
            format!(
                "the process that writes this trace knows the names of its connections, and which \
                 of them are admin queues: to see both, use -p {pid} alone"
            )
        })
    }

    /// Returns true if the writer can't be known, so that its end can't be seen.
    pub fn is_unknown(&self) -> bool {
        self.processes.is_empty() && self.blind
    }

    /// Returns true if nobody writes the file any more. Without access to the processes, it does
    /// not count as gone.
    pub fn is_gone(&self) -> bool {
        if self.processes.is_empty() {
            return !self.blind;
        }
        self.processes
            .iter()
            .all(|process| Process::find(process.pid).as_ref() != Some(process))
    }
}

impl Process {
    fn find(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            start_time: proc::start_of_living(Pid(pid))?,
        })
    }
}

/// Returns the process id in the name of a trace file, as SPDK names it without a shared memory id.
pub fn number_of(path: &Path) -> Option<u32> {
    path.to_string_lossy()
        .rsplit_once(".pid")
        .and_then(|(_, pid)| pid.parse().ok())
}

/// Returns the words with which a process was started; none without access.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    proc::command_line(Pid(pid))
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let me = Process::find(std::process::id()).unwrap();
        assert!(me.start_time > 0);
        let application = Application {
            processes: vec![me],
            blind: false,
        };
        assert!(!application.is_gone());
        let before = Process {
            pid: std::process::id(),
            start_time: 1,
        };
        assert!(
            Application {
                processes: vec![before],
                blind: false
            }
            .is_gone()
        );
    }
}
