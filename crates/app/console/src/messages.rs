//! Messages on standard error: errors, warnings and notes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use screen::Screen;
use text::printable;

use crate::{interrupt, status_line};

/// Set if messages have bpftrace's format, which callers of a program of that name expect.
static AS_BPFTRACE: AtomicBool = AtomicBool::new(false);

/// Switches messages to bpftrace's format.
pub fn set_bpftrace_compat() {
    AS_BPFTRACE.store(true, Ordering::Relaxed);
}

/// Returns whether messages have bpftrace's format.
pub fn is_bpftrace_compat() -> bool {
    AS_BPFTRACE.load(Ordering::Relaxed)
}

/// bpftrace's message, on a line without `ERROR`, for a script that has nothing to attach.
pub const NO_PROBES: &str = "no probes to attach";

/// Prefixes of bpftrace's messages that begin with a small letter.
const SMALL: [&str; 5] = [
    "call to ",
    "failed to open ",
    "specified module ",
    "the index ",
    "unroll ",
];

/// Capitalizes a message, as bpftrace does, unless it begins with a name of the language.
pub fn capitalized(text: &str) -> String {
    if SMALL.iter().any(|small| text.starts_with(small)) {
        return text.to_owned();
    }
    if !text
        .split(' ')
        .next()
        .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()))
    {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// Prints an error on standard error.
pub fn print_error(error: &anyhow::Error) {
    print_message("error", AnsiColor::Red, &explained(error));
}

/// Formats an error with its causes; if rights are missing, adds how to get them.
pub fn explained(error: &anyhow::Error) -> String {
    match doctor::rights::advice(error) {
        Some(advice) => format!("{error:#}{advice}"),
        None => format!("{error:#}"),
    }
}

/// Notes held back while the terminal shows something else.
static HELD_NOTES: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Prints a note on standard error, about something that does not stop the command.
pub fn note(text: &str) {
    if let Some(held) = HELD_NOTES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_mut()
    {
        held.push(text.to_owned());
        return;
    }
    print_message("note", AnsiColor::Yellow, text);
}

/// Holds back notes from now on, until [`print_notes`].
pub fn hold_notes() {
    HELD_NOTES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default();
}

/// Prints the notes that were held back, each once, and lets later ones through.
pub fn print_notes() {
    let held = HELD_NOTES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let mut seen = std::collections::HashSet::new();
    held.into_iter()
        .flatten()
        .filter(|text| seen.insert(text.clone()))
        .for_each(|text| note(&text));
}

/// Prints a message. It contains names of files and text from files, whose control characters must
/// not reach the terminal. Line ends are only our own, because paths and names are inserted by
/// [`printable::text`].
fn print_message(word: &str, colour: AnsiColor, text: &str) {
    let text = printable::lines(text.as_bytes());
    let text = &without_error_numbers(&text);
    interrupt::writing(|| status_line::without(|| print_plain(word, colour, text)));
}

/// Removes Rust's addition to system errors: `No such file or directory (os error 2)`. It happens
/// here because any message of any crate may contain a system error.
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    const MARK: &str = " (os error ";
    let mut pieces = text.split(MARK);
    let mut plain = Cow::Borrowed(pieces.next().unwrap_or_default());
    for piece in pieces {
        let rest = piece
            .trim_start_matches('-')
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(')');
        match rest {
            Some(rest) => plain.to_mut().push_str(rest),
            None => plain.to_mut().extend([MARK, piece]),
        }
    }
    plain
}

fn print_plain(word: &str, colour: AnsiColor, text: &str) {
    use std::io::Write as _;
    if is_bpftrace_compat() {
        let word = if word == "error" { "ERROR" } else { "WARNING" };
        // If standard error is closed, nobody reads the message.
        let head = if text == NO_PROBES {
            String::new()
        } else {
            format!("{word}: ")
        };
        let _ = writeln!(std::io::stderr(), "{head}{}", capitalized(text));
        return;
    }
    let screen = Screen::stderr();
    let style = if screen.is_terminal() {
        Style::new().bold().fg_color(Some(colour.into()))
    } else {
        Style::new()
    };
    // A file or a pipe gets each message in one line, for `grep`.
    let start = word.len() + ": ".len();
    let text = screen.width().map_or(Cow::Borrowed(text), |width| {
        screen::wrap_message(text, start, width).into()
    });
    // If standard error is closed, nobody reads the message. `anstream` strips the colour for
    // NO_COLOR.
    let _ = writeln!(anstream::stderr(), "{style}{word}:{style:#} {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_numbers_of_errors() {
        let texts = [
            (
                "reading x: No such file or directory (os error 2)",
                "reading x: No such file or directory",
            ),
            ("a (os error 2), b (os error 13)!", "a, b!"),
            ("x (os error y)", "x (os error y)"),
            ("plain", "plain"),
        ];
        for (text, plain) in texts {
            assert_eq!(without_error_numbers(text), plain);
        }
    }
}
