//! Events: what has left the ring, and what it asks for.

use bt_abi::{ActionKind, PrintTo};
use bt_lang::Span;
use bt_runtime::Value;
use bt_runtime::table::{Cell, Table};

use crate::session::RuntimeFailure;

/// What a script asked for, or what went wrong in it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// `printf()`, `errorf()` or `warnf()`.
    #[non_exhaustive]
    Printf {
        /// The text, formatted. It is not escaped: scripts print what they like.
        text: String,
        /// Which of the three.
        to: PrintTo,
        /// The call in the script.
        span: Span,
        /// The calls of macros that it was expanded from, the innermost first.
        callers: Vec<Span>,
    },
    /// `print()` of a value.
    Value(Value),
    /// `print()` of a map, as it is now.
    Map(Table),
    /// `print()` of one element of a map, as it is now.
    Element(Cell),
    /// `time()`: the local time, formatted.
    Time(String),
    /// `join()`: the strings, joined.
    Join(String),
    /// `cat()`: a file is to be shown.
    #[non_exhaustive]
    Cat {
        /// Its path.
        path: String,
        /// How many bytes of it at most.
        limit: u64,
    },
    /// `system()`: a command for the shell is to be run.
    System(String),
    /// `exit()`: nothing that came later is handed out but what `end` probes print.
    Exit(u8),
    /// Something failed at a place of the script for the first time.
    Failure(RuntimeFailure),
}

/// An event that has left the ring.
#[derive(Debug)]
pub(crate) struct RawEvent(pub(crate) Box<[u8]>);

impl RawEvent {
    /// An event's bytes, whatever they are: what has not the form of an event is an error when it is decoded.
    #[expect(clippy::unnecessary_wraps, reason = "what takes events from the ring asks whether to keep them")]
    pub(crate) fn copy(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.into()))
    }
}

/// An event with its values, which were looked up when it came: a process may be gone when it is shown.
#[derive(Debug)]
pub(crate) struct DecodedEvent {
    pub(crate) action: usize,
    pub(crate) values: Vec<Value>,
    pub(crate) bytes: Box<[u8]>,
}

/// Whether an action asks for the end.
pub(crate) fn is_exit(kind: &ActionKind) -> bool {
    matches!(kind, ActionKind::Exit)
}

/// A field's number; 0 if it has none.
pub(crate) fn number(value: Option<&Value>) -> i128 {
    value.and_then(Value::number).unwrap_or_default()
}

/// The strings of an array that are not empty, joined.
pub(crate) fn joined(values: &[Value], delimiter: &str) -> String {
    let Some(Value::Array(strings)) = values.first() else { return String::new() };
    let texts: Vec<String> = strings.iter().map(bt_runtime::text::value).filter(|text| !text.is_empty()).collect();
    texts.join(delimiter)
}
