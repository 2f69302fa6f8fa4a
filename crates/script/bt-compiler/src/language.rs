//! Names of the language, from the compiler's own tables, for `docs/language.md` and for lists.

use super::check::{AGGREGATES, BUILTINS, FUNCTIONS, REFUSED};

/// Name of the language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Word {
    /// Kind of name.
    pub kind: WordKind,
    /// Name, or form of its call: `hist(n, bits)`.
    pub form: &'static str,
    /// Documentation; for an unsupported name, what to use instead.
    pub doc: &'static str,
}

/// Kind of name, in the order of the document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WordKind {
    /// Value without arguments.
    Builtin,
    /// Function of the language.
    Function,
    /// Aggregation that a map gathers.
    Aggregation,
    /// Function of bpftrace's that is refused.
    Unsupported,
}

/// Returns all names that the compiler knows.
pub fn words() -> Vec<Word> {
    let word = |kind, form, doc| Word { kind, form, doc };
    let builtins = BUILTINS
        .iter()
        .map(|it| word(WordKind::Builtin, it.name, it.doc));
    let functions = FUNCTIONS
        .iter()
        .map(|it| word(WordKind::Function, it.signature, it.doc));
    let aggregates = AGGREGATES
        .iter()
        .map(|it| word(WordKind::Aggregation, it.signature, it.doc));
    let unsupported = REFUSED
        .iter()
        .map(|(name, instead)| word(WordKind::Unsupported, name, instead));
    builtins
        .chain(functions)
        .chain(aggregates)
        .chain(unsupported)
        .collect()
}
