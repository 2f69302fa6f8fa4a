//! SIGINT, SIGTERM and SIGHUP: the command ends what it does and reports; where it does not, it is ended.
//!
//! A thread waits for the signals, so that one is seen whatever the command does at that moment. The first is a request:
//! the command's loops look at it, finish, and print what they have. The thread then watches. It ends the process with
//! the signal's own default if nobody has looked within [`GRACE`], if the output takes nothing for as long, or if an end
//! that has begun stands still for [`STALL`]. A second signal ends the process at once.
//!
//! Until [`Interrupt::catch`] a signal does what it does by itself, which is at once: a command asks for it when it has
//! something to finish, not before.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long a command may take to see that it is to end, and how long its output may take nothing after that.
const GRACE: Duration = Duration::from_millis(900);
/// How long an end that has begun may make no progress: reading the symbols of a large program is one step.
const STALL: Duration = Duration::from_secs(3);
/// How often the end is watched.
const WATCH: Duration = Duration::from_millis(50);
/// What comes within this time after the first signal is the same request: timeout(1) signals its child and then its
/// whole process group.
const SAME: Duration = Duration::from_millis(200);

/// Whether a signal came. The state is the process's, since signals are.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Whether a command has seen it.
static SEEN: AtomicBool = AtomicBool::new(false);
/// Steps on the way to the end.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Whether output is being written at this moment.
static WRITING: AtomicBool = AtomicBool::new(false);

/// Whether to stop.
#[derive(Clone, Copy)]
pub(crate) struct Interrupt {
    /// Tests have some that never come.
    is_real: bool,
}

impl Interrupt {
    /// Catches the signals from now on. Once a process.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("catching SIGINT")?;
        let (sender, later) = channel();
        let listen = move || signals.forever().try_for_each(|signal| sender.send(signal)).ok();
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        // The watching thread is there before the first signal: where none can be started there is no handler either.
        thread("signal watch").spawn(move || watch(&later)).context("starting the thread that watches signals")?;
        thread("signals").spawn(listen).context("starting the thread that waits for signals")?;
        Ok(Self { is_real: true })
    }

    /// One that never comes.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self { is_real: false }
    }

    /// Whether one came. Who has this answer is to end.
    pub(crate) fn is_wished(self) -> bool {
        let is_wished = self.is_real && REQUESTED.load(Ordering::Acquire);
        if is_wished {
            SEEN.store(true, Ordering::Release);
            step();
        }
        is_wished
    }
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

/// Writes, which can take for ever where nobody reads: then the time that an end may take is shorter.
pub(crate) fn writing<T>(write: impl FnOnce() -> T) -> T {
    WRITING.store(true, Ordering::Relaxed);
    let written = write();
    WRITING.store(false, Ordering::Relaxed);
    step();
    written
}

/// Waits for the first signal, and then sees to it that the process ends.
fn watch(signals: &Receiver<i32>) {
    // The other thread ends with the process only.
    let Ok(first) = signals.recv() else { return };
    REQUESTED.store(true, Ordering::Release);
    let came = Instant::now();
    let mut moved = (came, STEPS.load(Ordering::Relaxed));
    loop {
        match signals.recv_timeout(WATCH) {
            Ok(second) if came.elapsed() >= SAME => sys::process::end_by_signal(second),
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
        let steps = STEPS.load(Ordering::Relaxed);
        if steps != moved.1 {
            moved = (Instant::now(), steps);
        }
        if !SEEN.load(Ordering::Acquire) {
            if came.elapsed() >= GRACE {
                sys::process::end_by_signal(first);
            }
        } else if moved.0.elapsed() >= if WRITING.load(Ordering::Relaxed) { GRACE } else { STALL } {
            tell_cut();
            sys::process::end_by_signal(first);
        }
    }
}

/// Says that the output is not whole, without a wait: the main thread may hold the lock of standard error.
fn tell_cut() {
    let words = b"note: interrupted: not all that was to be shown could be written\n";
    sys::process::write_if_ready(std::io::stderr().as_fd(), words);
}
