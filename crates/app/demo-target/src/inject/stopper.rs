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

use super::schedule::HelperPlace;
use super::truth::Culprit;
use super::watch::Watch;
use crate::clock::ticks;
use crate::options::Options;

/// Name of the child, for the kernel's events.
const NAME: &std::ffi::CStr = c"stopper";

/// Handle of the child, which ends when it is dropped, or if this process is killed.
#[derive(Debug)]
pub(crate) struct Stopper {
    child: Pid,
    orders: Option<OwnedFd>,
    /// Pipe with a time for each stop, in ticks: a moment within the stop, written before it ends.
    done: OwnedFd,
}

impl Stopper {
    /// Starts it; it stops this process for `options.inject_for` each time.
    pub(crate) fn start(options: &Options) -> io::Result<Self> {
        let (length, place) = (options.inject_for, HelperPlace::choose(options));
        let target = getpid();
        let (ordered, orders) = pipe_with(PipeFlags::CLOEXEC)?;
        let (done, report) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&done, OFlags::NONBLOCK)?;
        let Some(child) = fork()? else {
            // The child's own copy would keep the pipe open when this process is gone.
            drop(orders);
            obey(&ordered, &report, target, length, &place)
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
        poll_until_reported(watch, give_up, || reported(&self.done));
        let tid = self.child.as_raw_nonzero().get().cast_unsigned();
        Ok(Culprit {
            tid,
            comm: NAME.to_string_lossy().into_owned(),
            priority: None,
            ran: None,
        })
    }
}

/// Polls until a stop is reported, or until the ticks `give_up`. Then keeps only the gap that the
/// stop made.
fn poll_until_reported(watch: &mut Watch, give_up: u64, mut reported: impl FnMut() -> Option<u64>) {
    let mut seen = watch.taken;
    while watch.look() < give_up {
        // Without a gap there was no stop. The gap may have another cause, and the stop may come
        // between the look and the report: so the stop's own time decides.
        if watch.taken > seen
            && let Some(within) = reported()
        {
            watch.look();
            watch.keep_only(within);
            break;
        }
        seen = watch.taken;
        std::hint::spin_loop();
    }
}

/// Returns the time of the next reported stop, if there is one.
fn reported(done: &OwnedFd) -> Option<u64> {
    let mut within = [0; size_of::<u64>()];
    let size = rustix::io::read(done.as_fd(), &mut within).ok()?;
    (size == within.len()).then(|| u64::from_ne_bytes(within))
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
fn obey(
    ordered: &OwnedFd,
    report: &OwnedFd,
    target: Pid,
    length: Duration,
    place: &HelperPlace,
) -> ! {
    // It computes nothing, and must not wait for a CPU behind the reactors that it stops.
    let _ = rustix::thread::set_name(NAME);
    place.take();
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
    let stopped = ticks();
    let mut left = Timespec {
        tv_sec: length.as_secs().cast_signed(),
        tv_nsec: length.subsec_nanos().into(),
    };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
    // Reported before it continues, so that it finds the time as soon as it runs. The middle is
    // within the stop even if the counters of two CPUs differ a little.
    let within = stopped.midpoint(ticks());
    let _ = rustix::io::write(report, &within.to_ne_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses; returns the ticks in the middle.
    fn pause() -> u64 {
        let begin = ticks();
        std::thread::sleep(Duration::from_millis(5));
        begin.midpoint(ticks())
    }

    #[test]
    fn a_stop_between_look_and_report_is_the_delay() {
        let mut watch = Watch::new(1_000);
        // A gap of another cause, which makes the first look ask for a report.
        pause();
        let mut within = 0;
        poll_until_reported(&mut watch, u64::MAX, || {
            within = pause();
            Some(within)
        });
        let [[begin, end]] = watch.gaps[..] else {
            panic!("{watch:?}")
        };
        assert!(begin < within && within < end, "{within}: {watch:?}");
        assert_eq!(watch.taken, end - begin);
    }

    #[test]
    fn gaps_before_and_after_a_stop_are_not_its_own() {
        let mut watch = Watch::new(1_000);
        let mut stops = [None, Some(pause()), None].into_iter();
        let stop = watch.look();
        poll_until_reported(&mut watch, u64::MAX, || {
            let stop = stops.next().flatten();
            pause();
            stop
        });
        let [[begin, end]] = watch.gaps[..] else {
            panic!("{watch:?}")
        };
        assert!(begin < end && end <= stop, "{stop}: {watch:?}");
    }
}
