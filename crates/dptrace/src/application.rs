//! The application behind a trace file: who has the file mapped, and whether it still lives.

use std::path::Path;

use host::{Pid, proc};

/// The processes that write a trace file.
pub(crate) struct Application {
    processes: Vec<Process>,
    /// Some processes' mappings could not be looked at, and the file's name has no number to look for.
    blind: bool,
}

/// A process, by what distinguishes it from a later one of the same id.
#[derive(PartialEq, Eq)]
struct Process {
    pid: u32,
    /// In clock ticks since boot (field 22 of /proc/PID/stat, proc(5)).
    start_time: u64,
}

impl Application {
    /// Finds the processes that have the file mapped, and the one that its name has the number of.
    pub(crate) fn of(path: &Path) -> Self {
        let mut application = Self { processes: Vec::new(), blind: false };
        let Ok(file) = path.metadata() else { return application };
        let named = number_of(path);
        let mut pids = proc::processes();
        pids.retain(|&pid| pid != std::process::id());
        for pid in pids {
            match proc::uses(Pid(pid), &file) {
                Some(true) => application.add(pid),
                Some(false) => {}
                // Where we may not look, the name must do.
                None if named == Some(pid) => application.add(pid),
                None => application.blind |= named.is_none(),
            }
        }
        application
    }

    fn add(&mut self, pid: u32) {
        self.processes.extend(Process::find(pid));
    }

    /// The processes' ids.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|process| process.pid)
    }

    /// Whether it can't be known who writes the file, so that its end can't be seen.
    pub(crate) fn is_unknown(&self) -> bool {
        self.processes.is_empty() && self.blind
    }

    /// Whether nobody writes the file any more. Where we may not look, it is not gone.
    pub(crate) fn is_gone(&self) -> bool {
        if self.processes.is_empty() {
            return !self.blind;
        }
        self.processes.iter().all(|process| Process::find(process.pid).as_ref() != Some(process))
    }
}

impl Process {
    fn find(pid: u32) -> Option<Self> {
        Some(Self { pid, start_time: proc::start_of_living(Pid(pid))? })
    }
}

/// The number of the process that a trace file's name has, as SPDK names it without a shared memory id.
pub(crate) fn number_of(path: &Path) -> Option<u32> {
    path.to_string_lossy().rsplit_once(".pid").and_then(|(_, pid)| pid.parse().ok())
}

/// The words that a process was started with, as far as we may look.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    proc::command_line(Pid(pid)).iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Whether a process has the file mapped or open, as far as we may look.
pub(crate) fn writes(pid: u32, path: &Path) -> bool {
    path.metadata().is_ok_and(|file| proc::uses(Pid(pid), &file) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let me = Process::find(std::process::id()).unwrap();
        assert!(me.start_time > 0);
        let application = Application { processes: vec![me], blind: false };
        assert!(!application.is_gone());
        let before = Process { pid: std::process::id(), start_time: 1 };
        assert!(Application { processes: vec![before], blind: false }.is_gone());
    }
}
