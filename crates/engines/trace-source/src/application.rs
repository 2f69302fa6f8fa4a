//! The application behind a trace file: who writes the file, and whether it still lives.

use std::path::Path;

use host::{Pid, proc};

/// The processes that write a trace file.
#[derive(Default)]
pub struct Application {
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
    /// Finds the processes that have the file mapped or open to write it; where we may not look, the one that its name has the number
    /// of. Other readers of the trace are none of them.
    pub fn of(path: &Path) -> Self {
        Self::of_each([path]).pop().unwrap_or_default()
    }

    /// The same for each of several files: all processes are looked at once.
    pub fn of_each<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<Self> {
        let mut found: Vec<_> =
            paths.into_iter().map(|path| (number_of(path), path.metadata(), Self::default())).collect();
        let there =
            found.iter_mut().filter_map(|(named, file, found)| Some((*named, file.as_ref().ok()?.clone(), found)));
        let (files, mut wanted): (Vec<_>, Vec<_>) = there.map(|(named, file, found)| (file, (named, found))).unzip();
        for pid in proc::processes().into_iter().filter(|&pid| !files.is_empty() && pid != std::process::id()) {
            let written = proc::writes(Pid(pid), &files);
            for (index, (named, application)) in wanted.iter_mut().enumerate() {
                match written.as_ref().map(|written| written[index]) {
                    Some(true) => application.add(pid),
                    Some(false) => {}
                    // Where we may not look, the name must do.
                    None if *named == Some(pid) => application.add(pid),
                    None => application.blind |= named.is_none(),
                }
            }
        }
        found.into_iter().map(|(_, _, application)| application).collect()
    }

    fn add(&mut self, pid: u32) {
        self.processes.extend(Process::find(pid));
    }

    /// The processes' ids.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|process| process.pid)
    }

    /// Whether it can't be known who writes the file, so that its end can't be seen.
    pub fn is_unknown(&self) -> bool {
        self.processes.is_empty() && self.blind
    }

    /// Whether nobody writes the file any more. Where we may not look, it is not gone.
    pub fn is_gone(&self) -> bool {
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
pub fn number_of(path: &Path) -> Option<u32> {
    path.to_string_lossy().rsplit_once(".pid").and_then(|(_, pid)| pid.parse().ok())
}

/// The words that a process was started with, as far as we may look.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    proc::command_line(Pid(pid)).iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
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
