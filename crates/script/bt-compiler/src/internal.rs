//! States that an earlier pass has ruled out.
//!
//! A pass that meets one records it with its place in the script. It goes on with a value that no
//! program ever loads, because a script with an error is not returned. Users see "internal error,
//! please report". With debug assertions [`compile`](super::compile()) panics instead, so that
//! tests and fuzz targets find what users would have to report.

use std::panic::Location;

use bt_lang::{Diagnostic, Span};

/// State that should be impossible.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("internal error, please report: {what} ({}:{})", .place.file(), .place.line())]
pub(crate) struct InternalError {
    /// Description of the state.
    what: &'static str,
    /// Part of the script that was being compiled.
    span: Span,
    /// Line of the compiler that met the state.
    place: &'static Location<'static>,
}

impl InternalError {
    /// Records the state with the caller's own line, which is part of the message.
    #[track_caller]
    pub(crate) fn new(what: &'static str, span: Span) -> Self {
        Self {
            what,
            span,
            place: Location::caller(),
        }
    }

    /// Returns the diagnostic that users see.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        let hint = "this is a bug in dptrace, not in the script: please send the script with the \
                    report";
        Diagnostic::error(self.to_string(), self.span).with_hint(hint)
    }
}
