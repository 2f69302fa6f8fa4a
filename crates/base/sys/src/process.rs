//! Other processes: whether they are alive, and child processes that wait before they execute their
//! program.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};

/// A process, held by a descriptor that becomes readable when it ends. Since Linux 5.3.
#[derive(Debug)]
pub struct PidFd {
    fd: OwnedFd,
}

impl PidFd {
    /// Opens the process with this id; a thread's id is valid only if it is its process's first.
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid =
            rustix::process::Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            fd: pidfd_open(pid, PidfdFlags::empty())?,
        })
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&self) -> io::Result<bool> {
        wait_readable(self.fd.as_fd(), Duration::ZERO)
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until a descriptor is readable; returns whether it is. A signal ends the wait early.
pub fn wait_readable(fd: BorrowedFd<'_>, at_most: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let at_most = Timespec {
        tv_sec: at_most.as_secs().cast_signed(),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&at_most)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes a few words if that does not block: a pipe takes `PIPE_BUF` bytes wholly or not at all
/// (pipe(7)). For a thread that ends the process, and must not wait for a lock that another thread
/// holds. Returns whether they were written; a reader that is not ready does not get them.
pub fn write_if_ready(fd: BorrowedFd<'_>, words: &[u8]) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let is_ready = poll(&mut fds, Some(&Timespec::default())).is_ok()
        && fds[0].revents().contains(PollFlags::OUT);
    is_ready && rustix::io::write(fd, words).is_ok()
}

/// Waits as [`wait_readable`] does, for either of two descriptors.
pub fn wait_readable_either(fds: [BorrowedFd<'_>; 2], at_most: Duration) -> io::Result<bool> {
    let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let at_most = Timespec {
        tv_sec: at_most.as_secs().cast_signed(),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&at_most)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Ends this process at once, and leaves closing its descriptors to a copy of it. The kernel takes
/// tens of milliseconds for each removed probe, and our parent need not wait for that. Nothing is
/// flushed. The descriptors in `slow` are closed concurrently: simultaneous waits in the kernel
/// overlap.
pub fn exit_leaving_rest(status: u8, slow: &[BorrowedFd<'_>]) -> ! {
    use std::os::fd::AsRawFd;
    let slow: Vec<libc::c_int> = slow.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: nothing of this process is used after this.
    unsafe {
        leave_rest_to_copy(&slow);
        libc::_exit(i32::from(status))
    }
}

/// Creates a copy of this process that closes all open descriptors after this one has ended.
///
/// # Safety
///
/// This process must end next.
unsafe fn leave_rest_to_copy(slow: &[libc::c_int]) {
    // SAFETY: the child, and its own children, make system calls only and take no locks or memory,
    // in any state of the other threads. They never return, so nothing uses a descriptor that they
    // closed.
    unsafe {
        let us = libc::getpid();
        if libc::fork() == 0 {
            // Readers of our output see its end only once all copies are closed.
            for standard in 0..3 {
                libc::close(standard);
            }
            // The last one to close a descriptor is the one that waits: that must not be the
            // process that ends.
            wait_for_parent(us);
            close_together(slow);
            libc::_exit(0);
        }
    }
}

/// Returns the effective user id of the process.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Ends this process at once as the signal would without a handler, so that its parent sees that. A
/// copy of it closes all open descriptors, as for [`exit_leaving_rest`]: links of probes would
/// delay the end.
pub fn end_by_signal(signal: i32) -> ! {
    // SAFETY: all zeros is a `sigaction` with no flags and an empty mask; `SIG_DFL` is a handler
    // that is no code of ours.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
    // SAFETY: nothing of this process is used after this; the set of signals is ours.
    unsafe {
        leave_rest_to_copy(&[]);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
        libc::raise(signal);
        // Signals that are ignored by default do not end a process; then this does.
        libc::_exit(128 + signal)
    }
}

/// Waits until the parent has closed all of its descriptors. A process that has ended has done so
/// (`do_exit` in the kernel's `kernel/exit.c`: `exit_files` comes before `exit_notify`).
///
/// # Safety
///
/// Makes system calls only.
unsafe fn wait_for_parent(parent: libc::pid_t) {
    // SAFETY: the only memory passed is `ended`, which is ours.
    unsafe {
        let ended = libc::syscall(libc::SYS_pidfd_open, parent, 0) as libc::c_int;
        // If the parent is gone already, its id may be another process's.
        if ended >= 0 && libc::getppid() == parent {
            let mut ended = libc::pollfd {
                fd: ended,
                events: libc::POLLIN,
                revents: 0,
            };
            while libc::poll(&raw mut ended, 1, -1) < 0 && libc::getppid() == parent {}
        }
    }
}

/// Closes descriptors concurrently, in processes that share them with this one, and waits for all.
///
/// # Safety
///
/// The descriptors must not be used any more. Makes system calls only.
unsafe fn close_together(slow: &[libc::c_int]) {
    let (none, shared) = (0_usize, (libc::CLONE_FILES | libc::SIGCHLD) as usize);
    for part in slow.chunks(slow.len().div_ceil(MAX_CLOSERS).max(1)) {
        // SAFETY: without a separate stack, the child has a copy of this one, as after fork(2).
        let child = unsafe { libc::syscall(libc::SYS_clone, shared, none, none, none, none) };
        if child > 0 {
            continue;
        }
        // In the child, or in this process if none could be created.
        for descriptor in part {
            // SAFETY: nothing uses it any more, by the caller's promise.
            unsafe { libc::close(*descriptor) };
        }
        if child == 0 {
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) };
        }
    }
    // SAFETY: asks for no status.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// Limit on processes that close descriptors concurrently.
const MAX_CLOSERS: usize = 128;

/// Makes the child of this command end by itself: with SIGKILL when the thread that starts it ends,
/// for any reason (`PR_SET_PDEATHSIG`, prctl(2)), and with SIGALRM after `longest`, which is
/// rounded up to seconds (alarm(2): it persists across `execve`). Children of the child are not
/// bound.
pub fn bind_to_starter(command: &mut Command, longest: Duration) {
    let starter = rustix::process::getpid();
    let seconds = longest
        .as_secs()
        .saturating_add(u64::from(longest.subsec_nanos() > 0));
    let seconds = libc::c_uint::try_from(seconds).unwrap_or(libc::c_uint::MAX);
    let bind = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // A starter that has already ended sends no signal any more.
        if rustix::process::getppid() != Some(starter) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        // SAFETY: no memory is involved.
        unsafe { libc::alarm(seconds) };
        Ok(())
    };
    // SAFETY: between `fork` and `exec` it makes three system calls, and takes neither a lock nor memory.
    unsafe { command.pre_exec(bind) };
}

/// A child that exists and has not run its program yet, so that probes can be attached before its
/// first instruction.
#[derive(Debug)]
pub struct HeldChild {
    pid: u32,
    /// Pipe to the child: a byte lets it go; closing it unwritten ends it.
    go: OwnedFd,
    starting: JoinHandle<io::Result<Child>>,
}

impl HeldChild {
    /// Creates the child. Works without `ptrace`: it waits for a byte from a pipe before its
    /// `exec`.
    pub fn spawn(program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> io::Result<Self> {
        let (pid_from, pid_to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (go_from, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let mut command = Command::new(program);
        command.args(arguments);
        let parents_end = {
            use std::os::fd::AsRawFd;
            go.as_raw_fd()
        };
        let wait = move || {
            // Our copy of the writing end would keep the pipe open when the parent is gone.
            // SAFETY: this child owns its copy of the descriptor, and nothing else in it uses it before its exec.
            unsafe { libc::close(parents_end) };
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            rustix::io::write(&pid_to, &pid.to_ne_bytes())?;
            let mut byte = [0];
            match rustix::io::read(&go_from, &mut byte)? {
                // No one is left to hear of an error.
                // SAFETY: ends this process, which has done nothing yet.
                0 => unsafe { libc::_exit(1) },
                _ => Ok(()),
            }
        };
        // SAFETY: between fork and exec it makes system calls only, and takes no locks or memory.
        unsafe { command.pre_exec(wait) };
        // `spawn` returns once the child has run its program, or has failed to: another thread
        // waits for that.
        let starting = std::thread::Builder::new()
            .name("held child".into())
            .spawn(move || command.spawn())?;
        let mut pid = [0; 4];
        match rustix::io::read(&pid_from, &mut pid)? {
            4 => Ok(Self {
                pid: u32::from_ne_bytes(pid),
                go,
                starting,
            }),
            // The pipe was closed with nothing in it: there is no child, and `spawn` returns the
            // reason.
            _ => Err(joined(starting)
                .err()
                .unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Returns the process id, which stays the same when it runs its program.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it run its program; the error is that of its `exec`.
    pub fn go(self) -> io::Result<Child> {
        rustix::io::write(&self.go, &[1])?;
        drop(self.go);
        joined(self.starting)
    }
}

/// Asks a child that has not been waited for to end (SIGTERM).
pub fn terminate(child: &Child) -> io::Result<()> {
    let pid = rustix::process::Pid::from_child(child);
    Ok(rustix::process::kill_process(
        pid,
        rustix::process::Signal::TERM,
    )?)
}

fn joined(starting: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    starting.join().unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that starts the program panicked",
        ))
    })
}

/// Number of files that a process of ours may have open besides those requested.
const USUAL_FILES: u64 = 512;

/// Makes room for `more` open files than usual: raises this process's soft limit if necessary.
///
/// # Errors
/// If the hard limit is too low.
pub fn make_room_for_files(more: u64) -> io::Result<()> {
    let (limit, wanted) = (
        getrlimit(Resource::Nofile),
        USUAL_FILES.saturating_add(more),
    );
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(rustix::io::Errno::MFILE.into());
    }
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            ..limit
        },
    )?)
}
