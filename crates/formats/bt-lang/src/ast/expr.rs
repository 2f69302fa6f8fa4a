//! Expressions.

use super::{Block, Name, Span, Type};

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// Kind of the expression.
    pub kind: ExprKind,
    /// Source range, without enclosing parentheses.
    pub span: Span,
}

impl Expr {
    /// Creates an expression.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Self { kind, span }
    }
}

/// The kinds of expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExprKind {
    /// A part that could not be parsed; a diagnostic has been reported.
    Error,
    /// `42`, `0x2a`, `1e6`, `5s`.
    Int(IntLit),
    /// `"text"`, with its escapes resolved. Bytes, since `\xff` is allowed.
    Str(Vec<u8>),
    /// `true` and `false`.
    Bool(bool),
    /// A bare name: a builtin, an enum constant, a `#define`, a macro's parameter, or a call of a macro without `()`.
    /// As an argument of `kstack` and the like, a mode (`perf`). In [`TypeOrExpr`], perhaps a type.
    Ident(String),
    /// `$name`.
    Var(String),
    /// `$1`: a positional parameter, counted from 1.
    Positional(u32),
    /// `$#`: the number of positional parameters.
    ParamCount,
    /// `@name`, `@name[key]`, `@`.
    Map(MapRef),
    /// `function(arguments)`.
    Call {
        /// The function or macro.
        func: Name,
        /// The arguments. Some functions take a type here, which is [`ExprKind::TypeArg`].
        args: Vec<Expr>,
    },
    /// `typeof(x)` as an argument of a call: a type handed to a macro.
    TypeArg(Box<TypeOrExpr>),
    /// An operator before or after its operand. The operand of the four `++`/`--` is a variable or a map.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// An operator between two operands.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Source range of the operator.
        op_span: Span,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `cond ? then : otherwise`.
    Ternary {
        /// The condition.
        cond: Box<Expr>,
        /// The value if true. `None` for `cond ?: otherwise`, which yields the condition, evaluated
        /// once.
        then: Option<Box<Expr>>,
        /// The value if false.
        otherwise: Box<Expr>,
    },
    /// `if cond { } else if cond { } else { }`. A statement is this in a [`super::StmtKind::Expr`].
    If(If),
    /// `{ statements; value }`. A statement is this in a [`super::StmtKind::Expr`].
    Block(Block),
    /// `(type)operand`.
    Cast {
        /// The target type.
        ty: Box<Type>,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `sizeof(type or expression)`.
    Sizeof(Box<TypeOrExpr>),
    /// `offsetof(type or expression, field.field)`.
    Offsetof {
        /// The struct, as a type or an expression of that type.
        of: Box<TypeOrExpr>,
        /// The path of fields, at least one.
        path: Vec<Name>,
    },
    /// `typeinfo(type or expression)`: a tuple of numbers and names about a type (bpftrace 0.24).
    Typeinfo(Box<TypeOrExpr>),
    /// `base.field` and `base->field`. Both have one meaning in bpftrace: a pointer base is
    /// dereferenced.
    Field {
        /// The struct, or a pointer to it.
        base: Box<Expr>,
        /// Name of the field. A keyword is allowed here.
        name: Name,
        /// True if written `->`.
        arrow: bool,
    },
    /// `base.N`: an element of a tuple, counted from 0.
    TupleField {
        /// The tuple.
        base: Box<Expr>,
        /// Index of the element, from 0.
        index: u32,
    },
    /// `base[index]`, where base isn't a map. `@m[1][2]` is an index of a map's value.
    Index {
        /// The array or pointer.
        base: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `(a, b)`, `(a,)`, `()`.
    Tuple(Vec<Expr>),
    /// `(name=value, name=value)`, at least one. Duplicate names are reported.
    Record(Vec<RecordField>),
    /// `comptime operand`: the operand must be known at compile time.
    Comptime(Box<Expr>),
}

/// A whole number as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntLit {
    /// Value; times are converted to nanoseconds (`5us` is 5,000).
    pub value: u64,
    /// Number base of the literal.
    pub base: Base,
    /// Suffix after the digits.
    pub suffix: IntSuffix,
    /// Source text, for the formatter.
    pub text: String,
}

/// Number base of an integer literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// `0b101`
    Binary,
    /// `017`
    Octal,
    /// `15`, `1e6`
    Decimal,
    /// `0xf`
    Hex,
}

/// Suffix of an integer literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntSuffix {
    /// No suffix.
    None,
    /// `u`: at most 2^32 - 1 (checked).
    U,
    /// `ul`.
    Ul,
    /// `ull`.
    Ull,
    /// `l`: at most 2^63 - 1 (checked).
    L,
    /// `ll`: at most 2^63 - 1 (checked).
    Ll,
    /// One of `ns us ms s m h d`: the value is already in nanoseconds.
    Time,
}

/// A map with its key: `@name[keys]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRef {
    /// The map's name, empty for `@`.
    pub name: Name,
    /// The parts of the key; empty if the map is named without a key.
    pub keys: Vec<Expr>,
}

/// `name=value` in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// Name of the field.
    pub name: Name,
    /// Value of the field.
    pub value: Expr,
    /// Source range of `name=value`.
    pub span: Span,
}

/// A chain of conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct If {
    /// The conditions with their blocks, at least one, in order.
    pub arms: Vec<(Expr, Block)>,
    /// The final `else`.
    pub otherwise: Option<Block>,
}

/// Operand of `sizeof`, `offsetof` or `typeof`: a type or an expression.
///
/// A bare name that is no type of the language is an `Expr(Ident)`: it may be a typedef of the kernel, or a macro's
/// parameter. `x[4]` and `x*` are types here, as bpftrace reads them; `(x[4])` is an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeOrExpr {
    /// A type.
    Type(Type),
    /// An expression, or a bare name that may yet be a type.
    Expr(Expr),
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`
    Neg,
    /// `!x`
    Not,
    /// `~x`
    BitNot,
    /// `*x`
    Deref,
    /// `&x`: the address of a variable or map
    AddrOf,
    /// `++x`
    PreInc,
    /// `--x`
    PreDec,
    /// `x++`
    PostInc,
    /// `x--`
    PostDec,
}

impl UnaryOp {
    /// Returns the operator as written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Neg => "-",
            Self::Not => "!",
            Self::BitNot => "~",
            Self::Deref => "*",
            Self::AddrOf => "&",
            Self::PreInc | Self::PostInc => "++",
            Self::PreDec | Self::PostDec => "--",
        }
    }

    /// Returns whether the operator follows its operand.
    pub fn is_postfix(self) -> bool {
        matches!(self, Self::PostInc | Self::PostDec)
    }
}

/// Operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are C's, and `text` gives the sign")]
pub enum BinaryOp {
    LogOr,
    LogAnd,
    BitOr,
    BitXor,
    BitAnd,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl BinaryOp {
    /// All operators with their sign and precedence, in C's order. All associate to the left.
    pub const TABLE: [(Self, &'static str, u8); 18] = [
        (Self::LogOr, "||", 1),
        (Self::LogAnd, "&&", 2),
        (Self::BitOr, "|", 3),
        (Self::BitXor, "^", 4),
        (Self::BitAnd, "&", 5),
        (Self::Eq, "==", 6),
        (Self::Ne, "!=", 6),
        (Self::Lt, "<", 7),
        (Self::Le, "<=", 7),
        (Self::Gt, ">", 7),
        (Self::Ge, ">=", 7),
        (Self::Shl, "<<", 8),
        (Self::Shr, ">>", 8),
        (Self::Add, "+", 9),
        (Self::Sub, "-", 9),
        (Self::Mul, "*", 10),
        (Self::Div, "/", 10),
        (Self::Mod, "%", 10),
    ];

    /// Returns the operator as written.
    pub fn text(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// Returns the precedence, from 1 (`||`) to 10 (`*`).
    pub fn precedence(self) -> u8 {
        Self::TABLE[self as usize].2
    }
}
