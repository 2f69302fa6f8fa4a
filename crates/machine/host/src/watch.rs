//! Watches a process for its end, and for the end of the program in it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sys::process::PidFd;
use text::printable::path as printable;

use crate::proc::{self, exe};
use crate::{Pid, Process};

/// A watched process, in which probes are attached to some files.
pub struct Watch {
    pid: u32,
    /// `None` if it had ended before it could be held.
    held: Option<PidFd>,
    /// Files that we are attached to, by device and inode.
    attached: Vec<Identity>,
    program: Option<Identity>,
}

type Identity = (u64, u64);

/// `ESRCH`, which has no kind of its own.
const NO_SUCH_PROCESS: i32 = 3;

impl Watch {
    /// Watches a process in which probes are attached to these files (by names that we can open).
    pub fn new<'a>(pid: u32, files: impl Iterator<Item = &'a Path>) -> std::io::Result<Self> {
        let held = match PidFd::open(pid) {
            Ok(held) => Some(held),
            Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => None,
            Err(error) => return Err(error),
        };
        let mut attached: Vec<Identity> = files.filter_map(identity).collect();
        attached.sort_unstable();
        attached.dedup();
        Ok(Self {
            pid,
            held,
            attached,
            program: identity(&exe(Pid(pid))),
        })
    }

    /// Returns a message if the process has ended.
    pub fn ended(&self) -> Option<String> {
        let ended = self
            .held
            .as_ref()
            .is_none_or(|held| held.has_ended().unwrap_or(true));
        ended.then(|| format!("process {} has ended", self.pid))
    }

    /// Returns the reason if there is nothing left to watch.
    pub fn over(&self) -> Option<String> {
        let pid = self.pid;
        if let Some(ended) = self.ended() {
            return Some(ended);
        }
        if self.is_mapped(identity(&exe(Pid(pid)))?)? {
            return None;
        }
        // Read after the maps: a process that has the new program's maps, or none in the middle of
        // execve(2), has its name by then.
        let program = identity(&exe(Pid(pid)))?;
        if self.program.is_some_and(|before| before != program) {
            let path = proc::program(Pid(pid)).unwrap_or_default();
            return Some(format!(
                "process {pid} now runs another program, {}",
                printable(&path)
            ));
        }
        Some(format!("process {pid} has unmapped the probed code"))
    }

    /// Returns true if the process still has one of the files; `None` if that can't be seen.
    fn is_mapped(&self, program: Identity) -> Option<bool> {
        if self.attached.contains(&program) {
            return Some(true);
        }
        let process = Process::open(Pid(self.pid)).ok()?;
        // The devices in the maps differ from stat(2) on some file systems, so only the inode is
        // compared.
        let inodes = process.maps().code_files();
        Some(inodes.iter().any(|mapping| {
            self.attached
                .iter()
                .any(|&(_, inode)| inode == mapping.inode)
        }))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()
}
