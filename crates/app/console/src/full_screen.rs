//! A full screen on the terminal, as `dptrace top` has. The terminal is given back as it was found,
//! however the process ends, except by SIGKILL.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use errors::usage;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Size;
use ratatui_core::terminal::Terminal;
use rustix::termios::{self, OptionalActions, Termios};
use screen::{Colours, Screen, TerminalCaps};

use crate::cells::Cells;
use crate::interrupt;

/// The alternate screen, without a cursor (xterm's control sequences, `DECSET` 1049 and 25).
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J";
/// Starts reports of the mouse's buttons and wheel, as numbers (xterm's control sequences, `DECSET`
/// 1000 and 1006).
const MOUSE: &str = "\u{1b}[?1000h\u{1b}[?1006h";
/// Ends the reports of the mouse.
const NO_MOUSE: &str = "\u{1b}[?1006l\u{1b}[?1000l";
/// Ends the reports of the mouse, resets the style, clears the screen (tmux keeps lines of it after a
/// change of size), shows the cursor, and returns to the usual screen.
const LEAVE: &str = "\u{1b}[?1006l\u{1b}[?1000l\u{1b}[0m\u{1b}[2J\u{1b}[?25h\u{1b}[?1049l";
/// Size of a terminal that does not report its own.
const DEFAULT_SIZE: Size = Size {
    width: 80,
    height: 24,
};

/// State of the terminal before the full screen, while there is one.
static SAVED_TERMIOS: Mutex<Option<Termios>> = Mutex::new(None);

/// Checks that there is a terminal on which `command` can draw a screen. `advice` says what the
/// command can do instead.
///
/// # Errors
///
/// Fails if standard input or output is no terminal, or `TERM` names one without a cursor.
pub fn check(command: &str, advice: &str) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(usage(format!(
            "{command} needs a terminal for its screen, and this is not one: {advice}"
        )));
    }
    if std::env::var("TERM").is_ok_and(|term| term == "dumb" || term == "unknown") {
        return Err(usage(format!(
            "{command} needs a terminal that can position the cursor, which this one can't, according to \
             TERM: {advice}"
        )));
    }
    Ok(())
}

/// Returns what the terminal can show.
fn capabilities() -> TerminalCaps {
    let screen = Screen::stdout();
    let says = |name: &str, word: &str| std::env::var(name).is_ok_and(|value| value.contains(word));
    let colours = match () {
        // DEC's terminals had none.
        () if !screen.has_colour() || says("TERM", "vt1") || says("TERM", "vt2") => Colours::None,
        () if says("TERM", "256color")
            || says("COLORTERM", "truecolor")
            || says("COLORTERM", "24bit") =>
        {
            Colours::Many
        }
        () => Colours::Sixteen,
    };
    TerminalCaps {
        colours,
        unicode: screen.has_unicode(),
        eighths: std::env::var("TERM").is_ok_and(|term| term != "linux"),
    }
}

/// Full screen: keys arrive one by one, and the screen is the alternate one. The terminal is given
/// back when this is dropped, and before a panic or a signal ends the process.
pub struct FullScreen {
    _guard: TerminalGuard,
    terminal: Terminal<Cells>,
    look: TerminalCaps,
    size: Size,
    has_mouse: bool,
}

impl FullScreen {
    /// Takes the terminal, with the reports of its mouse if they are wanted.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can't be set up or written to.
    pub fn take(has_mouse: bool) -> anyhow::Result<Self> {
        let guard = TerminalGuard::take(has_mouse).context("taking the terminal")?;
        Ok(Self {
            _guard: guard,
            terminal: Terminal::new(Cells::default()).context("looking at the terminal")?,
            look: capabilities(),
            size: size(),
            has_mouse,
        })
    }

    /// Draws all cells anew; those that have changed are written.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can't be written to.
    pub fn draw(&mut self, draw: impl FnOnce(TerminalCaps, &mut Buffer)) -> anyhow::Result<()> {
        let look = self.look;
        let drawn = self.terminal.draw(|frame| draw(look, frame.buffer_mut()));
        drawn.map(drop).context("drawing")
    }

    /// Returns true if the terminal has another size than the last time.
    pub fn is_resized(&mut self) -> bool {
        let now = size();
        std::mem::replace(&mut self.size, now) != now
    }

    /// Takes the mouse from the terminal, or gives it back.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can't be written to.
    pub fn use_mouse(&mut self, is_ours: bool) -> io::Result<()> {
        self.has_mouse = is_ours;
        write_out(if is_ours { MOUSE } else { NO_MOUSE }.as_bytes())
    }

    /// Gives the terminal back and stops the process, as Ctrl-Z does elsewhere; takes the terminal
    /// again once the shell continues it.
    ///
    /// # Errors
    ///
    /// Fails if the process can't be stopped, or the terminal can't be taken again.
    pub fn suspend(&mut self) -> anyhow::Result<()> {
        give_back();
        // The kernel stops all threads before this call returns. Without a shell that could
        // continue it (an orphaned process group), nothing happens.
        let stopped = signal_hook::low_level::raise(signal_hook::consts::SIGTSTP);
        enter(self.has_mouse).context("taking the terminal again")?;
        self.terminal.clear().context("clearing the terminal")?;
        stopped.context("stopping")
    }
}

/// Guard of the terminal's modes.
#[derive(Debug)]
struct TerminalGuard(());

impl TerminalGuard {
    /// Takes the terminal.
    fn take(has_mouse: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        interrupt::before_killed(give_back);
        let ours = Self(());
        enter(has_mouse)?;
        Ok(ours)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Sets the modes of the full screen.
fn enter(has_mouse: bool) -> io::Result<()> {
    let stdin = io::stdin();
    let found = termios::tcgetattr(stdin.as_fd())?;
    let mut raw = found.clone();
    raw.make_raw();
    // Messages may be printed meanwhile: their line ends stay line ends.
    raw.output_modes = found.output_modes;
    *lock() = Some(found);
    termios::tcsetattr(stdin.as_fd(), OptionalActions::Flush, &raw)?;
    write_out(ENTER.as_bytes())?;
    write_out(if has_mouse { MOUSE } else { NO_MOUSE }.as_bytes())
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED_TERMIOS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the terminal back, once.
pub fn give_back() {
    let Some(found) = lock().take() else { return };
    // The terminal may be gone: there is nobody left to report an error to.
    let _ = write_out(LEAVE.as_bytes());
    let _ = termios::tcsetattr(io::stdin().as_fd(), OptionalActions::Drain, &found);
}

/// Returns the current size of the terminal.
pub(crate) fn size() -> Size {
    // Both are 0 if nobody has set them (ioctl_tty(2), TIOCGWINSZ).
    match termios::tcgetwinsize(io::stdout().as_fd()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            width: size.ws_col,
            height: size.ws_row,
        },
        _ => DEFAULT_SIZE,
    }
}

pub(crate) fn write_out(bytes: &[u8]) -> io::Result<()> {
    interrupt::writing(|| {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    })
}

/// Returns the typed bytes, which are empty if nothing was typed within `at_most`; `None` if the
/// terminal is gone.
///
/// # Errors
///
/// Fails if the terminal can't be read.
pub fn read_keys(at_most: Duration) -> io::Result<Option<Vec<u8>>> {
    let stdin = io::stdin();
    if !sys::process::wait_readable(stdin.as_fd(), at_most)? {
        return Ok(Some(Vec::new()));
    }
    let mut bytes = [0; 256];
    match rustix::io::read(&stdin, &mut bytes) {
        // The other end is gone (tty_ioctl(4)).
        Ok(0) | Err(rustix::io::Errno::IO) => Ok(None),
        Ok(count) => Ok(Some(bytes[..count].to_vec())),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Some(Vec::new())),
        Err(error) => Err(error.into()),
    }
}
