//! A tracefs of our own: mounted nowhere, so that the machine's mounts stay as they are, and gone with its descriptor.

use std::io;
use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Makes a tracefs that is reached only through the descriptor (`/proc/self/fd/N`). For root; since Linux 5.2
/// (`fsopen(2)`).
pub fn detached_tracefs() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}
