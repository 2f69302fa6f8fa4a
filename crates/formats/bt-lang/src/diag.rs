//! Diagnostics: an error or warning, its position, and hints for correcting it.

use crate::ast::Span;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// The script can't be run.
    Error,
    /// The script can be run, but may do something unintended.
    Warning,
}

/// An error or warning about the script. Made with [`Diagnostic::error`] and the `with_` methods.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// Message: lowercase, no full stop.
    pub message: String,
    /// Source range.
    pub span: Span,
    /// Related source ranges, each with a note.
    pub labels: Vec<(Span, String)>,
    /// Suggestions for correcting it.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// Creates an error.
    pub fn error(message: impl Into<String>, span: Span) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            labels: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Creates a warning.
    pub fn warning(message: impl Into<String>, span: Span) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(message, span)
        }
    }

    /// Adds a related source range with a note.
    #[must_use]
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push((span, message.into()));
        self
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns whether the script can't be run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Collected diagnostics. Their number is bounded, since a broken script can have errors without
/// end.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    list: Vec<Diagnostic>,
}

/// Limit on collected diagnostics.
const MAX_DIAGNOSTICS: usize = 100;

impl Sink {
    /// Adds a diagnostic, unless one of the same severity has the same span: the second is mostly a
    /// consequence of the first.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let reported = |other: &Diagnostic| {
            other.span == diagnostic.span && other.severity == diagnostic.severity
        };
        if self.list.len() <= MAX_DIAGNOSTICS && !self.list.iter().any(reported) {
            self.list.push(diagnostic);
        }
    }

    /// Returns the diagnostics sorted by position, followed by a note if the limit was exceeded.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        let over = self.list.len() > MAX_DIAGNOSTICS;
        self.list.truncate(MAX_DIAGNOSTICS);
        self.list.sort_by_key(|diagnostic| diagnostic.span);
        if let (true, Some(last)) = (over, self.list.last()) {
            let end = Span::empty(last.span.end);
            self.list.push(Diagnostic::error(
                format!("more than {MAX_DIAGNOSTICS} errors; the rest are not reported"),
                end,
            ));
        }
        self.list
    }
}
