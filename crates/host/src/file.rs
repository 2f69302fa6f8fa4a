//! An ELF file on this machine: where its bytes can be read, and the bytes.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use probes::elf::ElfImage;

use crate::capabilities::with_file_access;
use crate::debug_file;
use crate::error::HostError;

/// Where a file is, by the name that its user knows and by the names that we can open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePlace {
    path: PathBuf,
    deleted: bool,
    /// The same file by names of ours, the surest first.
    readable_at: Vec<Readable>,
    /// The root directory of whoever uses the file.
    root: PathBuf,
}

/// A name to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Readable {
    pub(crate) path: PathBuf,
    /// It is the file only if it has this inode number.
    pub(crate) inode: Option<u64>,
}

impl FilePlace {
    /// A file by its path in our own view of the file system.
    pub fn at(path: &Path) -> Self {
        let readable = Readable { path: path.to_owned(), inode: None };
        Self { path: path.to_owned(), deleted: false, readable_at: vec![readable], root: PathBuf::from("/") }
    }

    /// A file of a process whose root directory is `root`.
    pub(crate) fn of_process(path: &Path, deleted: bool, readable_at: Vec<Readable>, root: &Path) -> Self {
        Self { path: path.to_owned(), deleted, readable_at, root: root.to_owned() }
    }

    /// The path as its user sees it: for a process in a container, a path in the container.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file was removed or replaced since the process mapped it.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Reads the file. Its first bytes are looked at before the rest, so that mapped data costs nothing.
    pub fn load(&self) -> Result<ElfFile, HostError> {
        self.load_with(Parts::All)
    }

    /// Reads the file's tables and notes; all else is zeros, which take no memory. A large program's USDT probes are found
    /// in a hundredth of the time.
    pub fn load_notes(&self) -> Result<ElfFile, HostError> {
        self.load_with(Parts::Notes)
    }

    /// As [`FilePlace::load_notes`], with the dynamic section.
    pub(crate) fn load_dynamic(&self) -> Result<ElfFile, HostError> {
        self.load_with(Parts::Dynamic)
    }

    fn load_with(&self, parts: Parts) -> Result<ElfFile, HostError> {
        let mut failed = None;
        for readable in &self.readable_at {
            match self.with_access(|| read_elf(readable, parts)) {
                Ok(bytes) => {
                    return Ok(ElfFile { place: self.clone(), opened: readable.path.clone(), bytes });
                }
                Err(error) => failed = Some(self.worse(failed, error)),
            }
        }
        let missing = || io::Error::new(io::ErrorKind::NotFound, "it is deleted, and only root can still read it");
        Err(failed.unwrap_or_else(|| HostError::Read { path: self.path.clone(), source: missing() }))
    }

    /// A file of a process may be read with rights to files of others, one that the user names may not.
    pub(crate) fn with_access<T>(&self, read: impl FnOnce() -> T) -> T {
        if self.root == Path::new("/") { read() } else { with_file_access(read) }
    }

    /// The error to tell, in the user's name for the file: what a file is says more than that it can't be opened, and that
    /// it may not be opened more than that it is not there.
    fn worse(&self, known: Option<HostError>, new: HostError) -> HostError {
        let weight = |error: &HostError| match error {
            HostError::Elf { .. } => 3,
            HostError::NotAFile { .. } => 2,
            HostError::Read { source, .. } => u8::from(source.kind() == io::ErrorKind::PermissionDenied),
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

/// How much of a file to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parts {
    All,
    Notes,
    Dynamic,
}

fn read_elf(readable: &Readable, parts: Parts) -> Result<Vec<u8>, HostError> {
    let path = &readable.path;
    let failed = |source| HostError::Read { path: path.clone(), source };
    // Looked at before it is opened: opening a pipe waits for a writer.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(HostError::NotAFile { path: path.clone() });
    }
    if readable.inode.is_some_and(|inode| inode != std::os::unix::fs::MetadataExt::ino(&metadata)) {
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, "another file has its name now")));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(b"\x7fELF") {
        if parts != Parts::All
            && let Some(sparse) = read_parts(&file, &bytes, metadata.len(), parts).map_err(failed)?
        {
            return Ok(sparse);
        }
        bytes.reserve_exact((metadata.len() as usize).saturating_sub(bytes.len()));
        file.read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    match ElfImage::parse(&bytes) {
        Err(source) => Err(HostError::Elf { path: path.clone(), source }),
        Ok(_) => Ok(bytes),
    }
}

/// More than any program has.
const LARGEST: u64 = 8 << 30;

/// The tables and the notes of a file, and its dynamic section where that is wanted, at their places among zeros; nothing if the whole is to be read.
fn read_parts(file: &File, first: &[u8], length: u64, parts: Parts) -> io::Result<Option<Vec<u8>>> {
    let Some(tables) = probes::elf::table_ranges(first) else { return Ok(None) };
    // Fresh zeroed memory is not there until it is written to; but the kernel may refuse it where it is very much.
    if length > LARGEST {
        return Ok(None);
    }
    let mut bytes = vec![0; length as usize];
    let head = first.len().min(bytes.len());
    bytes[..head].copy_from_slice(&first[..head]);
    let read = |bytes: &mut [u8], ranges: Vec<Range<u64>>| {
        for range in ranges {
            // A range outside of the file is what parsing will complain of.
            if let Some(part) = bytes.get_mut(range.start as usize..range.end as usize) {
                file.read_exact_at(part, range.start)?;
            }
        }
        io::Result::Ok(())
    };
    read(&mut bytes, tables)?;
    let Ok(image) = ElfImage::parse(&bytes) else { return Ok(None) };
    let notes = image.note_ranges();
    read(&mut bytes, notes)?;
    if parts == Parts::Dynamic {
        let section = ElfImage::parse(&bytes).ok().and_then(|image| image.dynamic_range());
        read(&mut bytes, section.into_iter().collect())?;
        let strings = ElfImage::parse(&bytes).ok().and_then(|image| image.dynamic_strings());
        read(&mut bytes, strings.into_iter().collect())?;
    }
    Ok(Some(bytes))
}

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElfFile {
    pub(crate) place: FilePlace,
    opened: PathBuf,
    bytes: Vec<u8>,
}

impl ElfFile {
    /// The path as its user sees it.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// The path under which it was read: where a probe can be attached.
    pub fn opened(&self) -> &Path {
        &self.opened
    }

    /// The same file with all its bytes, where only some were read.
    pub fn whole(&self) -> Result<ElfFile, HostError> {
        self.place.load()
    }

    /// What the bytes are.
    pub fn image(&self) -> Result<ElfImage<'_>, HostError> {
        ElfImage::parse(&self.bytes).map_err(|source| HostError::Elf { path: self.path().to_owned(), source })
    }

    /// The file that this file's debug information was moved to, if it is on this machine: in the file's own container
    /// or outside of it.
    pub fn debug_file(&self) -> Option<ElfFile> {
        let image = self.image().ok()?;
        let path = std::path::absolute(self.path()).ok()?;
        let roots = if self.place.root == Path::new("/") {
            vec![Path::new("/")]
        } else {
            vec![self.place.root.as_path(), Path::new("/")]
        };
        roots.into_iter().find_map(|root| {
            let (path, bytes) = self.place.with_access(|| debug_file::find(&image, &path, root))?;
            Some(ElfFile { place: FilePlace::at(&path), opened: path, bytes })
        })
    }
}
