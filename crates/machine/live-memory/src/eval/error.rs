//! Why an expression has no value.

use bt_lang::{Diagnostic, Span};
use thiserror::Error;
use typeinfo::TypeError;

use crate::memory::Unreadable;

/// Why an expression has no value, and which part of it is to blame.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{fault}")]
pub struct EvalError {
    /// The part, in bytes of the expression's text.
    pub span: Span,
    /// What is wrong.
    pub fault: Fault,
    /// What would help.
    pub hints: Vec<String>,
}

/// What is wrong with a part of an expression.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// A pointer that leads nowhere on purpose, or almost: `NULL->member`.
    #[error("the pointer is NULL: {what} at {address:#x} can't be read")]
    Null {
        /// What should be there, as C writes its type.
        what: String,
        /// Where.
        address: u64,
    },
    /// Memory that can't be read.
    #[error("{what}: {source}")]
    Unreadable {
        /// What should be there, as C writes its type.
        what: String,
        /// Why it was not read.
        source: Unreadable,
    },
    /// A question about types without an answer: no such member, only declared.
    #[error("{0}")]
    Type(#[from] TypeError),
    /// A name that nothing has.
    #[error("there is no {kind} {name}")]
    NoName {
        /// What was looked for.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A variable that several units have, each its own.
    #[error("there are {count} variables {name}, in {sources}")]
    Ambiguous {
        /// The name.
        name: String,
        /// How many.
        count: usize,
        /// Where they are defined, separated by commas.
        sources: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl EvalError {
    /// That something is wrong with a part of the expression.
    pub fn new(span: Span, fault: impl Into<Fault>) -> Self {
        Self { span, fault: fault.into(), hints: Vec::new() }
    }

    pub(crate) fn other(span: Span, message: impl Into<String>) -> Self {
        Self::new(span, Fault::Other(message.into()))
    }

    /// With something that would help.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The memory that could not be read, if that is why.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        if let Fault::Unreadable { source, .. } = &self.fault { Some(source) } else { None }
    }

    /// Whether nothing more can be read: the process is gone, or the walk has read as much as it may.
    pub fn is_final(&self) -> bool {
        self.unreadable().is_some_and(|source| source.cause.is_final())
    }

    /// The same as a diagnostic, to be shown with the expression's text.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.to_string(), self.span);
        self.hints.iter().fold(diagnostic, Diagnostic::with_hint)
    }
}
