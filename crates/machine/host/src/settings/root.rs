//! Files of the kernel below a folder, and the reasons why one could not be read.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kernel_text::cpus::CpuSet;

use crate::proc;

/// Folder that holds /proc and /sys: `/`, or a tree that a test has made.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// Returns the root of this machine.
    pub fn machine() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Returns a tree with the folders `proc` and `sys`.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Returns a path of the kernel's below this root.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Reads a file's text.
    pub(super) fn text(&self, path: &str) -> Reading<String> {
        proc::text(self.path(path)).map_err(|error| UnreadFile::new(path, &error))
    }

    /// Reads a file that is one number.
    pub(super) fn number(&self, path: &str) -> Reading<i64> {
        self.text(path)?.trim().parse().map_err(|_| UnreadFile {
            path: path.to_owned(),
            why: UnreadReason::Strange,
        })
    }

    /// Reads a file that is a list of CPUs.
    pub(super) fn list(&self, path: &str) -> Reading<CpuSet> {
        CpuSet::from_list(&self.text(path)?).ok_or_else(|| UnreadFile {
            path: path.to_owned(),
            why: UnreadReason::Strange,
        })
    }

    /// Reads a file that is a mask of CPUs.
    pub(super) fn mask(&self, path: &str) -> Reading<CpuSet> {
        CpuSet::from_mask(&self.text(path)?).ok_or_else(|| UnreadFile {
            path: path.to_owned(),
            why: UnreadReason::Strange,
        })
    }

    /// Returns the names in a folder, in order.
    pub(super) fn names(&self, path: &str) -> Reading<Vec<String>> {
        let entries =
            std::fs::read_dir(self.path(path)).map_err(|error| UnreadFile::new(path, &error))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// A value that was read, or the reason why it was not.
pub type Reading<T> = Result<T, UnreadFile>;

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// The file, as the kernel names it.
    pub path: String,
    /// Reason.
    pub why: UnreadReason,
}

/// Reason why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// No such file: the kernel does not have it.
    Absent,
    /// No permission for this user.
    Forbidden,
    /// File too large to read in bounded time.
    TooLarge,
    /// Unknown form, or any other failure to read it.
    Strange,
}

impl UnreadFile {
    fn new(path: &str, error: &io::Error) -> Self {
        let why = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => UnreadReason::Absent,
            ErrorKind::PermissionDenied => UnreadReason::Forbidden,
            _ => UnreadReason::Strange,
        };
        Self {
            path: path.to_owned(),
            why,
        }
    }
}

impl fmt::Display for UnreadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            UnreadReason::Absent => "there is no such file here",
            UnreadReason::Forbidden => "only root may read it",
            UnreadReason::TooLarge => "the process has too much memory to read it quickly",
            UnreadReason::Strange => "it has an unknown format",
        };
        write!(f, "{}: {why}", self.path)
    }
}
