//! Files that a process can write.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;

use kernel_text::maps::{Device, Mapping, ProcMaps};

use super::{folder, maps};
use crate::capabilities::with_file_access;
use crate::process::Pid;

/// Returns which of these files a process can write, because it has them mapped or open for
/// writing; `None` if we may not look. Reading a file does not count.
pub fn writes(pid: Pid, files: &[Metadata]) -> Option<Vec<bool>> {
    let folder = folder(pid);
    let maps = maps(&folder).ok()?;
    let mut written: Vec<bool> = files.iter().map(|file| is_written(&maps, file)).collect();
    if written.iter().all(|written| *written) {
        return Some(written);
    }
    with_file_access(|| {
        let open = fs::read_dir(folder.join("fd")).ok()?;
        // The permissions of a link are those with which its file was opened (`tid_fd_revalidate`, fs/proc/fd.c).
        let is_writable =
            |entry: &fs::DirEntry| entry.metadata().is_ok_and(|link| link.mode() & 0o200 != 0);
        for entry in open.flatten().filter(is_writable) {
            let Ok(other) = fs::metadata(entry.path()) else {
                continue;
            };
            let is_same = |file: &Metadata| (other.dev(), other.ino()) == (file.dev(), file.ino());
            written
                .iter_mut()
                .zip(files)
                .for_each(|(written, file)| *written |= is_same(file));
        }
        Some(written)
    })
}

/// Returns true if one of the mappings is of that file, and writing there changes the file.
fn is_written(maps: &ProcMaps, file: &Metadata) -> bool {
    let device = Device {
        major: rustix::fs::major(file.dev()),
        minor: rustix::fs::minor(file.dev()),
    };
    let matches = |mapping: &Mapping| (mapping.device, mapping.inode) == (device, file.ino());
    maps.all()
        .iter()
        .any(|mapping| matches(mapping) && mapping.permissions.write && mapping.permissions.shared)
}
