//! Diagnostics: what is wrong, where, and how to correct it.

use crate::ast::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The script can't be run.
    Error,
    /// It can, and may do other than was meant.
    Warning,
}

/// A remark on the script. Made with [`Diagnostic::error`] and the `with_` methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lowercase, no full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Other places that matter, each with what it has to do with it.
    pub labels: Vec<(Span, String)>,
    /// What would help.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(message: impl Into<String>, span: Span) -> Self {
        Self { severity: Severity::Error, message: message.into(), span, labels: Vec::new(), hints: Vec::new() }
    }

    /// A warning at a place.
    pub fn warning(message: impl Into<String>, span: Span) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message, span) }
    }

    /// With another place.
    #[must_use]
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push((span, message.into()));
        self
    }

    /// With something that would help.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whether the script can't be run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Diagnostics as they come in. Bounded: a broken script has no end of mistakes.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    list: Vec<Diagnostic>,
}

/// How many diagnostics are kept.
const MAX_DIAGNOSTICS: usize = 100;

impl Sink {
    /// Keeps a diagnostic, unless there is one at its place already: the second is mostly the first one's consequence.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let reported = |other: &Diagnostic| other.span == diagnostic.span && other.severity == diagnostic.severity;
        if self.list.len() <= MAX_DIAGNOSTICS && !self.list.iter().any(reported) {
            self.list.push(diagnostic);
        }
    }

    /// The diagnostics by place, and a last one if there were too many.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        let over = self.list.len() > MAX_DIAGNOSTICS;
        self.list.truncate(MAX_DIAGNOSTICS);
        self.list.sort_by_key(|diagnostic| diagnostic.span);
        if let (true, Some(last)) = (over, self.list.last()) {
            let end = Span::empty(last.span.end);
            self.list
                .push(Diagnostic::error(format!("more than {MAX_DIAGNOSTICS} errors; the rest are not reported"), end));
        }
        self.list
    }
}
