//! An ELF file on this machine: its location and its bytes.

mod elf_file;
mod readable;

use std::hash::Hash;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::capabilities::with_file_access;
use crate::error::HostError;
use crate::foreign::{self, OpenedFile};
use crate::parts::Parts;
pub use elf_file::ElfFile;
pub(crate) use readable::Readable;
use readable::{HeldFile, is_our_root, through_root};

/// Location of a file: the name that its user knows, and the names that we can open.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FilePlace {
    path: PathBuf,
    deleted: bool,
    /// Names by which we can open the same file, the surest first.
    readable_at: Vec<Readable>,
    /// Root directory of the process that uses the file.
    root: PathBuf,
    /// True if it was found through a process, and not named by the user.
    of_process: bool,
}

/// Joins a root directory and a path as seen from there.
pub(crate) fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

impl FilePlace {
    /// Returns a file by its path in our own view of the file system. Below `/proc/PID/root` no
    /// link leads out of that.
    pub fn at(path: &Path) -> Self {
        let root = through_root(path).map_or_else(|| PathBuf::from("/"), |(root, _)| root);
        Self {
            path: path.to_owned(),
            deleted: false,
            readable_at: vec![Readable::ours(path)],
            root,
            of_process: false,
        }
    }

    /// Returns a file that a process had mapped, by the path and the inode number that the kernel
    /// reported: for processes that have exited.
    pub fn reported(path: &Path, inode: u64) -> Self {
        let readable = Readable::Reported {
            path: path.to_owned(),
            inode,
        };
        let root = PathBuf::from("/");
        Self {
            path: path.to_owned(),
            deleted: false,
            readable_at: vec![readable],
            root,
            of_process: false,
        }
    }

    /// Returns a file below a root directory, found through this one.
    pub(crate) fn related(&self, root: &Path, path: &Path) -> Self {
        let readable_at = vec![Readable::Below {
            root: root.to_owned(),
            path: path.to_owned(),
        }];
        let (path, root) = (under(root, path), root.to_owned());
        Self {
            path,
            deleted: false,
            readable_at,
            root,
            of_process: self.of_process,
        }
    }

    /// Returns a file of a process whose root directory is `root`.
    pub(crate) fn in_process(
        path: &Path,
        deleted: bool,
        readable_at: Vec<Readable>,
        root: &Path,
    ) -> Self {
        Self {
            path: path.to_owned(),
            deleted,
            readable_at,
            root: root.to_owned(),
            of_process: true,
        }
    }

    /// Returns a file beside this one, as the user of this one sees it: `relative` is a path from
    /// this one's folder.
    #[must_use]
    pub fn beside(&self, relative: &Path) -> Self {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if self.root == Path::new("/") && !self.of_process {
            return Self::at(&folder.join(relative));
        }
        self.related(&self.root, &folder.join(relative))
    }

    /// Holds the same file open. It can be read and probed for as long as this place or a copy of
    /// it exists, even after the process ended through which it was found. If that process has our
    /// own view of the file system, debug files are found without it, too.
    pub fn hold(&self) -> Result<Self, HostError> {
        let readable_at = vec![Readable::Held(HeldFile(Arc::new(self.open()?)))];
        let root = if is_our_root(&self.root) {
            PathBuf::from("/")
        } else {
            self.root.clone()
        };
        Ok(Self {
            readable_at,
            root,
            ..self.clone()
        })
    }

    /// Returns the path as its user sees it: for a process in a container, a path in the container.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path as seen by a process whose root directory is not ours (chroot(2)): the
    /// kernel reports its files by our paths. `None` if these are the same, or the process is gone.
    pub fn path_inside(&self) -> Option<PathBuf> {
        let root = std::fs::read_link(&self.root)
            .ok()
            .filter(|root| root != Path::new("/"))?;
        Some(Path::new("/").join(self.path.strip_prefix(root).ok()?))
    }

    /// Returns true if the file was removed or replaced since the process mapped it.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Returns the root directory of the process that uses the file.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the parts of the file that a process has in its memory, and its symbol tables. All
    /// else is zeros, which take no memory.
    pub fn load(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Program)
    }

    /// Reads the file's tables and notes; all else is zeros. This finds a large program's USDT
    /// probes in a hundredth of the time.
    pub fn load_notes(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Notes)
    }

    /// Reads the file's symbol tables, tables and notes; all else is zeros.
    pub fn load_symbols(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Symbols)
    }

    /// Reads the unwind table (`.eh_frame`), tables and notes; all else is zeros.
    pub fn load_unwinding(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Unwinding)
    }

    /// Reads the file's debug information, symbol tables, tables and notes; all else is zeros.
    pub fn load_debug(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Debug)
    }

    /// Reads the parts that types need, except `.debug_info`: [`FilePlace::reader`] reads that in
    /// parts.
    pub fn load_types(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Types)
    }

    /// Opens the file, to read parts of it later.
    pub fn reader(&self) -> Result<FileReader, HostError> {
        self.open().map(FileReader)
    }

    /// Reads the same as [`FilePlace::load_notes`], and the dynamic section.
    pub(crate) fn load_dynamic(&self) -> Result<ElfFile, HostError> {
        self.load_parts(Parts::Dynamic)
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<OpenedFile, HostError> {
        self.open_with(|readable| Ok(readable.open()?.0))
    }

    /// Returns at most `most` bytes from the beginning of a file of any kind.
    pub fn first_bytes(&self, most: usize) -> Result<Vec<u8>, HostError> {
        self.open_with(|readable| Ok(readable.open()?.0.head(most)?))
    }

    pub(crate) fn load_parts(&self, parts: Parts) -> Result<ElfFile, HostError> {
        self.open_with(|readable| {
            let (file, opened) = readable.open()?;
            ElfFile::read(self.clone(), opened, &file, parts)
        })
    }

    /// Tries the names of the file in order; returns the first success.
    fn open_with<T>(
        &self,
        open: impl Fn(&Readable) -> Result<T, FileReadError>,
    ) -> Result<T, HostError> {
        let mut failed = None;
        for readable in &self.readable_at {
            match self.with_access(|| open(readable)) {
                Ok(found) => return Ok(found),
                Err(error) => failed = Some(self.worse(failed, error.at(readable.path()))),
            }
        }
        let missing = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                "it is deleted, and only root can still read it",
            )
        };
        Err(failed.unwrap_or_else(|| HostError::Read {
            path: self.path.clone(),
            source: missing(),
        }))
    }

    /// Reads with rights to other users' files if a process uses the file, but not if the user
    /// named it.
    pub(crate) fn with_access<T>(&self, read: impl FnOnce() -> T) -> T {
        if self.of_process {
            with_file_access(read)
        } else {
            read()
        }
    }

    /// Chooses the error to report, with the user's name for the file. The kind of the file says
    /// more than a failure to open it, and a missing permission more than a missing file.
    fn worse(&self, known: Option<HostError>, new: HostError) -> HostError {
        let weight = |error: &HostError| match error {
            HostError::Elf { .. } => 3,
            HostError::NotAFile { .. } => 2,
            HostError::Read { source, .. } => {
                u8::from(source.kind() == io::ErrorKind::PermissionDenied)
            }
            _ => 0,
        };
        let path = self.path.clone();
        let new = match new {
            HostError::Elf { source, .. } => HostError::Elf { path, source },
            HostError::NotAFile { .. } => HostError::NotAFile { path },
            HostError::Read { source, .. } => HostError::Read { path, source },
            other => other,
        };
        match known {
            Some(known) if weight(&known) >= weight(&new) => known,
            _ => new,
        }
    }
}

/// An open file.
#[derive(Debug)]
pub struct FileReader(OpenedFile);

impl FileReader {
    /// Fills `into` from this byte offset of the file on.
    pub fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }
}

/// Reason why a file was not read.
pub(crate) enum FileReadError {
    /// An I/O error.
    Io(io::Error),
    /// The file is not an ELF file.
    Elf(elf::ElfError),
}

impl From<io::Error> for FileReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FileReadError {
    fn at(self, path: PathBuf) -> HostError {
        match self {
            Self::Io(error) if foreign::is_no_file(&error) => HostError::NotAFile { path },
            Self::Io(source) => HostError::Read { path, source },
            Self::Elf(source) => HostError::Elf { path, source },
        }
    }
}

#[cfg(test)]
mod tests;
