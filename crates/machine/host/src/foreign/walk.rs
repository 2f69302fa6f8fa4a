//! Resolves a path below a root directory, component by component: for kernels without openat2(2), which Linux has since 5.6.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::HOLD_FLAGS;

/// Limit on links along a path, as in the kernel (path_resolution(7)).
const MAX_LINKS: u32 = 40;

/// Treatment of symbolic links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Links {
    /// Links are followed, from the root if they are absolute, and never out of it.
    Follow,
    /// Links are an error.
    Refuse,
}

/// Holds the file that the path leads to. No directory is asked for its parent, which could be
/// outside by now: the directories that were walked through are held.
pub(super) fn walk(root: &OwnedFd, path: &Path, links: Links) -> io::Result<OwnedFd> {
    let mut through: Vec<OwnedFd> = Vec::new();
    let mut ahead = components(path);
    let mut left = MAX_LINKS;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            through.pop();
            continue;
        }
        let next = openat(
            through.last().unwrap_or(root),
            &name,
            HOLD_FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        if FileType::from_raw_mode(fstat(&next)?.st_mode) != FileType::Symlink {
            through.push(next);
            continue;
        }
        if links == Links::Refuse || left == 0 {
            return Err(Errno::LOOP.into());
        }
        left -= 1;
        let target = readlinkat(&next, "", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            through.clear();
        }
        for name in components(target).into_iter().rev() {
            ahead.push_front(name);
        }
    }
    match through.pop() {
        Some(found) => Ok(found),
        None => Ok(openat(root, ".", HOLD_FLAGS, Mode::empty())?),
    }
}

/// Returns the names in a path, including `..`.
fn components(path: &Path) -> VecDeque<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}
