//! A file system that is not in the directory tree: it is private, and ends when its descriptor is closed.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts this kind of file system, as a directory in no tree (`fsopen(2)`, since Linux 5.2). Needs
/// `CAP_SYS_ADMIN`. Files in it are reached through `/proc/self/fd/N`.
pub fn detached(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(CString::new(kind)?, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )?)
}
