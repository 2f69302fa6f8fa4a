//! A sign of life while a sample is made: on a terminal only, beside the output, and erased when there is something to read.

use std::io::Write as _;
use std::time::{Duration, Instant};

use screen::{QUIET, Screen};

/// What takes no longer needs no sign.
const SOON: Duration = Duration::from_millis(900);
/// How often it is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// The sign.
pub(super) struct Progress {
    screen: Screen,
    begun: Instant,
    written: Option<Instant>,
}

impl Progress {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { screen: Screen::stderr(), begun: Instant::now(), written: None }
    }

    /// How long it still takes.
    pub(super) fn left(&mut self, left: Duration) {
        if self.written.is_some() || left > SOON {
            self.write(&format!("sampling, {:.1} s left", left.as_secs_f64()));
        }
    }

    /// What is waited for, without an end that is known.
    pub(super) fn waits(&mut self, what: &str) {
        if self.begun.elapsed() > SOON {
            self.write(&format!("{what}, {} s so far (Ctrl-C ends it)", self.begun.elapsed().as_secs()));
        }
    }

    fn write(&mut self, text: &str) {
        if !self.screen.is_terminal() || self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return;
        }
        self.written = Some(Instant::now());
        // Nobody misses a sign that can't be written.
        let _ = write!(std::io::stderr(), "\r{}", self.screen.paint(QUIET, format!("{text:WIDTH$}")));
    }
}

/// As wide as what is erased.
const WIDTH: usize = 60;

impl Drop for Progress {
    fn drop(&mut self) {
        if self.written.is_some() {
            let _ = write!(std::io::stderr(), "\r{:WIDTH$}\r", "");
        }
    }
}
