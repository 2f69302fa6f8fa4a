//! The typed tree: what the type checker makes of a probe's body, and all that the emitter reads.

use bt_lang::Span;
use bt_lang::ast::BinaryOp;
use probes::args::ArgSpec;
use typeinfo::BitAccess;

use super::ty::{Space, Ty};
use bt_abi::Clock;

/// A variable of a program, by its number there.
pub(crate) type VarId = usize;
/// A map of the script, by its number.
pub(crate) type MapId = usize;

/// An expression with its type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ex {
    pub(crate) ty: Ty,
    pub(crate) kind: ExKind,
    pub(crate) span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ExKind {
    /// Wrong, and told.
    Error,
    Int(u64),
    Str(Vec<u8>),
    Var(VarId),
    MapGet {
        map: MapId,
        key: Box<Ex>,
    },
    /// All CPUs' values as one number.
    AggGet {
        map: MapId,
        key: Box<Ex>,
    },
    Neg(Box<Ex>),
    Not(Box<Ex>),
    BitNot(Box<Ex>),
    /// Of two numbers or pointers; `signed` says which kind of division, shift and comparison.
    Binary {
        op: BinaryOp,
        left: Box<Ex>,
        right: Box<Ex>,
        signed: bool,
    },
    /// Whether two values in memory are equal: strings, arrays, tuples. `left` and `right` have types of one form.
    Same {
        left: Box<Ex>,
        right: Box<Ex>,
        negate: bool,
    },
    /// Whether the first `count` bytes of two strings differ.
    StrnCmp {
        left: Box<Ex>,
        right: Box<Ex>,
        count: u32,
    },
    Cond {
        cond: Box<Ex>,
        then: Box<Ex>,
        otherwise: Box<Ex>,
    },
    /// `a ?: b` of two numbers: the first unless it is 0.
    OrElse(Box<Ex>, Box<Ex>),
    /// To the type of this expression, from one number to another.
    Convert(Box<Ex>),
    /// The low bytes of memory (an array) as a number, or a number as an array.
    Reinterpret(Box<Ex>),
    /// A number at an address.
    Load {
        addr: Box<Ex>,
        space: Space,
        bits: Option<BitAccess>,
    },
    /// A value in memory at an address: not read before it is used.
    At {
        addr: Box<Ex>,
        space: Space,
    },
    /// A part of a value in our own memory, `offset` bytes into it.
    Part {
        base: Box<Ex>,
        offset: u32,
        bits: Option<BitAccess>,
    },
    /// The address of a variable.
    VarAddr(VarId),
    /// The address of a map itself.
    MapAddr(MapId),
    /// An element of an array in our own memory.
    Elem {
        base: Box<Ex>,
        index: Box<Ex>,
    },
    /// An index of an array with so many elements; one that it does not have is told, and stays as it is.
    Index {
        index: Box<Ex>,
        count: u32,
    },
    /// So many bytes of the context, read directly.
    Ctx {
        offset: u32,
        size: u8,
    },
    /// The address of something in the context.
    CtxAddr {
        offset: u32,
    },
    /// The place that a `__data_loc` word of a tracepoint's record points to: its low half is an offset, from the record's
    /// beginning, or (`relative`) from the word's end.
    DataLoc {
        offset: u32,
        relative: bool,
    },
    UsdtArg(Box<ArgSpec>),
    Tuple(Vec<Ex>),
    Block {
        stmts: Vec<St>,
        value: Box<Ex>,
    },
    /// `++` and `--`: adds `by`; the value is the one before where `post`.
    StepVar {
        var: VarId,
        by: i64,
        post: bool,
    },
    StepMap {
        map: MapId,
        key: Box<Ex>,
        by: i64,
        post: bool,
    },
    Fun(Fun, Vec<Ex>),
    HasKey {
        map: MapId,
        key: Box<Ex>,
    },
    Delete {
        map: MapId,
        key: Box<Ex>,
    },
    Len(MapId),
}

/// What is worked out at run time by a helper or a piece of code of its own. Arguments are those of the expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fun {
    Pid,
    Tid,
    /// Process and thread in one word, as the kernel gives them.
    PidTid,
    Uid,
    Gid,
    Cpu,
    Comm,
    Now(Clock),
    /// `CLOCK_MONOTONIC_COARSE` has no helper of its own in old kernels; jiffies.
    Jiffies,
    CurTask,
    Cgroup,
    Random,
    NumaNode,
    Context,
    /// The address of the probed function (`bpf_get_func_ip`).
    FuncIp,
    /// `str(addr[, length])`: reads a string.
    ReadStr(Space),
    /// `str(bytes[, length])`: cuts a value in memory.
    CutStr,
    /// `buf(addr, length)`
    ReadBuf(Space),
    Stack,
    /// `usym(addr)`
    Usym,
    /// `ntop(number)`
    Inet4,
    /// `ntop(bytes)`: 4 or 16 of them.
    InetBytes,
    /// `ntop(family, value)`
    InetFamily,
    Mac(Space),
    Bswap(u8),
    Signal,
    SignalThread,
    StrLen,
    /// `strcontains(text, literal)`
    Contains,
    /// Whether this is user code, of a perf sample.
    UserMode,
    /// `path(place)`: the whole name of what a `struct path` is about.
    Path,
    /// `socket_cookie(socket)`
    SocketCookie,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum St {
    /// For its effect.
    Expr(Ex),
    SetVar {
        var: VarId,
        value: Ex,
    },
    SetMap {
        map: MapId,
        key: Ex,
        value: Ex,
        span: Span,
    },
    /// `@map[key] = count()` and the like. The agg is the map's.
    Aggregate {
        map: MapId,
        key: Ex,
        args: Vec<Ex>,
        span: Span,
    },
    If {
        cond: Ex,
        then: Vec<St>,
        otherwise: Vec<St>,
    },
    While {
        cond: Ex,
        body: Vec<St>,
    },
    Range {
        var: VarId,
        start: Ex,
        end: Ex,
        body: Vec<St>,
    },
    /// The variable is a tuple of key and value.
    EachKey {
        var: VarId,
        map: MapId,
        body: Vec<St>,
    },
    Break,
    Continue,
    Return,
    /// Sends an event. The arguments' types are the fields'.
    Event {
        action: usize,
        args: Vec<Ex>,
    },
    /// `debugf`: a format of the kernel's, with its end.
    TracePipe {
        format: Vec<u8>,
        args: Vec<Ex>,
    },
    /// `join(argv)`: an event of strings that pointers point to, up to a null pointer.
    Join {
        action: usize,
        argv: Ex,
        space: Space,
    },
    /// An unrolled loop: a list of statements for each turn. `break` leaves all of them, `continue` goes to the next one.
    Unrolled(Vec<Vec<St>>),
}

impl Ex {
    pub(crate) fn new(ty: Ty, kind: ExKind, span: Span) -> Self {
        Self { ty, kind, span }
    }

    pub(crate) fn error(span: Span) -> Self {
        Self::new(Ty::Unknown, ExKind::Error, span)
    }

    pub(crate) fn int(value: u64, ty: Ty, span: Span) -> Self {
        Self::new(ty, ExKind::Int(value), span)
    }

    /// Its value, if it is a constant.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self.kind {
            ExKind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// This address, `offset` bytes further.
    pub(crate) fn offset(self, offset: u64, ty: Ty) -> Self {
        let span = self.span;
        match self.kind {
            ExKind::Int(value) => Self::int(value.wrapping_add(offset), ty, span),
            _ if offset == 0 => Self { ty, ..self },
            ExKind::Binary { op: BinaryOp::Add, left, right, signed } if right.constant().is_some() => {
                let sum = right.constant().unwrap_or(0).wrapping_add(offset);
                let right = Box::new(Self::int(sum, super::ty::U64, span));
                Self::new(ty, ExKind::Binary { op: BinaryOp::Add, left, right, signed }, span)
            }
            _ => {
                let right = Box::new(Self::int(offset, super::ty::U64, span));
                let kind = ExKind::Binary { op: BinaryOp::Add, left: Box::new(self), right, signed: false };
                Self::new(ty, kind, span)
            }
        }
    }

    /// Whether it is the text of a field of a C struct of our own, behind whose end anything may be.
    pub(crate) fn is_text_of_struct(&self) -> bool {
        let of_struct = |base: &Self| matches!(base.ty, Ty::C { .. });
        matches!((&self.kind, &self.ty), (ExKind::Part { base, .. }, Ty::Str(_)) if of_struct(base))
    }

    /// Whether the expression can leave the program, loop or send events, so that it must not stand between reserving
    /// and submitting an event.
    pub(crate) fn is_complex(&self) -> bool {
        let mut complex = false;
        self.walk(&mut |ex| {
            complex |= matches!(ex.kind, ExKind::Block { .. } | ExKind::Fun(Fun::Contains, _) | ExKind::Len(_));
        });
        complex
    }

    /// Looks at this expression and those in it, not at blocks' statements.
    pub(crate) fn walk(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        match &self.kind {
            ExKind::MapGet { key: one, .. }
            | ExKind::AggGet { key: one, .. }
            | ExKind::Neg(one)
            | ExKind::Not(one)
            | ExKind::BitNot(one)
            | ExKind::Convert(one)
            | ExKind::Reinterpret(one)
            | ExKind::Index { index: one, .. }
            | ExKind::Load { addr: one, .. }
            | ExKind::At { addr: one, .. }
            | ExKind::Part { base: one, .. }
            | ExKind::StepMap { key: one, .. }
            | ExKind::HasKey { key: one, .. }
            | ExKind::Delete { key: one, .. }
            | ExKind::Block { value: one, .. } => one.walk(look),
            ExKind::Binary { left, right, .. }
            | ExKind::Same { left, right, .. }
            | ExKind::StrnCmp { left, right, .. }
            | ExKind::OrElse(left, right)
            | ExKind::Elem { base: left, index: right } => {
                left.walk(look);
                right.walk(look);
            }
            ExKind::Cond { cond, then, otherwise } => {
                cond.walk(look);
                then.walk(look);
                otherwise.walk(look);
            }
            ExKind::Tuple(all) | ExKind::Fun(_, all) => all.iter().for_each(|one| one.walk(look)),
            _ => {}
        }
    }
}
