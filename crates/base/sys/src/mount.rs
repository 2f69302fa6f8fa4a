//! A file system that is not in the directory tree: it is private, and ends when its descriptor is closed.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A mount of this kind of file system, as a directory that is in nobody's tree (`fsopen(2)`, since Linux 5.2). It needs
/// `CAP_SYS_ADMIN`. Files in it are reached through `/proc/self/fd/N`.
pub fn detached(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(CString::new(kind)?, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?)
}
