//! Reasons why an expression has no value.

use bt_lang::{Diagnostic, Span};
use thiserror::Error;
use typeinfo::TypeError;

use crate::memory::MemoryError;

/// Reason why an expression has no value, and the part of it to blame.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{fault}")]
pub struct EvalError {
    /// The part to blame, in bytes of the expression's text.
    pub span: Span,
    /// The fault.
    pub fault: Fault,
    /// Suggestions.
    pub hints: Vec<String>,
}

/// Fault of a part of an expression.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// A NULL pointer, or one close to NULL: `NULL->member`.
    #[error("the pointer is NULL: {what} at {address:#x} can't be read")]
    Null {
        /// Expected content, as C writes its type.
        what: String,
        /// Address.
        address: u64,
    },
    /// Memory that can't be read.
    #[error("{what}: {source}")]
    Unreadable {
        /// Expected content, as C writes its type.
        what: String,
        /// Reason why it was not read.
        source: MemoryError,
    },
    /// A failed query about types: no such member, only declared.
    #[error("{0}")]
    Type(#[from] TypeError),
    /// A name that does not exist.
    #[error("there is no {kind} {name}")]
    NoName {
        /// Kind of the name.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A variable that several units have, each its own.
    #[error("there are {count} variables {name}, in {sources}")]
    Ambiguous {
        /// The name.
        name: String,
        /// Number of these variables.
        count: usize,
        /// Files that define them, separated by commas.
        sources: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl EvalError {
    /// Creates the error for a part of the expression.
    pub fn new(span: Span, fault: impl Into<Fault>) -> Self {
        Self {
            span,
            fault: fault.into(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn other(span: Span, message: impl Into<String>) -> Self {
        Self::new(span, Fault::Other(message.into()))
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the memory that could not be read, if that is the reason.
    pub fn unreadable(&self) -> Option<&MemoryError> {
        if let Fault::Unreadable { source, .. } = &self.fault {
            Some(source)
        } else {
            None
        }
    }

    /// Returns true if nothing more can be read: the process is gone, or the walk has reached its
    /// limits.
    pub fn is_final(&self) -> bool {
        self.unreadable()
            .is_some_and(|source| source.cause.is_final())
    }

    /// Returns the same as a diagnostic, to be shown with the expression's text.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.to_string(), self.span);
        self.hints.iter().fold(diagnostic, Diagnostic::with_hint)
    }
}
