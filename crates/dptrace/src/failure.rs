//! How a command can fail, as exit status and words.

use std::io::{ErrorKind, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use bpf_session::SessionError;
use host::HostError;
use kernel_delay::DelayError;

/// Done.
pub(crate) const DONE: u8 = 0;
/// It could not be done.
pub(crate) const FAILED: u8 = 1;
/// What was asked for makes no sense (clap's own status as well).
pub(crate) const USAGE: u8 = 2;
/// Not permitted, or not supported here.
pub(crate) const NOT_PERMITTED: u8 = 3;

/// A mistake in what was asked for.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A mistake in what was asked for, as an error.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// Something that this machine or this user's rights stand in the way of.
#[derive(Debug)]
struct Unsupported(String);

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

/// Something that this machine or this user's rights stand in the way of, as an error.
pub(crate) fn unsupported(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Unsupported(message.into()))
}

/// Whether nobody is there to read the output any more: then there is nothing left to do, and nothing wrong.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_kinds(error).any(|kind| kind == ErrorKind::BrokenPipe)
}

/// The exit status for an error.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_usage) {
        USAGE
    } else if io_kinds(error).any(|kind| kind == ErrorKind::PermissionDenied) || is_unsupported(error) {
        NOT_PERMITTED
    } else {
        FAILED
    }
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<Usage>() || cause.downcast_ref().is_some_and(DelayError::is_usage)
}

fn is_unsupported(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Unsupported>()
            || cause.downcast_ref().is_some_and(HostError::is_unsupported)
            || cause.downcast_ref().is_some_and(SessionError::is_unsupported)
            || cause.downcast_ref().is_some_and(DelayError::is_unsupported)
    })
}

fn io_kinds(error: &anyhow::Error) -> impl Iterator<Item = ErrorKind> {
    error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind)
}

/// Whether messages have bpftrace's form: where the program goes by its name, those who read its messages expect that.
static AS_BPFTRACE: AtomicBool = AtomicBool::new(false);

/// From now on messages have bpftrace's form.
pub(crate) fn speak_as_bpftrace() {
    AS_BPFTRACE.store(true, Ordering::Relaxed);
}

/// Whether messages have bpftrace's form.
pub(crate) fn speaks_as_bpftrace() -> bool {
    AS_BPFTRACE.load(Ordering::Relaxed)
}

/// How those of bpftrace's messages begin that begin with a small letter.
const SMALL: [&str; 5] = ["call to ", "failed to open ", "specified module ", "the index ", "unroll "];

/// A message as bpftrace begins it: with a capital letter, but for a name of the language.
pub(crate) fn capitalized(text: &str) -> String {
    if SMALL.iter().any(|small| text.starts_with(small)) {
        return text.to_owned();
    }
    if !text.split(' ').next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic())) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// An error of the engine's, in this program's words.
pub(crate) fn engine_error(error: bt_engine::Error) -> anyhow::Error {
    match error {
        bt_engine::Error::Host(error) => error.into(),
        bt_engine::Error::Session(error) => error.into(),
        bt_engine::Error::NeedsProcess => {
            usage("the script is about a process (__PID__): say which with -p PID, or -c COMMAND")
        }
        bt_engine::Error::NothingToAttach => {
            anyhow::anyhow!("there is nothing to attach; bench: and test: probes need --mode")
        }
        other => other.into(),
    }
}

/// Tells an error on standard error.
pub(crate) fn tell_error(error: &anyhow::Error) {
    tell("error", AnsiColor::Red, &format!("{error:#}"));
}

/// Tells something on standard error that does not keep the command from its work.
pub(crate) fn note(text: &str) {
    tell("note", AnsiColor::Yellow, text);
}

/// Tells what is left out of names and stacks.
pub(crate) fn warn_symbols() -> symbolize::Warn {
    std::sync::Arc::new(|warning: &symbolize::Warning| note(&warning.to_string()))
}

/// Whatever a message is about, names of files and of what is in them stand in it: nothing in it may be obeyed. Lines end only where
/// we end them, since paths and names come into a text by [`printable::text`].
fn tell(word: &str, colour: AnsiColor, text: &str) {
    let text = &printable::lines(text.as_bytes());
    crate::interrupt::writing(|| tell_plain(word, colour, text));
}

fn tell_plain(word: &str, colour: AnsiColor, text: &str) {
    use std::io::Write as _;
    if speaks_as_bpftrace() {
        let word = if word == "error" { "ERROR" } else { "WARNING" };
        // Where standard error is gone, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{word}: {}", capitalized(text));
        return;
    }
    let style =
        if std::io::stderr().is_terminal() { Style::new().bold().fg_color(Some(colour.into())) } else { Style::new() };
    // Where standard error is gone, there is nobody to tell. `anstream` strips the colour for NO_COLOR.
    let _ = writeln!(anstream::stderr(), "{style}{word}:{style:#} {text}");
}
