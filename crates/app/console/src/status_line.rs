//! Status line on standard error that shows the progress of work. It is redrawn while the work goes
//! on, and erased before other output, at the end, and if a signal ends the process.
//!
//! It appears only on a terminal that can erase a line, and only if this process is in its
//! foreground. It never waits: a stopped terminal (Ctrl-S) must not stop a capture.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use screen::{QUIET, Screen};

/// Moves to the first column, and erases the line from there (ECMA-48, EL).
const ERASE: &str = "\r\u{1b}[K";

/// The line on the terminal. There is one per process, as there is one standard error.
static LINE: Mutex<Line> = Mutex::new(Line {
    is_shown: false,
    is_over: false,
});

struct Line {
    is_shown: bool,
    /// Set if the process is about to end.
    is_over: bool,
}

impl Line {
    /// Erases the line if that needs no wait; otherwise it stays.
    fn erase(&mut self) {
        self.is_shown = self.is_shown && !write(ERASE);
    }
}

/// Prints something on standard error or on this terminal: erases the line, and draws none before
/// `print` has returned.
pub fn without<T>(print: impl FnOnce() -> T) -> T {
    let mut line = lock();
    if std::mem::take(&mut line.is_shown) {
        // The output waits for the terminal too. If it can't be written, nobody sees the line.
        let _ = io::stderr().write_all(ERASE.as_bytes());
    }
    print()
}

/// Erases the line.
pub(crate) fn erase() {
    lock().erase();
}

/// Erases the line before the process ends, and prevents another one. Never waits long.
pub fn end() {
    const MAX_TRIES: usize = 10;
    for _ in 0..MAX_TRIES {
        if let Ok(mut line) = LINE.try_lock() {
            line.is_over = true;
            line.erase();
            return;
        }
        // The line is being written, which takes no time; or something else is printed, and there
        // is no line.
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn lock() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether standard error is a terminal for which the line is meant.
pub(crate) fn is_wanted() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let erases = set("TERM").is_some_and(|term| term != "dumb");
    erases && set("CI").is_none() && Screen::stderr().is_terminal()
}

/// Replaces the line by this text.
pub fn draw(text: &str) {
    let screen = Screen::stderr();
    // In the background, the terminal belongs to another program.
    if !screen.is_terminal() || !screen::is_foreground(io::stderr()) {
        return;
    }
    let text = screen.paint(QUIET, screen.cut(text));
    let mut line = lock();
    if !line.is_over {
        line.is_shown |= write(&format!("{ERASE}{text}"));
    }
}

/// Writes if that needs no wait, and returns whether it did: a missed status is no loss.
fn write(text: &str) -> bool {
    sys::process::write_if_ready(io::stderr().as_fd(), text.as_bytes())
}
