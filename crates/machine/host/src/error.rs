//! The errors of reading the machine's state.

use std::io;
use std::path::{Path, PathBuf};

use elf::ElfError;
use kernel_text::TextError;
use thiserror::Error;

use crate::process::Pid;

/// Reason why the machine's state could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// A number without a process, or a process that ended meanwhile.
    #[error("no process has the pid {pid}: /proc/{pid} is not there")]
    NoProcess {
        /// The number.
        pid: Pid,
    },
    /// A thread of the kernel, which has no program and no memory of its own.
    #[error(
        "pid {pid} ({name}) is a thread of the kernel: it runs no program file (dptrace list \
         --tracepoints lists the kernel's)"
    )]
    KernelThread {
        /// The number.
        pid: Pid,
        /// Name of the thread.
        name: String,
    },
    /// A process that has ended, but whose parent has not asked for its exit status yet.
    #[error("pid {pid} ({name}) has ended: /proc/{pid}/exe leads nowhere")]
    Ended {
        /// The number.
        pid: Pid,
        /// Name of the process.
        name: String,
    },
    /// A thread that is not its process's first, where a process is needed.
    #[error("{thread} is a thread of process {process}: -p {process} is for all of its threads")]
    Thread {
        /// The number.
        thread: Pid,
        /// Process of the thread.
        process: Pid,
    },
    /// A process of another user, or a protected one.
    #[error(
        "not permitted to look at pid {pid} ({path}): it is another user's or protected, which \
         needs CAP_SYS_PTRACE"
    )]
    ProcessForbidden {
        /// The number.
        pid: Pid,
        /// Path that was looked at.
        path: PathBuf,
    },
    /// A process whose memory we may not read.
    #[error(
        "not permitted to read the memory of pid {pid}: it needs root or CAP_SYS_PTRACE (the same \
         user is enough only if kernel.yama.ptrace_scope is 0 and the process permits it)"
    )]
    MemoryForbidden {
        /// The number.
        pid: Pid,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A file that can't be read.
    #[error("{}", shown(path))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A directory, a device or a socket in place of a file.
    #[error("{} is not a regular file", shown(path))]
    NotAFile {
        /// Path of it.
        path: PathBuf,
    },
    /// A file that can't be traced: a script, not an ELF file, 32-bit, or of another machine.
    #[error("{}", shown(path))]
    Elf {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: ElfError,
    },
    /// No tracefs, so that the kernel's tracepoints can't be seen.
    #[error("tracefs is not mounted, looked at {looked_at}")]
    NoTracefs {
        /// Paths that were looked at, separated by commas.
        looked_at: String,
    },
    /// A tracefs that only root may read.
    #[error("not permitted to read {path}: tracefs is for root")]
    TracefsForbidden {
        /// Path that was looked at.
        path: PathBuf,
    },
    /// A tracepoint's description that is not in the kernel's format.
    #[error("{}", shown(path))]
    Tracepoint {
        /// The file.
        path: PathBuf,
        /// Error in the description.
        source: TextError,
    },
}

impl HostError {
    /// Returns true if the machine or the user's rights are the obstacle.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::NoTracefs { .. } | Self::TracefsForbidden { .. } | Self::ProcessForbidden { .. }
        )
    }
}

/// Returns a path fit for printing: foreign names can hold control characters.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_to_no_terminal() {
        let error = HostError::NotAFile {
            path: "a\u{1b}[31mb".into(),
        };
        assert_eq!(error.to_string(), "a\\u{1b}[31mb is not a regular file");
    }
}
