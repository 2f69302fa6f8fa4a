//! Files that are whole or absent. A file is written without a name in its folder, and replaces an
//! old file once all of it is on the disk.
//!
//! A file has no name (`O_TMPFILE`, open(2)) until it is whole, so that even a killed process
//! leaves no part of it. If the file system does not support that, the file has a hidden name,
//! which is removed when the value is dropped. A destination that is no regular file (a pipe,
//! `/dev/null`, a descriptor) has nothing to keep, and is written directly.
#![forbid(unsafe_code)]

mod batch;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use batch::Batch;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC, StatxAttributes, StatxFlags, fchmod, linkat,
    openat, statfs, statx,
};
use rustix::io::Errno;
use text::printable::path as printable;

/// End of the hidden names of files that are not whole; these names begin with a point.
pub const UNFINISHED: &str = ".unfinished";
/// Limit on the bytes of a destination's name in a hidden name, which has other parts and at most
/// 255 bytes (`NAME_MAX`).
const MAX_STEM_BYTES: usize = 180;
/// Limit on the symbolic links of a destination, as the kernel has it (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Limit on the hidden names that are tried: others may have left some.
const MAX_TRIES: usize = 1000;
/// Limit on the files of a batch that are open at once; a process may usually have 1024, and each
/// table of an export has a batch.
const MAX_HELD: usize = 128;
/// Limit on the files that an error lists.
const MAX_LISTED: usize = 10;

/// Number of the next hidden name of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Users who may read a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// All users that the umask allows.
    Umask,
    /// The user alone: it has data of a capture.
    Owner,
}

/// A file that is being written. Dropped before it is published, it leaves nothing, and an old file
/// as it was.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    /// Missing if the destination is written directly.
    target: Option<Target>,
}

/// Destination of a file.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    /// Name until it is published, if it has one.
    hidden: Option<PathBuf>,
    replaces: bool,
    is_published: bool,
}

impl Access {
    fn mode(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::Umask => 0o666,
            Self::Owner => 0o600,
        })
    }
}

impl WholeFile {
    /// Begins a file that will go to this path. An old file that the user may not write is not
    /// replaced either.
    pub fn create(path: &Path, access: Access) -> io::Result<Self> {
        let (what, created) = match destination(path) {
            Ok(None) => (
                "opening",
                File::create(path).map(|file| Self { file, target: None }),
            ),
            Ok(Some((real, old))) => {
                let what = if old.is_some() {
                    "writing a new file beside"
                } else {
                    "creating"
                };
                (what, begin(real, old.as_ref(), access))
            }
            Err(error) => ("creating", Err(error)),
        };
        created.map_err(|error| {
            io::Error::new(error.kind(), format!("{what} {}: {error}", printable(path)))
        })
    }

    /// Writes a whole file.
    pub fn write_whole(path: &Path, access: Access, bytes: &[u8]) -> io::Result<()> {
        let mut file = Self::create(path, access)?;
        file.write_all(bytes)
            .and_then(|()| file.commit())
            .map_err(|error| failed(path, &error))
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Stores the file on the disk, puts it in its place, and stores that change, too.
    pub fn commit(mut self) -> io::Result<()> {
        self.store()?;
        let Some(target) = &mut self.target else {
            return Ok(());
        };
        if !target.is_published {
            target.name(&self.file)?;
            target.publish()?;
        }
        sync_folder(folder_of(&target.path))
    }

    /// Puts a growing file in its place, with its present contents. Stores these on the disk first
    /// if there is an old file to lose.
    pub fn publish(&mut self) -> io::Result<()> {
        if self
            .target
            .as_ref()
            .is_some_and(|target| target.replaces && !target.is_published)
        {
            self.store()?;
        }
        let Some(target) = self.target.as_mut().filter(|target| !target.is_published) else {
            return Ok(());
        };
        target.name(&self.file)?;
        target.publish()
    }

    /// Stores the bytes on the disk; a pipe or a device has none.
    fn store(&self) -> io::Result<()> {
        if self.target.is_some() {
            self.file.sync_all()
        } else {
            Ok(())
        }
    }

    /// Stores the file, gives it a hidden name, and closes it.
    fn stage(mut self) -> io::Result<Option<Target>> {
        self.store()?;
        let Some(mut target) = self.target.take() else {
            return Ok(None);
        };
        target.name(&self.file)?;
        Ok(Some(target))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Target {
    /// Gives the file a hidden name beside its place, if it has none.
    fn name(&mut self, file: &File) -> io::Result<()> {
        if self.hidden.is_none() {
            let link = host::proc::own_descriptor(file.as_fd());
            let link_to = |name: &Path| Ok(linkat(CWD, &link, CWD, name, AtFlags::SYMLINK_FOLLOW)?);
            self.hidden = Some(with_hidden_name(&self.path, link_to)?.0);
        }
        Ok(())
    }

    /// Renames the file, which has a hidden name, to its path.
    fn publish(&mut self) -> io::Result<()> {
        if let Some(hidden) = &self.hidden {
            fs::rename(hidden, &self.path)?;
            (self.hidden, self.is_published) = (None, true);
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = fs::remove_file(hidden);
        }
    }
}

/// Returns the path that a destination means, links followed, with the regular file that is there;
/// `None` if the destination is to be written directly.
fn destination(path: &Path) -> io::Result<Option<(PathBuf, Option<fs::Metadata>)>> {
    let old = match path.metadata() {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(real) = resolved(path)? else {
        return Ok(None);
    };
    if old.is_some() && is_mount_point(&real)? {
        let why = "it is a mount point, so it can't be replaced; write to another file";
        return Err(io::Error::new(ErrorKind::ResourceBusy, why));
    }
    // The kernel decides whether the user may write the old file and follow these links (`fs.protected_symlinks`, proc_sys_fs(5)).
    match openat(
        CWD,
        path,
        OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(_) | Err(Errno::NOENT) => Ok(Some((real, old))),
        Err(error) => Err(error.into()),
    }
}

/// Follows the links of a destination; `None` if one of them is the kernel's link to a descriptor,
/// which has no place in a folder.
fn resolved(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = folder_of(&path);
        if statfs(folder)?.f_type as u64 == PROC_SUPER_MAGIC as u64 {
            return Ok(None);
        }
        match fs::read_link(&path) {
            Ok(next) => path = folder.join(next),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(Some(path));
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns true if this is the root of a mount, which rename(2) does not replace: containers mount
/// single files. Before Linux 5.8 it is always false, and the command fails at its end.
fn is_mount_point(path: &Path) -> io::Result<bool> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::empty())?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Begins a file for that place, with the mode of the user's own old file.
fn begin(path: PathBuf, old: Option<&fs::Metadata>, access: Access) -> io::Result<WholeFile> {
    if path.file_name().is_none() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(ErrorKind::IsADirectory.into());
    }
    let (file, hidden) = if let Some(file) = without_name(folder_of(&path), access)? {
        (file, None)
    } else {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = |name: &Path| Ok(File::from(openat(CWD, name, flags, access.mode())?));
        let (name, file) = with_hidden_name(&path, create)?;
        (file, Some(name))
    };
    let target = Target {
        path,
        hidden,
        replaces: old.is_some(),
        is_published: false,
    };
    let file = WholeFile {
        file,
        target: Some(target),
    };
    // The mode of somebody else's file is not copied, and neither are set-user-ID and set-group-ID
    // bits.
    if let Some(old) = old.filter(|old| old.uid() == rustix::process::geteuid().as_raw()) {
        fchmod(&file.file, Mode::from_raw_mode(old.mode() & 0o777))?;
    }
    Ok(file)
}

/// Makes a file without a name; `None` if the file system has no such files, or we could not give
/// it a name later.
fn without_name(folder: &Path, access: Access) -> io::Result<Option<File>> {
    match openat(
        CWD,
        folder,
        OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
        access.mode(),
    ) {
        Ok(file) => {
            let file = File::from(file);
            // Without /proc there is no link to it, and naming it by its descriptor needs CAP_DAC_READ_SEARCH (linkat(2)).
            let has_link = host::proc::own_descriptor(file.as_fd())
                .symlink_metadata()
                .is_ok();
            Ok(has_link.then_some(file))
        }
        // Errors of file systems and kernels without it (open(2)). A missing folder is noticed when
        // a name is tried.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tries hidden names beside a path until one is free.
fn with_hidden_name<T>(
    path: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let stem = path.file_name().unwrap_or_default().as_bytes();
    let stem = OsStr::from_bytes(&stem[..stem.len().min(MAX_STEM_BYTES)]);
    for _ in 0..MAX_TRIES {
        let mut name = OsStr::new(".").to_owned();
        name.push(stem);
        name.push(format!(
            ".{}-{}{UNFINISHED}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let hidden = folder_of(path).join(name);
        match make(&hidden) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return done.map(|value| (hidden, value)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Returns the folder that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Stores the list of a folder's files on the disk. Some file systems can't (`EINVAL`, fsync(2)),
/// and not every folder that can be written can be read: then the system stores it in its own time.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match openat(
        CWD,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Err(Errno::ACCESS) => return Ok(()),
        folder => File::from(folder?),
    };
    match folder.sync_all() {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Returns the error with the file's name; its kind is kept.
pub fn failed(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("writing {}: {error}", printable(path)),
    )
}
