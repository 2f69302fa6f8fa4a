//! SIGINT, SIGTERM and SIGHUP: the command finishes its work and reports; if it does not, it is
//! ended.
//!
//! A thread waits for the signals, so that they are noticed at any moment. The first one is a
//! request: the command's loops check for it, finish, and print their results. The thread then
//! watches the end. It ends the process with the signal's default action in four cases: no loop has
//! checked within `GRACE`, or the output takes nothing for as long; a command of the user's takes
//! longer than `COMMAND`; an end that has begun does nothing for `STALL`; or it computes for
//! `MAX_STEP_CPU_TIME` without a step. A second signal ends the process at once.
//!
//! The limit depends on the reason for the wait. A reader or a command may never finish. The kernel
//! always does: it releases the programs when all CPUs have passed a certain point, which takes
//! seconds on a busy machine, and the recorded data is worth that wait. After `NOTICE` a line on
//! the terminal states that a second signal ends it.
//!
//! While a command runs, its limit counts its own CPU time: on an overloaded machine, a command
//! that would have checked in a moment is not ended for that.
//!
//! Until [`Interrupt::catch`] signals keep their default action, which is immediate: a command
//! catches them when it has something to finish, not before.

use std::io::{IsTerminal as _, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::status_line;

/// Limit on the time until a command notices its end, and then on the time in which its output
/// takes nothing.
const GRACE: Duration = Duration::from_millis(900);
/// Limit on a command of the user's that the end waits for.
const COMMAND: Duration = Duration::from_secs(3);
/// Limit on the time in which an end makes no progress. Longer than the kernel waits for a CPU
/// before it reports a stall (21 s, `CONFIG_RCU_CPU_STALL_TIMEOUT`), shorter than systemd waits for
/// a service to stop (90 s, `DefaultTimeoutStopSec`).
const STALL: Duration = Duration::from_mins(1);
/// Time without progress after which a line on the terminal reports it.
const NOTICE: Duration = Duration::from_secs(3);
/// Limit on CPU time without a step: reading the symbols of a large program is one step.
const MAX_STEP_CPU_TIME: Duration = Duration::from_secs(5);
/// Interval at which the end is watched.
const WATCH: Duration = Duration::from_millis(100);
/// Time after the first signal in which another one counts as the same request: timeout(1) signals
/// its child and then its whole process group.
const SAME_SIGNAL_WINDOW: Duration = Duration::from_millis(200);
/// Least CPU time that counts as work: the watching takes some too.
const WORK: Duration = Duration::from_millis(5);

/// Set once a command catches the signals.
static CAUGHT: AtomicBool = AtomicBool::new(false);
/// Set once [`erase_at_signal`] was called.
static ERASES: AtomicBool = AtomicBool::new(false);

/// Set once a signal came. The state belongs to the process, as signals do.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Set once a command has seen the signal.
static SIGNAL_SEEN: AtomicBool = AtomicBool::new(false);
/// Number of steps on the way to the end.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Limit in milliseconds on the time without a step while the command waits for a reader or for
/// another command; otherwise 0.
static MAY_WAIT: AtomicU64 = AtomicU64::new(0);

/// Action before a signal ends the process at once: restores the terminal.
static SIGNAL_HOOK: OnceLock<fn()> = OnceLock::new();

/// Registers an action before a signal ends the process without the command's own cleanup.
pub(crate) fn before_killed(give_back: fn()) {
    SIGNAL_HOOK.get_or_init(|| give_back);
}

/// Handle of a command that catches the signals.
#[derive(Clone, Copy)]
pub struct Interrupt(());

impl Interrupt {
    /// Catches the signals from now on. May be called once per process.
    pub fn catch() -> anyhow::Result<Self> {
        CAUGHT.store(true, Ordering::Release);
        let (came, notify) = std::io::pipe().context("making a pipe for signals")?;
        let last = Arc::new(AtomicUsize::new(0));
        let signals = Signals {
            came,
            last: Arc::clone(&last),
        };
        // The watching thread exists before the first signal: if it can't be started, there is no
        // handler either.
        let thread = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || watch(signals));
        thread.context("starting the signal thread")?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: a reader of the pipe then knows which signal it was.
            signal_hook::flag::register_usize(signal, Arc::clone(&last), signal as usize)
                .and_then(|_| signal_hook::low_level::pipe::register(signal, notify.try_clone()?))
                .context("catching signals")?;
        }
        Ok(Self(()))
    }

    /// Returns whether a signal came. The caller must then end.
    pub fn is_requested(self) -> bool {
        is_requested()
    }
}

/// Returns whether a signal came. The caller must then end.
pub fn is_requested() -> bool {
    let is_requested = REQUESTED.load(Ordering::Acquire);
    if is_requested {
        SIGNAL_SEEN.store(true, Ordering::Release);
        step();
    }
    is_requested
}

/// Returns whether a signal came, for threads that do not end the command themselves.
pub(crate) fn is_signalled() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// Makes sure that a signal erases the line on the terminal before it ends the process: starts a
/// thread that waits for signals, unless a command catches them.
pub(crate) fn erase_at_signal() {
    if CAUGHT.load(Ordering::Acquire) || ERASES.swap(true, Ordering::Relaxed) {
        return;
    }
    // The thread exists before a handler does: if it can't be started, a signal ends the process,
    // and the line remains.
    let Ok(mut signals) = signal_hook::iterator::Signals::new::<_, i32>([]) else {
        return;
    };
    let handle = signals.handle();
    let wait = move || {
        for signal in signals.forever() {
            if !CAUGHT.load(Ordering::Acquire) {
                end_by(signal);
            }
        }
    };
    if std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .is_ok()
    {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = handle.add_signal(signal);
        }
    }
}

/// Ends the process with the signal's default action, and leaves nothing on the terminal.
fn end_by(signal: i32) -> ! {
    status_line::end();
    if let Some(give_back) = SIGNAL_HOOK.get() {
        give_back();
    }
    sys::process::end_by_signal(signal)
}

/// Counts a step of progress towards the requested end.
pub fn step() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of bytes to write at a time. After a signal it is small, so that a slow
/// reader differs from one that no longer reads.
pub fn piece() -> usize {
    if REQUESTED.load(Ordering::Relaxed) {
        4096
    } else {
        usize::MAX
    }
}

/// Runs a write of output, which may block for ever if nobody reads it.
pub fn writing<T>(write: impl FnOnce() -> T) -> T {
    waiting(GRACE, write)
}

/// Runs a command of the user's, which may never end.
pub fn commanding<T>(run: impl FnOnce() -> T) -> T {
    waiting(COMMAND, run)
}

/// Runs a step that may block for ever, and limits how long an end waits for it.
fn waiting<T>(at_most: Duration, wait: impl FnOnce() -> T) -> T {
    step();
    MAY_WAIT.store(at_most.as_millis() as u64, Ordering::Relaxed);
    let done = wait();
    MAY_WAIT.store(0, Ordering::Relaxed);
    step();
    done
}

/// Arriving signals.
struct Signals {
    /// Pipe that receives a byte for each signal.
    came: PipeReader,
    /// Number of the last signal.
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Waits for a signal, at most this long.
    fn next(&mut self, at_most: Duration) -> Option<i32> {
        if !sys::process::wait_readable(self.came.as_fd(), at_most).unwrap_or(false) {
            return None;
        }
        let count = self.came.read(&mut [0; 64]).ok()?;
        (count > 0).then(|| i32::try_from(self.last.load(Ordering::Relaxed)).unwrap_or(SIGTERM))
    }
}

/// Waits for the first signal, and then makes sure that the process ends.
fn watch(mut signals: Signals) {
    let first = loop {
        if let Some(signal) = signals.next(Duration::from_hours(1)) {
            break signal;
        }
    };
    REQUESTED.store(true, Ordering::Release);
    let came = Instant::now();
    let mut unseen = Marks::now(main_thread_ran());
    let mut ending = Marks::now(sys::clock::process_ran());
    let mut noticed = false;
    loop {
        if let Some(second) = signals.next(WATCH)
            && came.elapsed() >= SAME_SIGNAL_WINDOW
        {
            end_by(second);
        }
        if !SIGNAL_SEEN.load(Ordering::Acquire) {
            let ElapsedTimes { worked, idle, .. } = unseen.since(main_thread_ran(), 0);
            if worked.max(idle) >= GRACE {
                end_by(first);
            }
            continue;
        }
        let since = ending.since(sys::clock::process_ran(), STEPS.load(Ordering::Relaxed));
        let may_wait = match MAY_WAIT.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        };
        if since.is_stuck(may_wait) {
            note_cut();
            end_by(first);
        }
        if since.idle >= NOTICE && may_wait.is_none() && !std::mem::replace(&mut noticed, true) {
            note_wait();
        }
    }
}

/// Times of the last progress.
struct Marks {
    steps: u64,
    /// Time of the last step, and the CPU time at that moment.
    step: (Instant, Duration),
    /// Time of the last work or step, and the CPU time at that moment.
    work: (Instant, Duration),
}

/// Times since the last step: CPU time, elapsed time, and time without work.
#[derive(Clone, Copy, Debug, Default)]
struct ElapsedTimes {
    worked: Duration,
    step: Duration,
    idle: Duration,
}

impl ElapsedTimes {
    /// Returns whether the end makes no progress; `may_wait` is the limit while it waits for a
    /// reader or for a command.
    fn is_stuck(&self, may_wait: Option<Duration>) -> bool {
        self.worked >= MAX_STEP_CPU_TIME
            || self.idle >= STALL
            || may_wait.is_some_and(|limit| self.step >= limit)
    }
}

impl Marks {
    fn now(ran: Duration) -> Self {
        let now = (Instant::now(), ran);
        Self {
            steps: 0,
            step: now,
            work: now,
        }
    }

    fn since(&mut self, ran: Duration, steps: u64) -> ElapsedTimes {
        let now = (Instant::now(), ran);
        if steps != self.steps {
            (self.steps, self.step, self.work) = (steps, now, now);
        }
        if ran.saturating_sub(self.work.1) >= WORK {
            self.work = now;
        }
        ElapsedTimes {
            worked: ran.saturating_sub(self.step.1),
            step: self.step.0.elapsed(),
            idle: self.work.0.elapsed(),
        }
    }
}

/// Returns the CPU time of the main thread; 0 if the kernel does not report it.
fn main_thread_ran() -> Duration {
    Duration::from_nanos(host::proc::ran(&host::proc::own_folder()).unwrap_or_default())
}

/// Prints that the output is incomplete.
fn note_cut() {
    status_line::end();
    note_at_once("note: interrupted: the output is incomplete\n");
}

/// Prints on a terminal that a second signal ends the wait.
fn note_wait() {
    if std::io::stderr().is_terminal() {
        status_line::end();
        note_at_once(
            "note: interrupted, waiting for the kernel: a second Ctrl-C ends it and loses \
             unwritten output\n",
        );
    }
}

/// Prints without waiting: the main thread may hold the lock of standard error.
fn note_at_once(text: &str) {
    sys::process::write_if_ready(std::io::stderr().as_fd(), text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded data is worth the seconds that the kernel takes on a busy machine.
    #[test]
    fn the_kernel_is_waited_for_longer_than_readers_and_commands() {
        let waits = |seconds| {
            let time = Duration::from_secs(seconds);
            ElapsedTimes {
                step: time,
                idle: time,
                ..ElapsedTimes::default()
            }
        };
        assert!(!waits(50).is_stuck(None) && waits(60).is_stuck(None));
        assert!(!waits(2).is_stuck(Some(COMMAND)) && waits(3).is_stuck(Some(COMMAND)));
        assert!(!waits(0).is_stuck(Some(GRACE)) && waits(1).is_stuck(Some(GRACE)));
        assert!(
            ElapsedTimes {
                worked: Duration::from_secs(5),
                ..ElapsedTimes::default()
            }
            .is_stuck(None)
        );
    }
}
