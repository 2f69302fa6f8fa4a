//! Finds out that no traced process has loaded what the user probes are in.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use host::{Pid, Process, family, proc};
use text::printable;

use crate::facts::Subject;
use crate::observe::{self, Notice};

/// Longest list of files in a notice.
const MAX_NAMES: usize = 3;

/// Files as the mappings of processes show them. The name counts, too: on overlayfs and btrfs the
/// numbers differ.
struct Wanted {
    inodes: HashSet<u64>,
    names: HashSet<OsString>,
}

impl Wanted {
    fn new(files: &[PathBuf]) -> Self {
        let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
        let name = |file: &PathBuf| real(file).file_name().map(ToOwned::to_owned);
        Self {
            inodes: files
                .iter()
                .filter_map(|file| Some(file.metadata().ok()?.ino()))
                .collect(),
            names: files.iter().filter_map(name).collect(),
        }
    }

    /// Returns whether the process has mapped one of the files; `None` if it can't be read.
    fn is_in(&self, pid: u32) -> Option<bool> {
        let process = Process::open(Pid(pid)).ok()?;
        let is_wanted = |mapping: &kernel_text::maps::Mapping| {
            let name = mapping.file().and_then(Path::file_name);
            self.inodes.contains(&mapping.inode) || name.is_some_and(|it| self.names.contains(it))
        };
        let files = process.mapped_files();
        Some(files.iter().any(|(_, mapping)| is_wanted(mapping)))
    }
}

/// Returns the notice if user probes are in these files, and none of the chosen processes has mapped
/// any of them. A script may have probes for several libraries that do the same, so one is enough.
pub(crate) fn notice(files: &[PathBuf], subject: &Subject) -> Option<Notice> {
    let Subject::Processes(_) = subject else {
        return None;
    };
    let (pids, wanted) = (subject.pids(), Wanted::new(files));
    if files.is_empty() || pids.iter().any(|pid| wanted.is_in(*pid) != Some(false)) {
        return None;
    }
    let children = family::descendants(&pids)
        .into_iter()
        .filter(|pid| !pids.contains(pid) && wanted.is_in(*pid) == Some(true));
    Some(Notice::NotLoaded {
        processes: described(&pids),
        files: names(files),
        children: children.count(),
    })
}

/// Formats the processes as the subject of a sentence in the singular.
fn described(pids: &[u32]) -> String {
    match pids {
        [pid] => {
            let name = proc::name(&proc::folder(Pid(*pid))).unwrap_or_default();
            format!("process {pid} ({}) has not", printable::text(&name))
        }
        several => format!("none of the {} processes has", several.len()),
    }
}

/// Lists the files by their names.
fn names(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| observe::printable(file.file_name().unwrap_or(file.as_os_str()));
    let shown: Vec<String> = files.iter().take(MAX_NAMES).map(name).collect();
    let rest = files.len().saturating_sub(MAX_NAMES);
    match rest {
        0 => shown.join(" or "),
        1 => format!("{} or 1 other", shown.join(", ")),
        rest => format!("{} or {rest} others", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_files_are_named() {
        let listed = |count: usize| {
            let files = ["/a", "/b", "/c", "/d", "/e"].map(PathBuf::from);
            names(&files[..count])
        };
        assert_eq!(listed(1), "a");
        assert_eq!(listed(3), "a or b or c");
        assert_eq!(listed(4), "a, b, c or 1 other");
        assert_eq!(listed(5), "a, b, c or 2 others");
    }
}
