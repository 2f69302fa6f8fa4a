//! Statements and blocks.

use super::{BinaryOp, Expr, Name, Span, Type};

/// `{ statements; value }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
    /// The value of the block: an expression at its end without `;`.
    ///
    /// Only a block whose value can be used has one: a macro's body, a block within an expression. The blocks of probes,
    /// functions and loops, and those of an `if` or block that is itself a statement, have none: the parser made their
    /// last expression a statement.
    pub value: Option<Box<Expr>>,
    /// With its braces.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it is, without its `;`.
    pub span: Span,
}

impl Stmt {
    /// A statement at a place.
    pub fn new(kind: StmtKind, span: Span) -> Self {
        Self { kind, span }
    }
}

/// The kinds of statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StmtKind {
    /// What could not be read. There is a diagnostic.
    Error,
    /// `let $var: type = value;`
    Let {
        /// The variable.
        var: Name,
        /// Its type.
        ty: Option<Type>,
        /// Its first value.
        value: Option<Expr>,
    },
    /// `target = value;` and `target += value;`. The target is a [`super::ExprKind::Var`] or [`super::ExprKind::Map`]
    /// (else there is a diagnostic).
    Assign {
        /// What is set.
        target: Expr,
        /// The operator of `+=` and the like.
        op: Option<BinaryOp>,
        /// To what.
        value: Expr,
    },
    /// An expression for its effect: a call, `++`, an `if`, a block.
    Expr(Expr),
    /// `_ = value;`
    Discard(Expr),
    /// `while (cond) { }`
    While {
        /// The condition.
        cond: Expr,
        /// What is repeated.
        body: Block,
    },
    /// `unroll (count) { }`
    Unroll {
        /// How often, known when compiling.
        count: Expr,
        /// What is repeated.
        body: Block,
    },
    /// `for ($var : @map) { }`, where the variable is a tuple of key and value, `for ($var : start..end) { }`, and outside of
    /// scripts `for ($var : list(...)) { }`.
    For {
        /// The variable of the loop.
        var: Name,
        /// What is walked.
        iter: ForIter,
        /// What is repeated.
        body: Block,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;`, `return value;`
    Return(Option<Expr>),
    /// `import "file";` within a block: what the standard library does to get at its C code.
    Import(Name),
}

/// What a `for` walks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForIter {
    /// A map, by name.
    Map(Name),
    /// `start..end`, without the end.
    Range {
        /// The first value.
        start: Expr,
        /// The value at which to stop.
        end: Expr,
    },
    /// A list in the memory of a process, which an expression gives (only with [`crate::Options::of_process`]).
    List(Expr),
}
