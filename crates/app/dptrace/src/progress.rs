//! How far long work is: one line on standard error, which is written anew while the work goes on, and erased before anything
//! else is printed, at the end, and if a signal ends the process.
//!
//! Only on a terminal that can erase a line, if this process is in its foreground, and if the work takes long. It is never waited
//! for: a terminal that was stopped (Ctrl-S) must not stop a capture.

use std::cell::{Cell, RefCell};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::capture::Meta;
use screen::{QUIET, Screen, counted};
use spdk_trace::{ReadAt, Trace};

use crate::interrupt;
use crate::output::Output;

/// What takes no longer needs no sign.
const SOON: Duration = Duration::from_secs(1);
/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(200);
/// To the first column, and the line is erased from there (ECMA-48, EL).
const ERASE: &str = "\r\u{1b}[K";
/// Records after which the time is looked at.
const PIECE: u64 = 1_024;

/// The line on the terminal. There is one for the process, as there is one standard error.
static LINE: Mutex<Line> = Mutex::new(Line { is_shown: false, is_over: false });

struct Line {
    is_shown: bool,
    /// The process is about to end.
    is_over: bool,
}

impl Line {
    /// Erases it if that needs no wait; else it is still there.
    fn erase(&mut self) {
        self.is_shown = self.is_shown && !write(ERASE);
    }
}

/// How far some work is.
pub(crate) struct Progress {
    begun: Instant,
    /// When the line is next written; never if there is no place for it.
    due: Option<Instant>,
}

impl Progress {
    /// Of work that may take long.
    pub(crate) fn new() -> Self {
        let begun = Instant::now();
        Self { begun, due: is_wanted().then(|| begun + SOON) }
    }

    /// Of work that will take that time: if that is long, the line is there at once.
    pub(crate) fn expected(time: Duration) -> Self {
        let progress = Self::new();
        let at_once = Some(progress.begun).filter(|_| time >= SOON);
        Self { due: progress.due.map(|due| at_once.unwrap_or(due)), ..progress }
    }

    /// Of work that writes its output meanwhile. If that goes to a terminal or to a program, which may have the same terminal,
    /// there is no line.
    pub(crate) fn beside(output: &Output) -> Self {
        if output.is_file() { Self::new() } else { Self { begun: Instant::now(), due: None } }
    }

    /// Shows how far it is, if it is time for that: the text, of the time since it began.
    pub(crate) fn show(&mut self, text: impl FnOnce(Duration) -> String) {
        let Some(due) = self.due else { return };
        let now = Instant::now();
        if now < due {
            return;
        }
        self.due = Some(now + EVERY);
        draw(&text(now.duration_since(self.begun)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.due.is_some() {
            erase();
        }
    }
}

/// What is shown of a pass that is the only one.
pub(crate) const READING: &str = "reading";

/// How far the reading of records is.
pub(crate) struct Reading {
    progress: Progress,
    /// What is done.
    what: &'static str,
    /// What is read: records.
    thing: &'static str,
    read: u64,
    /// How many there will be, if that is known.
    expected: Option<u64>,
}

impl Reading {
    /// Of records; `what` is done.
    pub(crate) fn new(progress: Progress, what: &'static str, expected: Option<u64>) -> Self {
        Self::of("record", progress, what, expected)
    }

    /// Of other things.
    pub(crate) fn of(thing: &'static str, progress: Progress, what: &'static str, expected: Option<u64>) -> Self {
        Self { progress, what, thing, read: 0, expected }
    }

    /// Another one was read.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(PIECE) {
            self.show();
        }
    }

    fn show(&mut self) {
        let Self { progress, what, thing, read, expected } = self;
        progress.show(|_| {
            let part = expected.map_or_else(String::new, |all| format!(" {},", percent(*read, all)));
            format!("{what}:{part} {}", counted(*read, thing))
        });
    }
}

/// A source of bytes, with a sign of how far it is read.
pub(crate) struct Watched<'a, S> {
    source: &'a S,
    progress: RefCell<Progress>,
    read: Cell<u64>,
}

impl<'a, S: ReadAt> Watched<'a, S> {
    pub(crate) fn new(source: &'a S) -> Self {
        Self { source, progress: RefCell::new(Progress::new()), read: Cell::new(0) }
    }
}

impl<S: ReadAt> ReadAt for Watched<'_, S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        /// Bytes at a time, so that a slow disk is seen to make progress.
        const PIECE: usize = 8 << 20;
        let piece = buf.len().min(PIECE);
        let n = self.source.read_at(&mut buf[..piece], offset)?;
        self.read.set(self.read.get() + n as u64);
        let mut progress = self.progress.borrow_mut();
        progress.show(|_| format!("reading the file: {}", percent(self.read.get(), self.len())));
        Ok(n)
    }
}

/// How many records a trace will have, as far as that is known before they are read; it may be a capture's.
pub(crate) fn expected(trace: &Trace, capture: Option<&Meta>) -> Option<u64> {
    match trace {
        Trace::Raw(raw) => Some(raw.rings().map(|ring| ring.records).sum()),
        Trace::Captured(_) => capture?.end.as_ref().map(|end| end.records),
        Trace::Json(_) => None,
    }
}

/// `43 %`.
pub(crate) fn percent(done: u64, all: u64) -> String {
    // What is expected may be wrong.
    format!("{} %", u128::from(done).saturating_mul(100) / u128::from(all.max(1).max(done)))
}

/// Prints something on standard error or on this terminal: the line is erased, and none comes before that is done.
pub(crate) fn without<T>(print: impl FnOnce() -> T) -> T {
    let mut line = lock();
    if std::mem::take(&mut line.is_shown) {
        // What is printed waits for the terminal, too. If it can't be written, nobody sees the line.
        let _ = io::stderr().write_all(ERASE.as_bytes());
    }
    print()
}

/// Erases the line.
pub(crate) fn erase() {
    lock().erase();
}

/// Erases the line before the process ends, and lets no other come. Waits for nobody.
pub(crate) fn end() {
    const TRIES: usize = 10;
    for _ in 0..TRIES {
        if let Ok(mut line) = LINE.try_lock() {
            line.is_over = true;
            line.erase();
            return;
        }
        // It is being written, which takes no time; or something else is printed, and there is no line.
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn lock() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether standard error is a terminal for which the line is meant.
fn is_wanted() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let erases = set("TERM").is_some_and(|term| term != "dumb");
    erases && set("CI").is_none() && Screen::stderr().is_terminal()
}

fn draw(text: &str) {
    let screen = Screen::stderr();
    // In the background, the terminal is another program's.
    if !screen.is_terminal() || !screen::is_foreground(io::stderr()) {
        return;
    }
    let text = screen.paint(QUIET, screen.cut(text));
    let mut line = lock();
    if !line.is_over {
        interrupt::erase_at_signal();
        line.is_shown |= write(&format!("{ERASE}{text}"));
    }
}

/// Writes if that needs no wait, and says whether it did: nobody misses a sign that can't be written.
fn write(text: &str) -> bool {
    sys::process::write_if_ready(io::stderr().as_fd(), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_more_than_all() {
        assert_eq!(
            [percent(0, 0), percent(43, 100), percent(999, 1000), percent(12, 10)],
            ["0 %", "43 %", "99 %", "100 %"]
        );
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
    }
}
