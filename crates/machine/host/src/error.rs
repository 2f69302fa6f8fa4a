//! The errors of reading the machine's state.

use std::io;
use std::path::{Path, PathBuf};

use elf::ElfError;
use kernel_text::TextError;
use thiserror::Error;

use crate::process::Pid;

/// Why the machine's state could not be read.
#[derive(Debug, Error)]
pub enum HostError {
    /// Nothing has this number, or the process ended while we looked.
    #[error("no process has the pid {pid}: /proc/{pid} is not there")]
    NoProcess {
        /// The number.
        pid: Pid,
    },
    /// The kernel's own threads have no program and no memory of their own.
    #[error(
        "pid {pid} ({name}) is a thread of the kernel: it runs no program file (dptrace list --tracepoints lists the kernel's)"
    )]
    KernelThread {
        /// The number.
        pid: Pid,
        /// What the kernel calls it.
        name: String,
    },
    /// A process that has ended, and whose parent has not asked for its exit status yet.
    #[error("pid {pid} ({name}) has ended: /proc/{pid}/exe leads nowhere")]
    Ended {
        /// The number.
        pid: Pid,
        /// What it was called.
        name: String,
    },
    /// A thread that is not its process's first, where a process is needed.
    #[error("{thread} is a thread of process {process}: -p {process} is for all of its threads")]
    Thread {
        /// The number.
        thread: Pid,
        /// Its process.
        process: Pid,
    },
    /// The process is another user's, or protected.
    #[error(
        "not permitted to look at pid {pid} ({path}): it is another user's or protected, which needs CAP_SYS_PTRACE"
    )]
    ProcessForbidden {
        /// The number.
        pid: Pid,
        /// What was looked at.
        path: PathBuf,
    },
    /// We may not read the memory of the process.
    #[error(
        "not permitted to read the memory of pid {pid}: it needs root or CAP_SYS_PTRACE (the same user is enough only if \
         kernel.yama.ptrace_scope is 0 and the process permits it)"
    )]
    MemoryForbidden {
        /// The number.
        pid: Pid,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something can't be read.
    #[error("{}", shown(path))]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory, a device, a socket.
    #[error("{} is no regular file", shown(path))]
    NotAFile {
        /// What.
        path: PathBuf,
    },
    /// A file that can't be traced: a script, no ELF file, 32-bit, of another machine.
    #[error("{}", shown(path))]
    Elf {
        /// The file.
        path: PathBuf,
        /// What it is.
        source: ElfError,
    },
    /// The kernel's tracepoints can't be seen.
    #[error("tracefs is not mounted, looked at {looked_at}")]
    NoTracefs {
        /// The places, separated by commas.
        looked_at: String,
    },
    /// Tracefs is for root.
    #[error("not permitted to read {path}: tracefs is for root")]
    TracefsForbidden {
        /// What was looked at.
        path: PathBuf,
    },
    /// A tracepoint's description is not of the kernel's form.
    #[error("{}", shown(path))]
    Tracepoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TextError,
    },
}

impl HostError {
    /// Whether it is the machine or the user's rights that stand in the way.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::NoTracefs { .. } | Self::TracefsForbidden { .. } | Self::ProcessForbidden { .. })
    }
}

/// A path as it may be printed: foreign names can hold control characters.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_control) { text.escape_debug().to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_to_no_terminal() {
        let error = HostError::NotAFile { path: "a\u{1b}[31mb".into() };
        assert_eq!(error.to_string(), "a\\u{1b}[31mb is no regular file");
    }
}
