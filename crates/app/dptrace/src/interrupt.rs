//! SIGINT, SIGTERM and SIGHUP: the command ends what it does and reports; where it does not, it is ended.
//!
//! A thread waits for the signals, so that one is seen whatever the command does at that moment. The first is a request:
//! the command's loops look at it, finish, and print what they have. The thread then watches. It ends the process with
//! the signal's own default if nobody has looked within [`GRACE`], if the output takes nothing for as long, if a command of
//! the user's takes longer than [`COMMAND`], if an end that has begun does nothing for [`STALL`], or computes for [`BUSY`] without a
//! step. A second signal ends the process at once.
//!
//! The limit depends on the reason for the wait. A reader or a command may never finish. The kernel always does: it releases the
//! programs when all CPUs have passed a certain point, which takes seconds on a busy machine, and the recorded data is worth that
//! wait. After [`NOTICE`] a line on the terminal says that a second signal ends it.
//!
//! What a command may use is counted in its own time on a CPU while it runs: on a machine with more to do than it can, one
//! that would have looked in a moment is not ended for that.
//!
//! Until [`Interrupt::catch`] a signal does what it does by itself, which is at once: a command asks for it when it has
//! something to finish, not before.

use std::io::{IsTerminal as _, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::status_line;

/// How long a command may take to see that it is to end, and how long its output may take nothing after that.
const GRACE: Duration = Duration::from_millis(900);
/// Limit on a command of the user's that the end waits for.
const COMMAND: Duration = Duration::from_secs(3);
/// Limit on the time in which an end makes no progress: longer than the kernel waits for a CPU before it says that one hangs (21 s,
/// `CONFIG_RCU_CPU_STALL_TIMEOUT`), shorter than systemd waits for a service to stop (90 s, `DefaultTimeoutStopSec`).
const STALL: Duration = Duration::from_mins(1);
/// Time without progress after which a line on the terminal says so.
const NOTICE: Duration = Duration::from_secs(3);
/// How long it may compute without a step: reading the symbols of a large program is one.
const BUSY: Duration = Duration::from_secs(5);
/// How often the end is watched.
const WATCH: Duration = Duration::from_millis(100);
/// What comes within this time after the first signal is the same request: timeout(1) signals its child and then its
/// whole process group.
const SAME: Duration = Duration::from_millis(200);
/// Less time on a CPU than this is no work: the watching takes some, too.
const WORK: Duration = Duration::from_millis(5);

/// Whether a command catches the signals.
static CAUGHT: AtomicBool = AtomicBool::new(false);
/// Whether [`erase_at_signal`] was called.
static ERASES: AtomicBool = AtomicBool::new(false);

/// Whether a signal came. The state is the process's, since signals are.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Whether a command has seen it.
static SEEN: AtomicBool = AtomicBool::new(false);
/// Steps on the way to the end.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Limit in milliseconds on the time without a step while the command waits for a reader or for another command; otherwise 0.
static MAY_WAIT: AtomicU64 = AtomicU64::new(0);

/// What is done before a signal ends the process at once: a terminal is given back.
static BEFORE: OnceLock<fn()> = OnceLock::new();

/// Has this done before a signal ends the process, where the command itself does not come to it.
pub(crate) fn before_killed(give_back: fn()) {
    BEFORE.get_or_init(|| give_back);
}

/// Whether to stop.
#[derive(Clone, Copy)]
pub(crate) struct Interrupt(());

impl Interrupt {
    /// Catches the signals from now on. Once a process.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        CAUGHT.store(true, Ordering::Release);
        let (came, notify) = std::io::pipe().context("making a pipe for signals")?;
        let last = Arc::new(AtomicUsize::new(0));
        let signals = Signals { came, last: Arc::clone(&last) };
        // The watching thread is there before the first signal: where none can be started there is no handler either.
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || watch(signals));
        thread.context("starting the signal thread")?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: who reads the pipe knows which one it was.
            signal_hook::flag::register_usize(signal, Arc::clone(&last), signal as usize)
                .and_then(|_| signal_hook::low_level::pipe::register(signal, notify.try_clone()?))
                .context("catching signals")?;
        }
        Ok(Self(()))
    }

    /// Returns whether one came. Who has this answer is to end.
    #[expect(clippy::unused_self, reason = "whoever asks has caught the signals")]
    pub(crate) fn is_requested(self) -> bool {
        is_requested()
    }
}

/// Returns whether a signal came. Who has this answer is to end.
pub(crate) fn is_requested() -> bool {
    let is_requested = REQUESTED.load(Ordering::Acquire);
    if is_requested {
        SEEN.store(true, Ordering::Release);
        step();
    }
    is_requested
}

/// Returns whether a signal came, for threads that do not end the command themselves.
pub(crate) fn is_signalled() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// There is a line on the terminal that must go if a signal ends the process: a thread waits for one from now on, unless a
/// command does.
pub(crate) fn erase_at_signal() {
    if CAUGHT.load(Ordering::Acquire) || ERASES.swap(true, Ordering::Relaxed) {
        return;
    }
    // The thread is there before a handler is: if none can be started, a signal ends the process, and the line remains.
    let Ok(mut signals) = signal_hook::iterator::Signals::new::<_, i32>([]) else { return };
    let handle = signals.handle();
    let wait = move || {
        for signal in signals.forever() {
            if !CAUGHT.load(Ordering::Acquire) {
                end_by(signal);
            }
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_ok() {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let _ = handle.add_signal(signal);
        }
    }
}

/// Ends the process as the signal does by itself, and leaves nothing on the terminal.
fn end_by(signal: i32) -> ! {
    status_line::end();
    if let Some(give_back) = BEFORE.get() {
        give_back();
    }
    sys::process::end_by_signal(signal)
}

/// The end that was asked for makes progress.
pub(crate) fn step() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

/// How many bytes are to be written at a time: after a signal few, so that a slow reader is known from one that reads no
/// more.
pub(crate) fn piece() -> usize {
    if REQUESTED.load(Ordering::Relaxed) { 4096 } else { usize::MAX }
}

/// Writes output, which may block for ever if nobody reads it.
pub(crate) fn writing<T>(write: impl FnOnce() -> T) -> T {
    waiting(GRACE, write)
}

/// Runs a command of the user's, which may never end.
pub(crate) fn commanding<T>(run: impl FnOnce() -> T) -> T {
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

/// The signals as they come.
struct Signals {
    /// A byte for each.
    came: PipeReader,
    /// Which one it was.
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Waits for one at most this long.
    fn next(&mut self, at_most: Duration) -> Option<i32> {
        if !sys::process::wait_readable(self.came.as_fd(), at_most).unwrap_or(false) {
            return None;
        }
        let count = self.came.read(&mut [0; 64]).ok()?;
        (count > 0).then(|| i32::try_from(self.last.load(Ordering::Relaxed)).unwrap_or(SIGTERM))
    }
}

/// Waits for the first signal, and then sees to it that the process ends.
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
            && came.elapsed() >= SAME
        {
            end_by(second);
        }
        if !SEEN.load(Ordering::Acquire) {
            let Since { worked, idle, .. } = unseen.since(main_thread_ran(), 0);
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

/// When something moved last.
struct Marks {
    steps: u64,
    /// When the last step was, and the time on a CPU until then.
    step: (Instant, Duration),
    /// The same of the last work or step.
    work: (Instant, Duration),
}

/// What has passed since the last step: work, all time, and time without work.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    worked: Duration,
    step: Duration,
    idle: Duration,
}

impl Since {
    /// Returns whether the end makes no progress; `may_wait` is the limit while it waits for a reader or for a command.
    fn is_stuck(&self, may_wait: Option<Duration>) -> bool {
        self.worked >= BUSY || self.idle >= STALL || may_wait.is_some_and(|limit| self.step >= limit)
    }
}

impl Marks {
    fn now(ran: Duration) -> Self {
        let now = (Instant::now(), ran);
        Self { steps: 0, step: now, work: now }
    }

    fn since(&mut self, ran: Duration, steps: u64) -> Since {
        let now = (Instant::now(), ran);
        if steps != self.steps {
            (self.steps, self.step, self.work) = (steps, now, now);
        }
        if ran.saturating_sub(self.work.1) >= WORK {
            self.work = now;
        }
        Since { worked: ran.saturating_sub(self.step.1), step: self.step.0.elapsed(), idle: self.work.0.elapsed() }
    }
}

/// How long the main thread has been on a CPU; where the kernel does not say, it never was.
fn main_thread_ran() -> Duration {
    Duration::from_nanos(host::proc::ran(&host::proc::own_folder()).unwrap_or_default())
}

/// Prints that the output is incomplete.
fn note_cut() {
    status_line::end();
    note_at_once("note: interrupted: not all that was to be shown could be written\n");
}

/// Prints on a terminal that a second signal ends the wait.
fn note_wait() {
    if std::io::stderr().is_terminal() {
        status_line::end();
        note_at_once(
            "note: interrupted, and waiting for the kernel: a second Ctrl-C ends it, without what is not written yet\n",
        );
    }
}

/// Prints without a wait: the main thread may hold the lock of standard error.
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
            Since { step: time, idle: time, ..Since::default() }
        };
        assert!(!waits(50).is_stuck(None) && waits(60).is_stuck(None));
        assert!(!waits(2).is_stuck(Some(COMMAND)) && waits(3).is_stuck(Some(COMMAND)));
        assert!(!waits(0).is_stuck(Some(GRACE)) && waits(1).is_stuck(Some(GRACE)));
        assert!(Since { worked: Duration::from_secs(5), ..Since::default() }.is_stuck(None));
    }
}
