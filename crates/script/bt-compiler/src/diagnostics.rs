//! Diagnostics of a script, as the passes report them.

use bt_lang::{Diagnostic, Span};

use super::internal::InternalError;

/// Limit on the diagnostics kept, since a broken script can have any number of mistakes.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// Diagnostics so far.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    all: Vec<Diagnostic>,
    /// True in the checker's last round. Mistakes of earlier rounds may come from types not known
    /// yet.
    pub(crate) last_round: bool,
    /// Number of errors that the last round met, including those not kept because their place has
    /// one already.
    pub(crate) refused: usize,
    /// First state met that should be impossible.
    impossible: Option<InternalError>,
}

impl Diagnostics {
    /// Starts with the diagnostics of the passes on the syntax tree.
    pub(crate) fn new(all: Vec<Diagnostic>) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }

    /// Keeps a diagnostic of the checker, if this round is the last and its place has none yet.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.refused += usize::from(self.last_round && diagnostic.is_error());
        let same = |other: &Diagnostic| {
            other.span == diagnostic.span && other.severity == diagnostic.severity
        };
        if self.last_round && !self.all.iter().any(same) {
            self.keep(diagnostic);
        }
    }

    /// Keeps a diagnostic, unless the limit is reached. The first error is always kept.
    pub(crate) fn keep(&mut self, diagnostic: Diagnostic) {
        let is_first = || diagnostic.is_error() && !self.has_errors();
        if self.all.len() < MAX_DIAGNOSTICS || is_first() {
            self.all.push(diagnostic);
        }
    }

    /// Keeps a mistake of the compiler's. Rounds before the last are ignored, since types are not
    /// known yet.
    pub(crate) fn internal(&mut self, impossible: InternalError) {
        if self.last_round && self.impossible.is_none() {
            self.all.push(impossible.diagnostic());
            self.impossible = Some(impossible);
        }
    }

    /// Returns true if an error at this place would be kept. If not, the search for hints can be
    /// skipped.
    pub(crate) fn would_keep(&self, span: Span) -> bool {
        let has_room = self.all.len() < MAX_DIAGNOSTICS || !self.has_errors();
        self.last_round
            && has_room
            && !self
                .all
                .iter()
                .any(|other| other.is_error() && other.span == span)
    }

    /// Returns true if an error rules out a script.
    pub(crate) fn has_errors(&self) -> bool {
        self.all.iter().any(Diagnostic::is_error)
    }

    /// Returns the list itself, to which the passes on the syntax tree and on settings add.
    pub(crate) fn list(&mut self) -> &mut Vec<Diagnostic> {
        &mut self.all
    }

    /// Returns all diagnostics by place, and the impossible state that one of them reports.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, Option<InternalError>) {
        self.all.sort_by_key(|diagnostic| diagnostic.span);
        (self.all, self.impossible)
    }
}
