//! A sign of life while a capture goes on: on a terminal only, and erased at the end.

use std::io::Write as _;
use std::time::{Duration, Instant};

use screen::{QUIET, Screen, counted};

/// How often it is written anew.
const EVERY: Duration = Duration::from_millis(200);
/// As wide as what is erased.
const WIDTH: usize = 76;

pub(super) struct Life {
    screen: Screen,
    written: Option<Instant>,
}

impl Life {
    pub(super) fn new() -> Self {
        Self { screen: Screen::stderr(), written: None }
    }

    /// For how long it has gone on, and what was captured.
    pub(super) fn show(&mut self, since: Duration, bytes: u64, records: Option<u64>) {
        if !self.screen.is_terminal() || self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return;
        }
        self.written = Some(Instant::now());
        let records = records.map_or_else(String::new, |records| format!(", {}", counted(records, "record")));
        let text = format!("{} s{records}, {}", since.as_secs(), size(bytes));
        // Nobody misses a sign that can't be written.
        let _ = write!(std::io::stderr(), "\r{}", self.screen.paint(QUIET, format!("{text:WIDTH$}")));
    }

    pub(super) fn erase(&mut self) {
        if self.written.take().is_some() {
            let _ = write!(std::io::stderr(), "\r{:WIDTH$}\r", "");
        }
    }
}

/// `3.4 MB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => counted(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
