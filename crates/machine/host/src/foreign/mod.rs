//! The one place that opens files reached through a process: its program, its mapped files, their
//! debug files, and the sockets on which it answers (`control` connects to them).
//!
//! The owner of the process chose these names and the files, and can change both at any time. So a file is first opened with
//! `O_PATH` (open(2)), which never blocks and touches no device. Then its type and file system are checked. Only a regular file
//! of a file system that stores files is opened for reading, and it is exactly the file that was checked. Paths below a process's
//! root do not lead out of it (`RESOLVE_IN_ROOT` of openat2(2), or [`walk`]).

mod systems;
mod walk;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2};
use rustix::io::Errno;

use crate::proc::own_descriptor;

/// Flags to hold a file before it is opened.
const HOLD_FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Attempts to resolve a path if something is renamed meanwhile (openat2(2): `EAGAIN`).
const ATTEMPTS: u32 = 16;
/// Bytes that may be read of a file beyond a multiple of its size on the disk.
const EXTRA_BYTES: u64 = 16 << 20;
/// Limit on a file's contents as a multiple of its size on the disk: file systems compress, and a
/// hole reads as zeros.
const MAX_COMPRESSION_RATIO: u64 = 16;
/// Bytes that may be read of a file if the file system does not state its size on the disk.
const UNSTATED: u64 = 1 << 30;
/// Limit on the bytes that are read of any file: more than any program has.
const MAX_FILE_BYTES: u64 = 8 << 30;

/// A regular file that was opened for reading.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    file: File,
    /// Path without symbolic links, as seen from the root below which it was opened.
    pub(crate) real: PathBuf,
    /// Length in bytes, including holes.
    pub(crate) length: u64,
    /// Bytes on the disk; 0 if the file system does not say.
    on_disk: u64,
    /// Inode number.
    pub(crate) inode: u64,
    /// User id of the owner, in our own user namespace.
    pub(crate) owner: u32,
}

/// Opens a file by a path in our own view: one that the user named, or a link of the kernel to a
/// process's file (`/proc/PID/exe`, `/proc/PID/map_files/..`). Follows links.
pub(crate) fn named(path: &Path) -> io::Result<OpenedFile> {
    open(
        &openat(CWD, path, HOLD_FLAGS, Mode::empty())?,
        path.to_owned(),
    )
}

/// Opens a file by its path below a root directory. No link leads out of that directory.
pub(crate) fn below(root: &Path, path: &Path) -> io::Result<OpenedFile> {
    let root = hold_root(root)?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let held = resolve(&root, path, inside, walk::Links::Follow)?;
    let real = path_within(&root, &held).unwrap_or_else(|| path.to_owned());
    open(&held, real)
}

/// Holds a socket by its path below a root directory; no link leads out of that directory. Returns
/// it with its owner in our own user namespace, and does not connect to it.
pub(crate) fn socket_below(root: &Path, path: &Path) -> io::Result<(OwnedFd, u32)> {
    let root = hold_root(root)?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let held = resolve(&root, path, inside, walk::Links::Follow)?;
    let stat = fstat(&held)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => Ok((held, stat.st_uid)),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a socket",
        )),
    }
}

/// Opens a file of ours by a path that the kernel reported: there are no links in it.
pub(crate) fn reported(path: &Path) -> io::Result<OpenedFile> {
    let root = hold_root(Path::new("/"))?;
    let plain = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    open(
        &resolve(&root, path, plain, walk::Links::Refuse)?,
        path.to_owned(),
    )
}

fn hold_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(openat(
        CWD,
        root,
        HOLD_FLAGS | OFlags::DIRECTORY,
        Mode::empty(),
    )?)
}

fn resolve(
    root: &OwnedFd,
    path: &Path,
    how: ResolveFlags,
    links: walk::Links,
) -> io::Result<OwnedFd> {
    for _ in 0..ATTEMPTS {
        match openat2(root, path, HOLD_FLAGS, Mode::empty(), how) {
            Ok(held) => return Ok(held),
            Err(Errno::AGAIN) => {}
            // Linux before 5.6 has no such call, and some containers' filters refuse what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => return walk::walk(root, path, links),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        ErrorKind::ResourceBusy,
        "its folders keep being renamed",
    ))
}

/// Returns the path of a held file, as seen from the root.
fn path_within(root: &OwnedFd, held: &OwnedFd) -> Option<PathBuf> {
    let path = |held: &OwnedFd| std::fs::read_link(own_descriptor(held.as_fd())).ok();
    let (root, path) = (path(root)?, path(held)?);
    Some(Path::new("/").join(path.strip_prefix(root).ok()?))
}

/// Opens a held file, if it is a regular one.
fn open(held: &OwnedFd, real: PathBuf) -> io::Result<OpenedFile> {
    let stat = fstat(held)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(NotAFile.into());
    }
    let kind = fstatfs(held)?.f_type;
    if let Some(name) = systems::without_files(kind as u64) {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("it is on the kernel's own file system {name}"),
        ));
    }
    // The link leads to the held file, even if another file has its name by now.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(openat(
        CWD,
        own_descriptor(held.as_fd()),
        flags,
        Mode::empty(),
    )?);
    let [length, blocks] =
        [stat.st_size, stat.st_blocks].map(|number| u64::try_from(number).unwrap_or_default());
    Ok(OpenedFile {
        file,
        real,
        length,
        on_disk: blocks.saturating_mul(512),
        inode: stat.st_ino,
        owner: stat.st_uid,
    })
}

impl OpenedFile {
    /// Returns the file itself.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Returns a name of this very file, for as long as it is open.
    pub(crate) fn link(&self) -> PathBuf {
        own_descriptor(self.file.as_fd())
    }

    /// Fills `bytes` from this byte offset of the file on.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// Returns at most `most` bytes from the beginning of the file.
    pub(crate) fn head(&self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; most];
        let mut known = 0;
        while known < most {
            match self.file.read_at(&mut bytes[known..], known as u64) {
                Ok(0) => break,
                Ok(more) => known += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(known);
        Ok(bytes)
    }

    /// Returns all of a file; an error if it has more than `most` bytes.
    pub(crate) fn text(&self, most: u64) -> io::Result<Vec<u8>> {
        if self.length > most {
            let message = format!("{} bytes long, but at most {most} are read", self.length);
            return Err(io::Error::new(ErrorKind::FileTooLarge, message));
        }
        self.head(self.length as usize)
    }

    /// Returns an error if this is too much to read: a file may claim any length, with only a few
    /// bytes on the disk.
    pub(crate) fn may_read(&self, wanted: u64) -> io::Result<()> {
        let there = if self.on_disk == 0 {
            UNSTATED
        } else {
            self.on_disk.saturating_mul(MAX_COMPRESSION_RATIO)
        };
        let most = there.saturating_add(EXTRA_BYTES).min(MAX_FILE_BYTES);
        if wanted <= most {
            return Ok(());
        }
        let on_disk = self.on_disk;
        let message = format!(
            "it claims {wanted} bytes and has {on_disk} on the disk: at most {most} would be read"
        );
        Err(io::Error::new(ErrorKind::FileTooLarge, message))
    }

    /// Returns the CRC-32 of all its bytes, without keeping them in memory.
    pub(crate) fn checksum(&self) -> io::Result<u32> {
        /// Bytes per read.
        const READ_BYTES: u64 = 1 << 18;
        self.may_read(self.length)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut piece = vec![0; READ_BYTES.min(self.length) as usize];
        let mut offset = 0;
        while offset < self.length {
            let length = READ_BYTES.min(self.length - offset) as usize;
            self.read_exact_at(&mut piece[..length], offset)?;
            hasher.update(&piece[..length]);
            offset += length as u64;
        }
        Ok(hasher.finalize())
    }
}

/// Error of [`open`] for a directory, a device or a pipe, which its callers recognize.
#[derive(Debug, thiserror::Error)]
#[error("it is not a regular file")]
pub(crate) struct NotAFile;

impl From<NotAFile> for io::Error {
    fn from(this: NotAFile) -> Self {
        Self::new(ErrorKind::InvalidInput, this)
    }
}

/// Returns true if an error is [`NotAFile`].
pub(crate) fn is_no_file(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotAFile>)
}

#[cfg(test)]
mod tests;
