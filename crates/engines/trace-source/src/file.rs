//! Trace files as sources of bytes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use host::capabilities::with_file_access;
use host::user_file;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use spdk_trace::{JsonTrace, ReadAt};

use crate::trace_files::{NAME_BASE, SHM};

/// File that may be written to while it is read.
pub struct FileSource {
    file: File,
    len: u64,
    is_regular: bool,
}

impl FileSource {
    /// Opens a file. An application's trace file is opened with the right to read files of others.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::from_file(if is_of_application(path) {
            open_application(path)
        } else {
            user_file::open(path)
        }?)
    }

    /// Opens a member of a capture's folder.
    pub fn open_member(path: &Path) -> io::Result<Self> {
        Self::from_file(user_file::open_member(path)?)
    }

    fn from_file(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            file,
            len: metadata.len(),
            is_regular: metadata.is_file(),
        })
    }

    /// Returns a handle of the same open file for another reader, even if its name means another
    /// file by now.
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            len: self.len,
            is_regular: self.is_regular,
        })
    }

    /// Returns true if it can be read at any position, unlike a pipe.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Returns the open file.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Returns true if it starts as text does, unlike a raw trace file.
    pub fn is_text(&self) -> io::Result<bool> {
        let mut start = [0; 512];
        let n = self.read_at(&mut start, 0)?;
        Ok(JsonTrace::is_text(&start[..n]))
    }
}

impl ReadAt for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buf, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

/// Returns true if it is a trace file in the place where applications put theirs: it may be another
/// user's.
pub fn is_of_application(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(OsStr::as_encoded_bytes)
        .unwrap_or_default();
    path.parent() == Some(Path::new(SHM))
        && name
            .windows(NAME_BASE.len())
            .any(|part| part == NAME_BASE.as_bytes())
}

/// Opens a file with the right to read files of others, unless the name is a link: all users can
/// put links there, which are followed with the user's rights only.
fn open_application(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match with_file_access(|| rustix::fs::open(path, flags, Mode::empty())) {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) => user_file::open(path),
        Err(error) => Err(error.into()),
    }
}
