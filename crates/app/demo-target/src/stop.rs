//! Begin and end of a run: standard input, SIGINT and SIGTERM.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::DemoError;

/// Flag that requests the end of the target.
#[derive(Debug, Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// Wakeups from the wait for the beginning: a signal, or standard input.
#[derive(Debug)]
pub(crate) struct Wakeups {
    woken: Receiver<()>,
    waker: Sender<()>,
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on.
pub(crate) fn listen() -> Result<(Stop, Wakeups), DemoError> {
    let stop = Stop(Arc::new(AtomicBool::new(false)));
    let (waker, woken) = channel();
    let (asked, signal) = (stop.clone(), waker.clone());
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|source| DemoError::Signals { source })?;
    let wait = move || {
        for came in signals.forever() {
            // A second signal does not wait for a slow end. If even that fails, there is a third.
            if asked.is_asked() {
                let _ = signal_hook::low_level::emulate_default_handler(came);
            }
            asked.ask();
            // Nobody waits any more once the run has begun.
            let _ = signal.send(());
        }
    };
    let thread = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait);
    thread.map_err(|source| DemoError::Thread {
        name: "signals".to_owned(),
        source,
    })?;
    Ok((stop, Wakeups { woken, waker }))
}

impl Wakeups {
    /// Waits for a line or the end of standard input, or for a signal.
    pub(crate) fn wait_for_input(&self) -> Result<(), DemoError> {
        let input = self.waker.clone();
        let read = move || {
            // Anything that ends the line ends the wait, even an error.
            let _ = std::io::stdin().lock().read_until(b'\n', &mut Vec::new());
            let _ = input.send(());
        };
        let thread = std::thread::Builder::new()
            .name("wait".to_owned())
            .spawn(read);
        thread.map_err(|source| DemoError::Thread {
            name: "wait".to_owned(),
            source,
        })?;
        // We hold a sender, so this is never the end of the channel.
        let _ = self.woken.recv();
        Ok(())
    }
}

impl Stop {
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Requests the end of all reactors.
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
