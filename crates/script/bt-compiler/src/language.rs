//! The names of the language, from the compiler's own tables: for `docs/language.md` and for lists.

use super::check::{AGGREGATES, BUILTINS, FUNCTIONS, REFUSED};

/// A name of the language.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Word {
    /// What kind of name.
    pub kind: WordKind,
    /// The name, or how it is called: `hist(n, bits)`.
    pub form: &'static str,
    /// What it gives or does; of what is not supported, what to use instead.
    pub doc: &'static str,
}

/// The kinds of name, in the order of the document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WordKind {
    /// A value without arguments.
    Builtin,
    /// A function.
    Function,
    /// What a map gathers.
    Aggregation,
    /// A function of bpftrace's that is refused.
    Unsupported,
}

/// All names that the compiler knows.
pub fn words() -> Vec<Word> {
    let word = |kind, form, doc| Word { kind, form, doc };
    let builtins = BUILTINS.iter().map(|it| word(WordKind::Builtin, it.name, it.doc));
    let functions = FUNCTIONS.iter().map(|it| word(WordKind::Function, it.signature, it.doc));
    let aggregates = AGGREGATES.iter().map(|it| word(WordKind::Aggregation, it.signature, it.doc));
    let unsupported = REFUSED.iter().map(|(name, instead)| word(WordKind::Unsupported, name, instead));
    builtins.chain(functions).chain(aggregates).chain(unsupported).collect()
}
