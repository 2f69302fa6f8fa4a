//! Ways to a file: a path of ours, one below the root of a process, or a held file.

use crate::file::under;
use crate::foreign::{self, OpenedFile};
use crate::proc;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A name to try.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Readable {
    /// A path that the user named, or a link of the kernel to the file itself.
    Named(PathBuf),
    /// A path below a root directory; no link leads out of that.
    Below {
        /// The directory.
        root: PathBuf,
        /// The path, as seen from there.
        path: PathBuf,
    },
    /// A path in our view that the kernel reported; it only counts if the file there has this inode
    /// number.
    Reported {
        /// The path.
        path: PathBuf,
        /// The inode number.
        inode: u64,
    },
    /// The file itself, held open.
    Held(HeldFile),
}

/// A file that is kept open.
#[derive(Clone, Debug)]
pub(crate) struct HeldFile(pub(super) Arc<OpenedFile>);

impl PartialEq for HeldFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HeldFile {}

impl Hash for HeldFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Readable {
    /// Returns the name for a path in our own view, which may lead through a process's root.
    pub(super) fn ours(path: &Path) -> Self {
        match through_root(path) {
            Some((root, path)) => Self::Below { root, path },
            None => Self::Named(path.to_owned()),
        }
    }

    /// Returns the path in our own view.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Self::Named(path) | Self::Reported { path, .. } => path.clone(),
            Self::Below { root, path } => under(root, path),
            Self::Held(held) => held.0.link(),
        }
    }

    /// Opens the file; returns it with a path in our view where it can be found.
    pub(super) fn open(&self) -> io::Result<(OpenedFile, PathBuf)> {
        match self {
            Self::Named(path) => foreign::named(path).map(|file| (file, path.clone())),
            Self::Below { root, path } => {
                let file = foreign::below(root, path)?;
                let opened = under(root, &file.real);
                Ok((file, opened))
            }
            Self::Reported { path, inode } => {
                let file = foreign::reported(path)?;
                if file.inode != *inode {
                    return Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        "another file has its name now",
                    ));
                }
                Ok((file, path.clone()))
            }
            Self::Held(held) => {
                let path = held.0.link();
                foreign::named(&path).map(|file| (file, path))
            }
        }
    }
}

/// Splits a path that leads through `/proc/PID/root` into that directory and the path as seen from
/// there.
pub(super) fn through_root(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut components = path.components();
    let first: Vec<_> = components.by_ref().take(4).collect();
    let [
        Component::RootDir,
        Component::Normal(proc),
        Component::Normal(_),
        Component::Normal(root),
    ] = first[..]
    else {
        return None;
    };
    let inside = components.as_path();
    let is_one = proc == "proc" && root == "root" && !inside.as_os_str().is_empty();
    is_one.then(|| (first.iter().collect(), Path::new("/").join(inside)))
}

/// Returns true if a process's root directory (`/proc/PID/root`) is our own, with the same mounts
/// below it.
pub(super) fn is_our_root(root: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|it| (it.dev(), it.ino()));
    let mounts = |folder: &Path| std::fs::read_link(folder.join("ns/mnt")).ok();
    let own = proc::own_folder();
    let is_same = identity(root).is_some() && identity(root) == identity(Path::new("/"));
    is_same
        && root
            .parent()
            .and_then(mounts)
            .is_some_and(|theirs| mounts(&own) == Some(theirs))
}
