//! A full screen on the terminal, as `dptrace top` has. The terminal is given back as it was found,
//! however the process ends, except by SIGKILL.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use errors::usage;
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{self, OptionalActions, Termios};
use screen::{Colours, Screen, TerminalCaps};

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
pub fn capabilities() -> TerminalCaps {
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

/// Guard of the full screen: keys arrive one by one, and the screen is the alternate one. The
/// terminal is given back when the guard is dropped, and before a panic or a signal ends the process.
#[derive(Debug)]
pub struct TerminalGuard(());

impl TerminalGuard {
    /// Takes the terminal.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can't be set up or written to.
    pub fn take() -> io::Result<Self> {
        let stdin = io::stdin();
        let found = termios::tcgetattr(stdin.as_fd())?;
        let mut raw = found.clone();
        raw.make_raw();
        // Messages may be printed meanwhile: their line ends stay line ends.
        raw.output_modes = found.output_modes;
        *lock() = Some(found);
        termios::tcsetattr(stdin.as_fd(), OptionalActions::Flush, &raw)?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        interrupt::before_killed(give_back);
        let ours = Self(());
        write_out(ENTER.as_bytes())?;
        Ok(ours)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        give_back();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED_TERMIOS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal, once.
fn give_back() {
    let Some(found) = lock().take() else { return };
    // The terminal may be gone: there is nobody left to report an error to.
    let _ = write_out(LEAVE.as_bytes());
    let _ = termios::tcsetattr(io::stdin().as_fd(), OptionalActions::Drain, &found);
}

/// Takes the mouse from the terminal, or gives it back.
///
/// # Errors
///
/// Fails if the terminal can't be written to.
pub fn take_mouse(is_ours: bool) -> io::Result<()> {
    write_out(if is_ours { MOUSE } else { NO_MOUSE }.as_bytes())
}

/// Returns the current size of the terminal.
pub fn size() -> Size {
    // Both are 0 if nobody has set them (ioctl_tty(2), TIOCGWINSZ).
    match termios::tcgetwinsize(io::stdout().as_fd()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            width: size.ws_col,
            height: size.ws_row,
        },
        _ => DEFAULT_SIZE,
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
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

/// Standard output as a terminal of cells.
#[derive(Debug, Default)]
pub struct Cells {
    /// Bytes to write at the next flush.
    bytes: Vec<u8>,
    position: Position,
}

impl Cells {
    fn style(&mut self, cell: &Cell) {
        self.bytes.extend_from_slice(b"\x1b[0");
        let modifiers = [
            (Modifier::BOLD, "1"),
            (Modifier::DIM, "2"),
            (Modifier::UNDERLINED, "4"),
            (Modifier::REVERSED, "7"),
        ];
        for (modifier, code) in modifiers {
            if cell.modifier.contains(modifier) {
                self.bytes.push(b';');
                self.bytes.extend_from_slice(code.as_bytes());
            }
        }
        for (colour, base) in [(cell.fg, 30), (cell.bg, 40)] {
            if let Some(code) = code(colour, base) {
                self.bytes.push(b';');
                self.bytes.extend_from_slice(code.as_bytes());
            }
        }
        self.bytes.push(b'm');
    }

    fn go_to(&mut self, at: Position) {
        let _ = write!(self.bytes, "\x1b[{};{}H", at.y + 1, at.x + 1);
        self.position = at;
    }
}

/// Returns the parameters that set a colour (ECMA-48, SGR; bright colours and the 256 are xterm's).
fn code(colour: Color, base: u8) -> Option<String> {
    let named = |number: u8| Some((base + number).to_string());
    let bright = |number: u8| Some((base + 60 + number).to_string());
    match colour {
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(number) => Some(format!("{};5;{number}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
        Color::Reset => None,
    }
}

impl Backend for Cells {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut style = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.go_to(Position { x, y });
            }
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if style != Some(wanted) {
                self.style(cell);
                style = Some(wanted);
            }
            let symbol = cell.symbol();
            self.bytes.extend_from_slice(symbol.as_bytes());
            // A symbol may be wider than one column: the next position is then set again.
            next = (symbol.len() == 1).then_some((x + 1, y));
        }
        self.bytes.extend_from_slice(b"\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.bytes.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.position)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.go_to(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.bytes.extend_from_slice(match region {
            ClearType::All => b"\x1b[2J".as_slice(),
            ClearType::AfterCursor => b"\x1b[0J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[0K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::default(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = write_out(&self.bytes);
        self.bytes.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_what_a_terminal_understands() {
        let mut cells = Cells::default();
        let mut red = Cell::new("x");
        red.fg = Color::Red;
        red.modifier = Modifier::BOLD;
        let (plain, wide) = (Cell::new("y"), Cell::new("█"));
        let content = [
            (0, 0, &red),
            (1, 0, &red),
            (2, 0, &plain),
            (5, 1, &wide),
            (6, 1, &plain),
        ];
        cells.draw(content.into_iter()).expect("nothing is written");
        let text = String::from_utf8(cells.bytes).expect("UTF-8");
        assert_eq!(
            text,
            "\x1b[1;1H\x1b[0;1;31mxx\x1b[0my\x1b[2;6H█\x1b[2;7Hy\x1b[0m"
        );
        assert_eq!(code(Color::Indexed(226), 40).as_deref(), Some("48;5;226"));
        assert_eq!(code(Color::LightRed, 30).as_deref(), Some("91"));
    }
}
