//! Events that have left the ring, and their requests.

use bt_abi::{ActionKind, PrintTo};
use bt_lang::Span;
use bt_runtime::Value;
use bt_runtime::table::{Cell, Table};

use crate::session::RuntimeFailure;

/// A request of a script, or a failure in it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// `printf()`, `errorf()` or `warnf()`.
    #[non_exhaustive]
    Printf {
        /// Formatted text. It is not escaped: scripts may print anything.
        text: String,
        /// Function that was called.
        to: PrintTo,
        /// Call in the script.
        span: Span,
        /// Calls of macros that it was expanded from, the innermost first.
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
        /// Path of the file.
        path: String,
        /// Limit on the bytes of it.
        limit: u64,
    },
    /// `system()`: a command for the shell is to be run.
    System(String),
    /// `exit()`: nothing that came later is handed out, except the output of `end` probes.
    Exit(u8),
    /// A failure at a place of the script, for the first time.
    Failure(RuntimeFailure),
}

/// An event that has left the ring.
#[derive(Debug)]
pub(crate) struct RawEvent(pub(crate) Box<[u8]>);

impl RawEvent {
    /// Copies an event's bytes unchecked: a wrong form is an error when the event is decoded.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "what takes events from the ring asks whether to keep them"
    )]
    pub(crate) fn copy(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.into()))
    }
}

/// An event with its values, which were looked up when it came: a process may be gone when it is
/// shown.
#[derive(Debug)]
pub(crate) struct DecodedEvent {
    pub(crate) action: usize,
    pub(crate) values: Vec<Value>,
    pub(crate) bytes: Box<[u8]>,
}

/// Returns true if an action asks for the end.
pub(crate) fn is_exit(kind: &ActionKind) -> bool {
    matches!(kind, ActionKind::Exit)
}

/// Returns a field's number; 0 if it has none.
pub(crate) fn number(value: Option<&Value>) -> i128 {
    value.and_then(Value::number).unwrap_or_default()
}

/// Joins the strings of an array that are not empty.
pub(crate) fn joined(values: &[Value], delimiter: &str) -> String {
    let Some(Value::Array(strings)) = values.first() else {
        return String::new();
    };
    let texts: Vec<String> = strings
        .iter()
        .map(bt_runtime::text::value)
        .filter(|text| !text.is_empty())
        .collect();
    texts.join(delimiter)
}
