//! System calls that a SIGKILL for this process does not interrupt.
//!
//! When the kernel writes a breakpoint into a process's memory, or removes one, it gives up if a
//! SIGKILL is pending for the calling task (`__get_user_pages` of `mm/gup.c`). If it was about to
//! remove the breakpoint, because an attachment failed or was closed, the breakpoint stays forever:
//! "failed to unregister, leaking uprobe" (`uprobe_unregister_nosync` of
//! `kernel/events/uprobes.c`). So a helper process makes these calls. It shares our memory and our
//! descriptors, but not our signals, so it is not interrupted. It ends once we are gone; everything
//! that it shared is then closed, and no signal disturbs that.

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// Size of the helper process's stack, in words of 16 bytes. It needs a few hundred bytes.
const STACK: usize = 1024;

/// A system call with up to six arguments.
struct Call {
    number: c_long,
    arguments: [c_long; 6],
    done: c_long,
    error: c_int,
}

impl Call {
    /// Makes the call.
    ///
    /// # Safety
    ///
    /// As for [`syscall`].
    unsafe fn make(&mut self) {
        let with = self.arguments;
        // SAFETY: the caller answers for the arguments; the second call returns the address of this
        // thread's error number.
        unsafe {
            self.done = libc::syscall(
                self.number,
                with[0],
                with[1],
                with[2],
                with[3],
                with[4],
                with[5],
            );
            self.error = *libc::__errno_location();
        }
    }
}

extern "C" fn make(call: *mut c_void) -> c_int {
    let call = call.cast::<Call>();
    // SAFETY: `syscall` passes the address of a `Call` that lives until this process has ended, and
    // that nothing else accesses meanwhile; the call's own safety is its caller's promise.
    unsafe {
        // A signal to our group must not reach it either.
        libc::setpgid(0, 0);
        (*call).make();
    }
    0
}

/// Makes a system call in a separate process, or in this one if none can be created.
///
/// # Safety
///
/// The arguments must be right for the call, and the memory they point to must stay valid until it
/// is done.
pub(crate) unsafe fn syscall(number: c_long, arguments: [c_long; 6]) -> io::Result<c_long> {
    let mut call = Call {
        number,
        arguments,
        done: -1,
        error: libc::EAGAIN,
    };
    let call_at = std::ptr::from_mut(&mut call).cast::<c_void>();
    let mut stack = vec![0_u128; STACK];
    // SAFETY: the stack grows down from its end, which is aligned as both machines require (16
    // bytes). We are suspended until the process has ended (`CLONE_VFORK`), so nothing else uses
    // this thread's stack and its thread-local memory. If we are killed, the memory stays as long
    // as that process does. All signals are blocked for it, so it runs no handler of ours. Nothing
    // else is affected by what it shares: no thread of ours waits for a process that it did not
    // create.
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
            // No other process can be created: the call is made here, and may be interrupted.
            call.make();
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    if call.done < 0 {
        Err(io::Error::from_raw_os_error(call.error))
    } else {
        Ok(call.done)
    }
}

/// A descriptor that may have to be closed in a separate process.
#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: ManuallyDrop<OwnedFd>,
    apart: bool,
}

impl Descriptor {
    /// Wraps a descriptor that the kernel closes without interruption.
    pub(crate) fn plain(fd: OwnedFd) -> Self {
        Self {
            fd: ManuallyDrop::new(fd),
            apart: false,
        }
    }

    /// Wraps a descriptor with breakpoints in processes.
    pub(crate) fn apart(fd: OwnedFd) -> Self {
        Self {
            fd: ManuallyDrop::new(fd),
            apart: true,
        }
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
            // SAFETY: the descriptor is ours and open; nothing uses it after this. Closing takes no
            // pointer. It is closed even if that returns an error (close(2)).
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
        let done = unsafe {
            syscall(
                libc::SYS_pipe2,
                [std::ptr::from_mut(&mut ends) as c_long, 0, 0, 0, 0, 0],
            )
        };
        assert_eq!(done.ok(), Some(0));
        let byte = [7_u8];
        // SAFETY: one byte is there; the descriptors are ours.
        let written = unsafe { libc::write(ends[1], byte.as_ptr().cast(), 1) };
        assert_eq!(written, 1);
        // SAFETY: both were created above, and are owned from here on.
        let [from, to] =
            ends.map(|end| Descriptor::apart(unsafe { std::os::fd::FromRawFd::from_raw_fd(end) }));
        drop(to);
        let mut read = [0_u8; 2];
        // SAFETY: there is room for two bytes.
        let mut next =
            || unsafe { libc::read(from.as_fd().as_raw_fd(), read.as_mut_ptr().cast(), 2) };
        // The byte written, and then the end: the other end is closed.
        assert_eq!((next(), next()), (1, 0));
        // SAFETY: no pointers.
        let error = unsafe { syscall(libc::SYS_close, [-1, 0, 0, 0, 0, 0]) }
            .err()
            .and_then(|error| error.raw_os_error());
        assert_eq!(error, Some(libc::EBADF));
    }
}
