//! The syntax tree of a script.
//!
//! A tree is made of owned values, with [`Box`] for recursive types. Every node has a [`Span`]: the
//! source bytes it was parsed from. After macro expansion, nodes from a macro's body keep the spans
//! of that body.
//!
//! Invariants of every tree that the parser returns:
//! - The height of a tree is at most [`MAX_HEIGHT`], counted over every chain of expressions,
//!   statements and types, so a pass may recurse over it.
//! - If something could not be parsed, the tree has an `Error` node there, and the diagnostics have
//!   an error. A tree without errors has no `Error` node.
//! - Parentheses that only group are not in the tree. `@m[1, 2]` and `@m[(1, 2)]` have different
//!   trees (two keys, and one key that is a tuple), but the same meaning.
//! - A predicate `/e/` is separate from the probe's body. It means `if (e) { body }`.
//! - Names are as written: `$x` is `Var("x")`, `@x` is a map `x`, and the anonymous map `@` is a map with an empty name.
//! - Old and new spellings give the same tree (`BEGIN` and `begin`: [`ProbeKind::Begin`]; `kfunc`
//!   and `fentry`: [`ProbeKind::Fentry`]; `for $x : @m` and `for ($x : @m)`).
//! - Builtins (`pid`, `args`, `comm`), enum constants, `#define` constants and macro parameters are
//!   all [`ExprKind::Ident`]; the scope decides between them.

mod expr;
mod item;
mod point;
mod stmt;
mod types;
pub mod visit;

pub use expr::{
    Base, BinaryOp, Expr, ExprKind, If, IntLit, IntSuffix, MapRef, RecordField, TypeOrExpr, UnaryOp,
};
pub use item::{
    CEnum, CField, CRecord, CVariant, Comment, Config, ConfigEntry, ConfigValue, Define, Fn,
    FnParam, Item, ItemKind, Macro, MacroParam, MapDecl, Probe, Program,
};
pub use point::{AttachPoint, Part, PointForm, ProbeKind, SourceLine};
pub use stmt::{Block, ForIter, Stmt, StmtKind};
pub use types::{RecordKind, ScalarType, Type, TypeKind, scalar};

/// Maximum height of a tree returned by the parser.
pub const MAX_HEIGHT: u32 = 256;

/// A byte range of the source, from `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span from `start` to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Creates an empty span at `at`.
    pub const fn empty(at: u32) -> Self {
        Self { start: at, end: at }
    }

    /// Returns the span from the start of the earlier to the end of the later.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Returns the text of the span in `source`; empty if the span does not fit `source`.
    pub fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// A name without its `$` or `@`, and its source range, which includes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Source range.
    pub span: Span,
}

impl Name {
    /// Creates a name.
    pub fn new(text: impl Into<String>, span: Span) -> Self {
        Self {
            text: text.into(),
            span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_the_order_of_their_table() {
        for (at, row) in BinaryOp::TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, at);
            assert_eq!((row.0.text(), row.0.precedence()), (row.1, row.2));
        }
    }

    #[test]
    fn kinds_of_probe_have_their_names() {
        for (kind, name, others) in ProbeKind::TABLE {
            assert_eq!(kind.name(), *name);
            assert!(
                others
                    .iter()
                    .chain([name])
                    .all(|name| ProbeKind::by_name(name) == Some(*kind)),
                "{name}"
            );
        }
        assert_eq!(ProbeKind::by_name("BEGIN"), Some(ProbeKind::Begin));
        assert_eq!(ProbeKind::by_name("U"), Some(ProbeKind::Usdt));
        assert_eq!(ProbeKind::by_name("u"), Some(ProbeKind::Uprobe));
        assert_eq!(ProbeKind::by_name("x"), None);
    }
}
