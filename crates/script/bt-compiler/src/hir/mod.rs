//! Typed tree of a probe's body. The type checker builds it, and the emitter reads nothing else of
//! the body.

mod intrinsic;

use bt_lang::Span;
use bt_lang::ast::BinaryOp;
use typeinfo::BitAccess;
use usdt::args::ArgSpec;

use super::ty::{Space, Ty};
pub(crate) use intrinsic::Intrinsic;

/// Number of a variable in a program.
pub(crate) type VarId = usize;
/// Number of a map in the script.
pub(crate) type MapId = usize;

/// Expression with its type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expr {
    pub(crate) ty: Ty,
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ExprKind {
    /// Refused expression, already reported. No script that contains one is returned.
    Error,
    Int(u64),
    Str(Vec<u8>),
    Var(VarId),
    MapGet {
        map: MapId,
        key: Box<Expr>,
    },
    /// Values of all CPUs as one number.
    AggGet {
        map: MapId,
        key: Box<Expr>,
    },
    Neg(Box<Expr>),
    Not(Box<Expr>),
    BitNot(Box<Expr>),
    /// Operation on two numbers or pointers; `signed` selects the kind of division, shift and
    /// comparison.
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
        signed: bool,
    },
    /// Equality of two values in memory: strings, arrays, tuples. `left` and `right` have types of
    /// one form.
    MemEq {
        left: Box<Expr>,
        right: Box<Expr>,
        negate: bool,
    },
    /// 1 if the first `count` bytes of two strings differ, else 0.
    StrnCmp {
        left: Box<Expr>,
        right: Box<Expr>,
        count: u32,
    },
    Cond {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// `a ?: b` of two numbers: the first, unless it is 0.
    Elvis(Box<Expr>, Box<Expr>),
    /// Conversion of a number to this expression's type.
    Convert(Box<Expr>),
    /// Low bytes of memory (an array) as a number, or a number as an array.
    Reinterpret(Box<Expr>),
    /// Number at an address.
    Load {
        addr: Box<Expr>,
        space: Space,
        bits: Option<BitAccess>,
    },
    /// Value in memory at an address, not read before it is used.
    MemRef {
        addr: Box<Expr>,
        space: Space,
    },
    /// Part of a value in our own memory, at byte `offset`.
    Subobject {
        base: Box<Expr>,
        offset: u32,
        bits: Option<BitAccess>,
    },
    /// Address of a variable.
    VarAddr(VarId),
    /// Address of a map itself.
    MapAddr(MapId),
    /// Element of an array in our own memory.
    Elem {
        base: Box<Expr>,
        index: Box<Expr>,
    },
    /// Index into an array of `count` elements. An index out of bounds counts as a failure, and is
    /// still used.
    Index {
        index: Box<Expr>,
        count: u32,
    },
    /// Direct read of `size` bytes of the context.
    Ctx {
        offset: u32,
        size: u8,
    },
    /// Address of something in the context.
    CtxAddr {
        offset: u32,
    },
    /// Address that a `__data_loc` word of a tracepoint's record points to. Its low half is an
    /// offset from the record's start, or, if `relative`, from the word's end.
    DataLoc {
        offset: u32,
        relative: bool,
    },
    UsdtArg(Box<ArgSpec>),
    Tuple(Vec<Expr>),
    Block {
        stmts: Vec<Stmt>,
        value: Box<Expr>,
    },
    /// `++` and `--`: adds `by`. With `post`, the value is the one before.
    StepVar {
        var: VarId,
        by: i64,
        post: bool,
    },
    StepMap {
        map: MapId,
        key: Box<Expr>,
        by: i64,
        post: bool,
    },
    Intrinsic(Intrinsic, Vec<Expr>),
    HasKey {
        map: MapId,
        key: Box<Expr>,
    },
    Delete {
        map: MapId,
        key: Box<Expr>,
    },
    Len(MapId),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Stmt {
    /// Expression evaluated for its effect.
    Expr(Expr),
    SetVar {
        var: VarId,
        value: Expr,
    },
    SetMap {
        map: MapId,
        key: Expr,
        value: Expr,
        span: Span,
    },
    /// `@map[key] = count()` and the like. The aggregation is the map's.
    Aggregate {
        map: MapId,
        key: Expr,
        args: Vec<Expr>,
        span: Span,
    },
    If {
        cond: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    While {
        cond: Expr,
        body: Vec<Stmt>,
    },
    Range {
        var: VarId,
        start: Expr,
        end: Expr,
        body: Vec<Stmt>,
    },
    /// Loop over a map. The variable is a tuple of key and value.
    EachKey {
        var: VarId,
        map: MapId,
        body: Vec<Stmt>,
    },
    Break,
    Continue,
    Return,
    /// Sends an event. The arguments' types are those of its fields.
    Event {
        action: usize,
        args: Vec<Expr>,
    },
    /// `debugf`: a format for the kernel, with its NUL.
    TracePipe {
        format: Vec<u8>,
        args: Vec<Expr>,
    },
    /// `join(argv)`: an event with the strings that a null-terminated list of pointers points to.
    Join {
        action: usize,
        argv: Expr,
        space: Space,
    },
    /// Unrolled loop: a list of statements for each turn. `break` leaves all of them, `continue`
    /// goes to the next one.
    Unrolled(Vec<Vec<Stmt>>),
}

impl Expr {
    pub(crate) fn new(ty: Ty, kind: ExprKind, span: Span) -> Self {
        Self { ty, kind, span }
    }

    pub(crate) fn error(span: Span) -> Self {
        Self::new(Ty::Unknown, ExprKind::Error, span)
    }

    pub(crate) fn int(value: u64, ty: Ty, span: Span) -> Self {
        Self::new(ty, ExprKind::Int(value), span)
    }

    /// Returns the expression's value, if it is a constant.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self.kind {
            ExprKind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Adds `offset` bytes to this address.
    pub(crate) fn offset(self, offset: u64, ty: Ty) -> Self {
        let span = self.span;
        match self.kind {
            ExprKind::Int(value) => Self::int(value.wrapping_add(offset), ty, span),
            _ if offset == 0 => Self { ty, ..self },
            ExprKind::Binary {
                op: BinaryOp::Add,
                left,
                right,
                signed,
            } if right.constant().is_some() => {
                let sum = right.constant().unwrap_or(0).wrapping_add(offset);
                let right = Box::new(Self::int(sum, super::ty::U64, span));
                Self::new(
                    ty,
                    ExprKind::Binary {
                        op: BinaryOp::Add,
                        left,
                        right,
                        signed,
                    },
                    span,
                )
            }
            _ => {
                let right = Box::new(Self::int(offset, super::ty::U64, span));
                let kind = ExprKind::Binary {
                    op: BinaryOp::Add,
                    left: Box::new(self),
                    right,
                    signed: false,
                };
                Self::new(ty, kind, span)
            }
        }
    }

    /// Returns true for a text field of a C struct in our own memory. The bytes behind the text's
    /// end are unspecified.
    pub(crate) fn is_text_of_struct(&self) -> bool {
        let of_struct = |base: &Self| matches!(base.ty, Ty::C { .. });
        matches!((&self.kind, &self.ty), (ExprKind::Subobject { base, .. }, Ty::Str(_)) if of_struct(base))
    }

    /// Returns true if the expression can leave the program, loop or send events. Such an
    /// expression must not stand between reserving and submitting an event.
    pub(crate) fn is_complex(&self) -> bool {
        let mut complex = false;
        self.walk(&mut |ex| {
            complex |= matches!(
                ex.kind,
                ExprKind::Block { .. }
                    | ExprKind::Intrinsic(Intrinsic::Contains | Intrinsic::Find, _)
                    | ExprKind::Len(_)
            );
        });
        complex
    }

    /// Visits this expression and those inside it, but not the statements of blocks.
    pub(crate) fn walk(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        match &self.kind {
            ExprKind::MapGet { key: one, .. }
            | ExprKind::AggGet { key: one, .. }
            | ExprKind::Neg(one)
            | ExprKind::Not(one)
            | ExprKind::BitNot(one)
            | ExprKind::Convert(one)
            | ExprKind::Reinterpret(one)
            | ExprKind::Index { index: one, .. }
            | ExprKind::Load { addr: one, .. }
            | ExprKind::MemRef { addr: one, .. }
            | ExprKind::Subobject { base: one, .. }
            | ExprKind::StepMap { key: one, .. }
            | ExprKind::HasKey { key: one, .. }
            | ExprKind::Delete { key: one, .. }
            | ExprKind::Block { value: one, .. } => one.walk(look),
            ExprKind::Binary { left, right, .. }
            | ExprKind::MemEq { left, right, .. }
            | ExprKind::StrnCmp { left, right, .. }
            | ExprKind::Elvis(left, right)
            | ExprKind::Elem {
                base: left,
                index: right,
            } => {
                left.walk(look);
                right.walk(look);
            }
            ExprKind::Cond {
                cond,
                then,
                otherwise,
            } => {
                cond.walk(look);
                then.walk(look);
                otherwise.walk(look);
            }
            ExprKind::Tuple(all) | ExprKind::Intrinsic(_, all) => {
                for one in all {
                    one.walk(look);
                }
            }
            _ => {}
        }
    }
}
