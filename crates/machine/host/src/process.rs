//! A process: its program, and the files whose code it has mapped.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kernel_text::maps::{Mapping, ProcMaps};

use crate::error::HostError;
use crate::file::{FilePlace, Readable};
use crate::proc::{self, Stat};

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: the flags in `/proc/PID/stat` have it for a kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Which field of `/proc/PID/stat` the flags are (proc_pid_stat(5)).
const FLAGS_FIELD: usize = 9;

/// The number of a process in our own PID namespace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A process, as it was when we looked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    pid: Pid,
    /// Where `/proc` has its program, memory and files.
    folder: PathBuf,
    exe: PathBuf,
    maps: ProcMaps,
}

impl Process {
    /// Looks at a process.
    pub fn open(pid: Pid) -> Result<Self, HostError> {
        let folder = proc::folder(pid);
        let stat = Stat::read(&folder).map_err(|_| HostError::NoProcess { pid })?;
        let name = shown_name(&stat.name);
        if stat.number(FLAGS_FIELD).unwrap_or_default() & KERNEL_THREAD != 0 {
            return Err(HostError::KernelThread { pid, name });
        }
        let link = folder.join("exe");
        let exe = std::fs::read_link(&link).map_err(|error| failed(pid, &name, link, error))?;
        let maps = proc::maps(&folder).map_err(|error| failed(pid, &name, folder.join("maps"), error))?;
        Ok(Self { pid, folder, exe, maps })
    }

    /// Makes a process of the code that it had mapped. It may be gone, and somebody else have its number: its files are those of their
    /// paths, if they are the same still, and not those of `/proc`.
    pub fn of_code(pid: Pid, maps: ProcMaps) -> Self {
        // Nobody has that number.
        Self { pid, folder: proc::folder(Pid(0)), exe: PathBuf::new(), maps }
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Where `/proc` has its program, memory and files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes sure that the number is a process's, and not that of another of its threads, whose `/proc` looks the same.
    pub fn is_first_thread(&self) -> Result<(), HostError> {
        let status = || PathBuf::from(format!("/proc/{}/status", self.pid));
        match proc::process_of(self.pid).map_err(|error| failed(self.pid, "", status(), error))? {
            process if process != self.pid => Err(HostError::Thread { thread: self.pid, process }),
            _ => Ok(()),
        }
    }

    /// All that it has mapped.
    pub fn maps(&self) -> &ProcMaps {
        &self.maps
    }

    /// The file of its program.
    pub fn program(&self) -> FilePlace {
        let (path, deleted) = without_mark(&self.exe);
        let exe = Readable::Named(self.folder.join("exe"));
        FilePlace::of_process(&path, deleted, vec![exe], &self.root())
    }

    /// The files whose code it has mapped beside its program, in order of address. Some may be no ELF files.
    pub fn libraries(&self) -> Vec<FilePlace> {
        let (exe, _) = without_mark(&self.exe);
        let files = self.maps.code_files().into_iter().filter(|mapping| mapping.file() != Some(&exe));
        files.filter_map(|mapping| self.library(mapping)).collect()
    }

    /// The program and all other files whose code it has mapped, the program first, each with the mapping of its first code.
    pub fn mapped_files(&self) -> Vec<(FilePlace, &Mapping)> {
        let (exe, _) = without_mark(&self.exe);
        let (own, others): (Vec<_>, Vec<_>) =
            self.maps.code_files().into_iter().partition(|mapping| mapping.file() == Some(&exe));
        let program = own.into_iter().map(|mapping| (self.program(), mapping)).take(1);
        program.chain(others.into_iter().filter_map(|mapping| Some((self.library(mapping)?, mapping)))).collect()
    }

    fn library(&self, mapping: &Mapping) -> Option<FilePlace> {
        let kernel_text::maps::Backing::File { path, deleted } = &mapping.backing else {
            return None;
        };
        // This name is the mapped file itself, whatever happened to its path; only root may use it (proc_pid_map_files(5)).
        let exact = format!("map_files/{:x}-{:x}", mapping.start.0, mapping.end.0);
        let mut readable_at = vec![Readable::Named(self.folder.join(exact))];
        if !deleted {
            readable_at.push(Readable::Below { root: self.root(), path: path.clone() });
            // If the process was only moved to another root directory, the kernel gives paths as we would use them.
            readable_at.push(Readable::Reported { path: path.clone(), inode: mapping.inode });
        }
        Some(FilePlace::of_process(path, *deleted, readable_at, &self.root()))
    }

    /// The process's own root directory, for which we need no mount namespace.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }
}

/// What it means that a file in `/proc/PID` can't be read.
fn failed(pid: Pid, name: &str, path: PathBuf, source: io::Error) -> HostError {
    match source.kind() {
        ErrorKind::PermissionDenied => HostError::ProcessForbidden { pid, path },
        ErrorKind::NotFound if Path::new(&format!("/proc/{pid}")).exists() => {
            HostError::Ended { pid, name: name.to_owned() }
        }
        // ESRCH, where it ended between our opening the file and reading it, has no kind of its own.
        _ if source.kind() == ErrorKind::NotFound || !Path::new(&format!("/proc/{pid}")).exists() => {
            HostError::NoProcess { pid }
        }
        _ => HostError::Read { path, source },
    }
}

/// The mark that the kernel puts behind the name of a file that is gone (`d_path` in `fs/d_path.c`).
pub(crate) fn without_mark(path: &Path) -> (PathBuf, bool) {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = path.as_os_str().as_bytes();
    match bytes.strip_suffix(b" (deleted)") {
        Some(plain) => (std::ffi::OsString::from_vec(plain.to_vec()).into(), true),
        None => (path.to_owned(), false),
    }
}

/// A thread's name as it may be printed.
fn shown_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_thread_is_recognized_by_its_flags() {
        // What /proc/2/stat of a 6.18 kernel has.
        assert_ne!(0x0020_8040 & KERNEL_THREAD, 0);
        assert_eq!(shown_name(b"a\x1b[31m\xff"), "a?[31m\u{fffd}");
    }

    #[test]
    fn a_deleted_program_is_recognized_by_its_mark() {
        assert_eq!(without_mark(Path::new("/bin/a (deleted)")), (PathBuf::from("/bin/a"), true));
        assert_eq!(without_mark(Path::new("/bin/a")), (PathBuf::from("/bin/a"), false));
    }
}
