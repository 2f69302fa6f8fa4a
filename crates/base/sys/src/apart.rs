//! System calls that a SIGKILL for this process does not interrupt.
//!
//! When the kernel writes a breakpoint into a process's memory, or removes one, it gives up if a SIGKILL is pending for the
//! task that asked for it (`__get_user_pages` of `mm/gup.c`). If it was about to remove the breakpoint, because an attachment
//! failed or was closed, the breakpoint stays forever: "failed to unregister, leaking uprobe" (`uprobe_unregister_nosync` of
//! `kernel/events/uprobes.c`). So a helper process makes these calls. It shares our memory and our descriptors, but not our
//! signals, so it is not interrupted. When it finds that we are gone, it ends; everything that it shared is then closed, and no
//! signal disturbs that.

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// The stack of the process that makes the call, in words of 16 bytes: it needs a few hundred bytes.
const STACK: usize = 1024;

/// A system call with up to six arguments.
struct Call {
    number: c_long,
    arguments: [c_long; 6],
    done: c_long,
    error: c_int,
}

impl Call {
    /// Makes it.
    ///
    /// # Safety
    ///
    /// As [`syscall`]'s.
    unsafe fn make(&mut self) {
        let with = self.arguments;
        // SAFETY: the caller answers for the arguments; the second call gives the address of this thread's error number.
        unsafe {
            self.done = libc::syscall(self.number, with[0], with[1], with[2], with[3], with[4], with[5]);
            self.error = *libc::__errno_location();
        }
    }
}

extern "C" fn make(call: *mut c_void) -> c_int {
    let call = call.cast::<Call>();
    // SAFETY: `syscall` gives the address of a `Call` that lives until this process has ended, and nobody else looks at
    // meanwhile; the call's own safety is its caller's promise.
    unsafe {
        // Nor does one for our group reach it.
        libc::setpgid(0, 0);
        (*call).make();
    }
    0
}

/// Makes a system call in a process of its own; in this one where there can be no other.
///
/// # Safety
///
/// The arguments are right for the call, and what they point to stays so until it is done.
pub(crate) unsafe fn syscall(number: c_long, arguments: [c_long; 6]) -> io::Result<c_long> {
    let mut call = Call { number, arguments, done: -1, error: libc::EAGAIN };
    let call_at = std::ptr::from_mut(&mut call).cast::<c_void>();
    let mut stack = vec![0_u128; STACK];
    // SAFETY: the stack grows down from its end, which is aligned as both machines want it (16 bytes). We are held until
    // the process has ended (`CLONE_VFORK`), so that nobody else uses this thread's stack and its local memory; if we are
    // killed, the memory stays as long as that process does. All signals are blocked for it, so that it runs no handler
    // of ours. What it shares has no other user of its own: no thread of ours waits for a process that it did not make.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
        let child = libc::clone(make, stack.as_mut_ptr().add(STACK).cast(), flags, call_at);
        if child > 0 {
            while libc::waitpid(child, std::ptr::null_mut(), libc::__WALL) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        } else {
            // There can be no other process: it is made here, and may be broken off.
            call.make();
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    if call.done < 0 { Err(io::Error::from_raw_os_error(call.error)) } else { Ok(call.done) }
}

/// A descriptor that may have to be closed apart.
#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: ManuallyDrop<OwnedFd>,
    apart: bool,
}

impl Descriptor {
    /// Of what the kernel closes undisturbed.
    pub(crate) fn plain(fd: OwnedFd) -> Self {
        Self { fd: ManuallyDrop::new(fd), apart: false }
    }

    /// Of what has breakpoints in processes.
    pub(crate) fn apart(fd: OwnedFd) -> Self {
        Self { fd: ManuallyDrop::new(fd), apart: true }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.apart {
            let number = c_long::from(self.fd.as_raw_fd());
            // SAFETY: it is ours and open; nobody uses it behind this. Closing takes no pointer. It is closed even where
            // that gives an error (close(2)).
            let _ = unsafe { syscall(libc::SYS_close, [number, 0, 0, 0, 0, 0]) };
        } else {
            // SAFETY: it is dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.fd) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_apart_is_ours_in_all_but_signals() {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        let done = unsafe { syscall(libc::SYS_pipe2, [std::ptr::from_mut(&mut ends) as c_long, 0, 0, 0, 0, 0]) };
        assert_eq!(done.ok(), Some(0));
        let byte = [7_u8];
        // SAFETY: one byte is there; the descriptors are ours.
        let written = unsafe { libc::write(ends[1], byte.as_ptr().cast(), 1) };
        assert_eq!(written, 1);
        // SAFETY: both were made above, and are owned from here on.
        let [from, to] = ends.map(|end| Descriptor::apart(unsafe { std::os::fd::FromRawFd::from_raw_fd(end) }));
        drop(to);
        let mut read = [0_u8; 2];
        // SAFETY: there is room for two bytes.
        let mut next = || unsafe { libc::read(from.as_fd().as_raw_fd(), read.as_mut_ptr().cast(), 2) };
        // What was written, and then the end: the other end is closed.
        assert_eq!((next(), next()), (1, 0));
        // SAFETY: no pointers.
        let error =
            unsafe { syscall(libc::SYS_close, [-1, 0, 0, 0, 0, 0]) }.err().and_then(|error| error.raw_os_error());
        assert_eq!(error, Some(libc::EBADF));
    }
}
