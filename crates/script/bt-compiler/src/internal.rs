//! States that an earlier pass has ruled out.
//!
//! A pass that meets one records it with its place in the script and goes on with a value that no program ever loads, because
//! a script with an error is not returned. Users see "internal error, please report"; with debug assertions
//! [`compile`](super::compile()) panics instead, so that tests and fuzz targets find what users would have to report.

use std::panic::Location;

use bt_lang::{Diagnostic, Span};

/// A state that should be impossible.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("internal error, please report: {what} ({}:{})", .place.file(), .place.line())]
pub(crate) struct Impossible {
    /// What was met.
    what: &'static str,
    /// The part of the script that was being compiled.
    span: Span,
    /// The line of the compiler that met it.
    place: &'static Location<'static>,
}

impl Impossible {
    /// Called by what meets the state: the caller's own line is part of the message.
    #[track_caller]
    pub(crate) fn new(what: &'static str, span: Span) -> Self {
        Self { what, span, place: Location::caller() }
    }

    /// As users see it.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        let hint = "this is a mistake of dptrace, not of the script: please send the script with the report";
        Diagnostic::error(self.to_string(), self.span).with_hint(hint)
    }
}
