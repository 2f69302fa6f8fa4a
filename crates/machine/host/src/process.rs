//! A process: its program, and the files whose code it has mapped.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kernel_text::maps::{Mapping, ProcMaps};

use crate::error::HostError;
use crate::file::{FilePlace, Readable};
use crate::proc::{self, Stat};

/// Number of a process in our own PID namespace.
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
    /// Folder of `/proc` with its program, memory and files.
    folder: PathBuf,
    exe: PathBuf,
    maps: ProcMaps,
}

impl Process {
    /// Reads a process from `/proc`.
    pub fn open(pid: Pid) -> Result<Self, HostError> {
        let folder = proc::folder(pid);
        let stat = Stat::read(&folder).map_err(|_| HostError::NoProcess { pid })?;
        let name = shown_name(&stat.name);
        if stat.is_kernel_thread() {
            return Err(HostError::KernelThread { pid, name });
        }
        let link = folder.join("exe");
        let exe = std::fs::read_link(&link).map_err(|error| failed(pid, &name, link, error))?;
        let maps =
            proc::maps(&folder).map_err(|error| failed(pid, &name, folder.join("maps"), error))?;
        Ok(Self {
            pid,
            folder,
            exe,
            maps,
        })
    }

    /// Makes a process from the code that it had mapped. It may be gone, and its number another's:
    /// its files are found by their paths, if they are still the same, and not through `/proc`.
    pub fn from_code(pid: Pid, maps: ProcMaps) -> Self {
        // No process has the number 0.
        Self {
            pid,
            folder: proc::folder(Pid(0)),
            exe: PathBuf::new(),
            maps,
        }
    }

    /// Returns its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the folder of `/proc` with its program, memory and files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns an error if the number belongs to another of the process's threads, whose `/proc`
    /// looks the same.
    pub fn is_first_thread(&self) -> Result<(), HostError> {
        let status = || PathBuf::from(format!("/proc/{}/status", self.pid));
        match proc::process_of(self.pid).map_err(|error| failed(self.pid, "", status(), error))? {
            process if process != self.pid => Err(HostError::Thread {
                thread: self.pid,
                process,
            }),
            _ => Ok(()),
        }
    }

    /// Returns all its mappings.
    pub fn maps(&self) -> &ProcMaps {
        &self.maps
    }

    /// Returns the file of its program.
    pub fn program(&self) -> FilePlace {
        let (path, deleted) = without_mark(&self.exe);
        let exe = Readable::Named(self.folder.join("exe"));
        FilePlace::in_process(&path, deleted, vec![exe], &self.root())
    }

    /// Returns the files whose code it has mapped besides its program, in order of address. Some
    /// may not be ELF files.
    pub fn libraries(&self) -> Vec<FilePlace> {
        let (exe, _) = without_mark(&self.exe);
        let files = self
            .maps
            .code_files()
            .into_iter()
            .filter(|mapping| mapping.file() != Some(&exe));
        files.filter_map(|mapping| self.library(mapping)).collect()
    }

    /// Returns the program and all other files whose code it has mapped, the program first, each
    /// with the mapping of its first code.
    pub fn mapped_files(&self) -> Vec<(FilePlace, &Mapping)> {
        let (exe, _) = without_mark(&self.exe);
        let (own, others): (Vec<_>, Vec<_>) = self
            .maps
            .code_files()
            .into_iter()
            .partition(|mapping| mapping.file() == Some(&exe));
        let program = own
            .into_iter()
            .map(|mapping| (self.program(), mapping))
            .take(1);
        program
            .chain(
                others
                    .into_iter()
                    .filter_map(|mapping| Some((self.library(mapping)?, mapping))),
            )
            .collect()
    }

    fn library(&self, mapping: &Mapping) -> Option<FilePlace> {
        let kernel_text::maps::Backing::File { path, deleted } = &mapping.backing else {
            return None;
        };
        // This name is the mapped file itself, even if its path has changed; only root may use it
        // (proc_pid_map_files(5)).
        let exact = format!("map_files/{:x}-{:x}", mapping.start.0, mapping.end.0);
        let mut readable_at = vec![Readable::Named(self.folder.join(exact))];
        if !deleted {
            readable_at.push(Readable::Below {
                root: self.root(),
                path: path.clone(),
            });
            // If the process was only moved to another root directory, the kernel gives paths as we would use them.
            readable_at.push(Readable::Reported {
                path: path.clone(),
                inode: mapping.inode,
            });
        }
        Some(FilePlace::in_process(
            path,
            *deleted,
            readable_at,
            &self.root(),
        ))
    }

    /// Returns the process's own root directory, for which we need no mount namespace.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }
}

/// Converts the error of reading a file in `/proc/PID`.
fn failed(pid: Pid, name: &str, path: PathBuf, source: io::Error) -> HostError {
    match source.kind() {
        ErrorKind::PermissionDenied => HostError::ProcessForbidden { pid, path },
        ErrorKind::NotFound if Path::new(&format!("/proc/{pid}")).exists() => HostError::Ended {
            pid,
            name: name.to_owned(),
        },
        // ESRCH, if it ended between our opening the file and reading it, has no kind of its own.
        _ if source.kind() == ErrorKind::NotFound
            || !Path::new(&format!("/proc/{pid}")).exists() =>
        {
            HostError::NoProcess { pid }
        }
        _ => HostError::Read { path, source },
    }
}

/// Removes the mark that the kernel puts behind the name of a file that is gone (`d_path` in
/// `fs/d_path.c`); returns true if there was one.
pub(crate) fn without_mark(path: &Path) -> (PathBuf, bool) {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = path.as_os_str().as_bytes();
    match bytes.strip_suffix(b" (deleted)") {
        Some(plain) => (std::ffi::OsString::from_vec(plain.to_vec()).into(), true),
        None => (path.to_owned(), false),
    }
}

/// Returns a thread's name as it may be printed.
fn shown_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_without_control_characters() {
        assert_eq!(shown_name(b"a\x1b[31m\xff"), "a?[31m\u{fffd}");
    }

    #[test]
    fn a_deleted_program_is_recognized_by_its_mark() {
        assert_eq!(
            without_mark(Path::new("/bin/a (deleted)")),
            (PathBuf::from("/bin/a"), true)
        );
        assert_eq!(
            without_mark(Path::new("/bin/a")),
            (PathBuf::from("/bin/a"), false)
        );
    }
}
