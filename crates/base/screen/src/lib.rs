//! Destination of output: a terminal of some width, with or without colours, or a file or pipe,
//! which gets plain text of any length. [`Screen::stdout`] asks the machine once. Everything else
//! here is pure, so that a report takes a [`Screen`] as data and can be tested at any width.
#![forbid(unsafe_code)]

mod caps;
mod numbers;
mod style;
mod text;

use std::borrow::Cow;
use std::env;
use std::io;
use std::os::fd::AsFd;

use anstream::stream::RawStream;

pub use anstyle::Style;
pub use caps::{Colours, TerminalCaps};
pub use numbers::{counted, grouped, percent, plural, share, size, time, times};
pub use style::{GOOD, HEAD, LARGEST, NAME, QUIET, StyledText, WARN, WRONG};
pub use text::{
    columns, cut, join_paragraphs, join_some, pad, pad_left, shorten, squeezed, wrap, wrap_message,
};

/// Name of dptrace's own threads in reports on who took a CPU: their names mean nothing to a user.
pub const DPTRACE_ITSELF: &str = "dptrace itself";

/// Width of a terminal that reports none (a serial line, a pseudo-terminal without a size).
const USUAL_WIDTH: usize = 80;
/// Minimum width: no report can be cut to less, so the terminal breaks the lines then.
const MIN_WIDTH: usize = 20;

/// Destination of output. The default is a file or a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    width: Option<usize>,
    has_colour: bool,
    has_unicode: bool,
}

impl Screen {
    /// Returns the screen of standard output.
    pub fn stdout() -> Self {
        Self::for_stream(&io::stdout())
    }

    /// Returns the screen of standard error.
    pub fn stderr() -> Self {
        Self::for_stream(&io::stderr())
    }

    /// Returns a terminal of that number of columns, at least 20: for tests.
    pub fn terminal(width: usize, has_colour: bool) -> Self {
        Self {
            width: Some(width.max(MIN_WIDTH)),
            has_colour,
            has_unicode: true,
        }
    }

    fn for_stream(stream: &(impl RawStream + AsFd)) -> Self {
        if !stream.is_terminal() {
            return Self::default();
        }
        // Respects NO_COLOR, CLICOLOR, and TERM=dumb outside of CI.
        let has_colour = anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never;
        Self {
            width: Some(terminal_width(stream)),
            has_colour,
            has_unicode: is_utf8(),
        }
    }

    /// Returns the terminal's columns; `None` if this is no terminal, so that lines may have any
    /// length.
    pub fn width(self) -> Option<usize> {
        self.width
    }

    /// Returns true if this is a terminal.
    pub fn is_terminal(self) -> bool {
        self.width.is_some()
    }

    /// Returns true if this is a terminal on which colours are wanted.
    pub fn has_colour(self) -> bool {
        self.has_colour
    }

    /// Returns true if this is a terminal that shows more than ASCII: bars of blocks.
    pub fn has_unicode(self) -> bool {
        self.has_unicode
    }

    /// Cuts a line to the terminal's width; returns it whole if this is no terminal.
    pub fn cut(self, line: &str) -> Cow<'_, str> {
        match self.width {
            Some(width) if self.has_unicode => cut(line, width),
            Some(width) => text::cut_with(line, width, '~'),
            None => Cow::Borrowed(line),
        }
    }

    /// Returns text in that style if there are colours, or plain otherwise. Width and alignment of
    /// a format are kept: `{:>9}` is nine columns of text, in any style.
    pub fn paint<T: std::fmt::Display>(self, style: Style, text: T) -> StyledText<T> {
        StyledText::new(if self.has_colour { style } else { Style::new() }, text)
    }
}

/// Returns the columns of standard output; `None` if that is no terminal.
pub fn width() -> Option<usize> {
    Screen::stdout().width()
}

/// Returns true if this process is in the terminal's foreground group, or if that can't be known,
/// as for a terminal that is not the controlling one.
pub fn is_foreground(terminal: impl AsFd) -> bool {
    rustix::termios::tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}

fn terminal_width(stream: impl AsFd) -> usize {
    // Both are 0 if nobody has set them (ioctl_tty(2), TIOCGWINSZ).
    let asked = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    let exported = || {
        env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|&columns| columns > 0)
    };
    let width = if asked > 0 {
        asked
    } else {
        exported().unwrap_or(USUAL_WIDTH)
    };
    width.max(MIN_WIDTH)
}

/// Returns true if the user's locale has UTF-8 (locale(7)): the first of these variables that is
/// set decides. If none is set, as in the minimal environment of a service, it returns true, since
/// terminals of today have UTF-8.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    set.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    })
}
