//! The stopper: a child process that stops this one for a while with SIGSTOP, and continues it with
//! SIGCONT.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_parent_process_death_signal, waitpid,
};
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;

use super::schedule;
use super::truth::Culprit;
use super::watch::Watch;
use crate::options::Options;

/// Name of the child, for the kernel's events.
const NAME: &std::ffi::CStr = c"stopper";

/// Handle of the child, which ends when it is dropped, or if this process is killed.
#[derive(Debug)]
pub(crate) struct Stopper {
    child: Pid,
    orders: Option<OwnedFd>,
    /// Pipe with a byte for each stop, written before the stop ends.
    done: OwnedFd,
}

impl Stopper {
    /// Starts it; it stops this process for `options.inject_for` each time.
    pub(crate) fn start(options: &Options) -> io::Result<Self> {
        let (length, may_burst) = (options.inject_for, schedule::helper_may_burst(options));
        let target = getpid();
        let (ordered, orders) = pipe_with(PipeFlags::CLOEXEC)?;
        let (done, report) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&done, OFlags::NONBLOCK)?;
        let Some(child) = fork()? else {
            // The child's own copy would keep the pipe open when this process is gone.
            drop(orders);
            obey(&ordered, &report, target, length, may_burst)
        };
        Ok(Self {
            child,
            orders: Some(orders),
            done,
        })
    }

    /// Orders a stop that starts at the thread `reactor`, the calling one. Polls until it is over,
    /// or until the ticks `give_up`.
    pub(crate) fn stop(
        &self,
        reactor: u32,
        watch: &mut Watch,
        give_up: u64,
    ) -> io::Result<Culprit> {
        if let Some(orders) = &self.orders {
            rustix::io::write(orders, &reactor.to_ne_bytes())?;
        }
        let mut seen = watch.taken;
        while watch.look() < give_up {
            // Only a gap can have been the stop.
            if watch.taken > seen && is_reported(&self.done) {
                let last = watch.gaps.last().map_or(0, |[_, end]| *end);
                watch.forget_before(last);
                break;
            }
            seen = watch.taken;
            std::hint::spin_loop();
        }
        let tid = self.child.as_raw_nonzero().get().cast_unsigned();
        Ok(Culprit {
            tid,
            comm: NAME.to_string_lossy().into_owned(),
            priority: None,
            ran: None,
        })
    }
}

fn is_reported(done: &OwnedFd) -> bool {
    rustix::io::read(done.as_fd(), &mut [0]).is_ok_and(|size| size == 1)
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.orders = None;
        // It ends at once: it does nothing but wait for orders.
        while matches!(
            waitpid(Some(self.child), WaitOptions::empty()),
            Err(Errno::INTR)
        ) {}
    }
}

/// Forks this process; returns `None` in the child.
#[expect(unsafe_code, reason = "a copy may do little, see below")]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: other threads may hold locks, of the allocator for example, that nobody releases in
    // the copy. The copy only makes system calls (`obey`, and closing a file), and never returns to
    // its caller's caller.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Stops the target at each order, in the child, and ends with the pipe.
fn obey(ordered: &OwnedFd, report: &OwnedFd, target: Pid, length: Duration, may_burst: bool) -> ! {
    // It computes nothing, and must not wait for a CPU behind the reactors that it stops.
    let _ = rustix::thread::set_name(NAME);
    schedule::get_ahead(may_burst);
    // Nor may it outlive its target: the id could come to mean another process.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    loop {
        let mut order = [0; size_of::<u32>()];
        match rustix::io::read(ordered, &mut order) {
            Ok(0) => break,
            Ok(_) => stop_once(report, target, u32::from_ne_bytes(order), length),
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    exit()
}

fn stop_once(report: &OwnedFd, target: Pid, thread: u32, length: Duration) {
    // The target is our parent or is gone, so failures don't matter.
    send_stop(target, thread);
    let mut left = Timespec {
        tv_sec: length.as_secs().cast_signed(),
        tv_nsec: length.subsec_nanos().into(),
    };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
    // Reported before it continues, so that it finds the byte as soon as it runs.
    let _ = rustix::io::write(report, &[1]);
    let _ = kill_process(target, Signal::CONT);
}

/// Sends SIGSTOP to a running thread. The process's first thread, which would get it otherwise, may
/// have to wait for a CPU before it stops all.
#[expect(unsafe_code, reason = "rustix has no such call")]
fn send_stop(target: Pid, thread: u32) {
    let target = target.as_raw_nonzero().get();
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_tgkill, target, thread, libc::SIGSTOP) };
}

#[expect(
    unsafe_code,
    reason = "a copy must not run what its original does at its end"
)]
fn exit() -> ! {
    // SAFETY: ends the process without anything of the original's: no destructors, no flushing.
    unsafe { libc::_exit(0) }
}
