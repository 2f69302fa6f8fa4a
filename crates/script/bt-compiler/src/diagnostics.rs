//! What is wrong with a script, as the passes find it out.

use bt_lang::{Diagnostic, Span};

use super::internal::Impossible;

/// How many diagnostics are kept: a broken script has no end of mistakes.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// The diagnostics so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    all: Vec<Diagnostic>,
    /// Whether the checker is in its last round: mistakes of the rounds before it may come of types that are not known yet.
    pub(crate) last_round: bool,
    /// How many errors the last round has met, those included that say no more than others and are not kept.
    pub(crate) refused: usize,
    /// The first state that should have been impossible.
    impossible: Option<Impossible>,
}

impl Diagnostics {
    /// Begins with those of the passes on the syntax tree.
    pub(crate) fn new(all: Vec<Diagnostic>) -> Self {
        Self { all, ..Self::default() }
    }

    /// Keeps a diagnostic of the checker, unless this round is not the last or there is one of its place.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.refused += usize::from(self.last_round && diagnostic.is_error());
        let same = |other: &Diagnostic| other.span == diagnostic.span && other.severity == diagnostic.severity;
        if self.last_round && !self.all.iter().any(same) {
            self.keep(diagnostic);
        }
    }

    /// Keeps a diagnostic, unless there are enough. An error is kept in any case, if it is the first one.
    pub(crate) fn keep(&mut self, diagnostic: Diagnostic) {
        let is_first = || diagnostic.is_error() && !self.has_errors();
        if self.all.len() < MAX_DIAGNOSTICS || is_first() {
            self.all.push(diagnostic);
        }
    }

    /// Keeps a mistake of the compiler's. In rounds before the last one types are not known yet.
    pub(crate) fn internal(&mut self, impossible: Impossible) {
        if self.last_round && self.impossible.is_none() {
            self.all.push(impossible.diagnostic());
            self.impossible = Some(impossible);
        }
    }

    /// Whether a mistake of this place would be kept; if not, the search for what would help can be skipped.
    pub(crate) fn would_keep(&self, span: Span) -> bool {
        let has_room = self.all.len() < MAX_DIAGNOSTICS || !self.has_errors();
        self.last_round && has_room && !self.all.iter().any(|other| other.is_error() && other.span == span)
    }

    /// Whether there will be no script.
    pub(crate) fn has_errors(&self) -> bool {
        self.all.iter().any(Diagnostic::is_error)
    }

    /// The passes on the syntax tree and on settings add to the list itself.
    pub(crate) fn list(&mut self) -> &mut Vec<Diagnostic> {
        &mut self.all
    }

    /// All of them by place, and the impossible state that one of them is about.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, Option<Impossible>) {
        self.all.sort_by_key(|diagnostic| diagnostic.span);
        (self.all, self.impossible)
    }
}
