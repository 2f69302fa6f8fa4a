//! Statements and blocks.

use super::{BinaryOp, Expr, Name, Span, Type};

/// `{ statements; value }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
    /// The value of the block: an expression at its end without `;`.
    ///
    /// Only a block whose value can be used has one: a macro's body, or a block within an
    /// expression. In all other blocks the parser turns the last expression into a statement: those
    /// of probes, functions and loops, and those of an `if` or block that is itself a statement.
    pub value: Option<Box<Expr>>,
    /// Source range, braces included.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stmt {
    /// Kind of the statement.
    pub kind: StmtKind,
    /// Source range, without the `;`.
    pub span: Span,
}

impl Stmt {
    /// Creates a statement.
    pub fn new(kind: StmtKind, span: Span) -> Self {
        Self { kind, span }
    }
}

/// The kinds of statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StmtKind {
    /// A part that could not be parsed; a diagnostic has been reported.
    Error,
    /// `let $var: type = value;`
    Let {
        /// The variable.
        var: Name,
        /// Declared type.
        ty: Option<Type>,
        /// Initial value.
        value: Option<Expr>,
    },
    /// `target = value;` and `target += value;`. The target is a [`super::ExprKind::Var`] or
    /// [`super::ExprKind::Map`]; any other is reported.
    Assign {
        /// Variable or map to assign to.
        target: Expr,
        /// The operator of `+=` and the like.
        op: Option<BinaryOp>,
        /// Value to assign, or the right operand of `op`.
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
        /// Body of the loop.
        body: Block,
    },
    /// `unroll (count) { }`
    Unroll {
        /// Number of repetitions, known at compile time.
        count: Expr,
        /// Statements to repeat.
        body: Block,
    },
    /// `for ($var : @map) { }`, where the variable is a tuple of key and value, `for ($var : start..end) { }`, and outside of
    /// scripts `for ($var : list(...)) { }`.
    For {
        /// The variable of the loop.
        var: Name,
        /// The range, map or list to iterate over.
        iter: ForIter,
        /// Body of the loop.
        body: Block,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;`, `return value;`
    Return(Option<Expr>),
    /// `import "file";` within a block. The standard library uses it to load its C code.
    Import(Name),
}

/// The range, map or list that a `for` iterates over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForIter {
    /// A map, by name.
    Map(Name),
    /// `start..end`, with the end excluded.
    Range {
        /// The first value.
        start: Expr,
        /// The end, excluded.
        end: Expr,
    },
    /// A list in the memory of a process, given by an expression (only with
    /// [`crate::Options::of_process`]).
    List(Expr),
}
