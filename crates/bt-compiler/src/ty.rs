//! The compiler's types: what an expression is, with all that is needed to emit code for it.

use std::sync::Arc;

use typeinfo::TypeRef;

use bt_abi::{Clock, MapValue, SeriesOp, StackMode};

/// Whose memory an address is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Space {
    /// The kernel's.
    Kernel,
    /// The process's.
    User,
    /// Decided by the address at run time: the kernel's have the highest bit set, on x86-64 and on arm64.
    Any,
}

/// How a map puts values together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Agg {
    Count,
    Sum { signed: bool },
    Min { signed: bool },
    Max { signed: bool },
    Avg { signed: bool },
    Stats { signed: bool },
    Hist { bits: u8 },
    Lhist { min: i64, max: i64, step: u64 },
    Series { interval: u64, buckets: u32, op: SeriesOp, signed: bool },
}

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Ty {
    /// Not known: not yet, or refused and reported.
    Unknown,
    Void,
    Int {
        size: u8,
        signed: bool,
    },
    Bool,
    Enum {
        ty: TypeRef,
        size: u8,
        signed: bool,
    },
    Ptr {
        to: TypeRef,
        space: Space,
    },
    /// A pointer to a value of our own, of a type that C may not have.
    Ref(Box<Ty>),
    Str(u32),
    Buf(u32),
    Array {
        elem: Box<Ty>,
        count: u32,
    },
    Tuple(Vec<Ty>),
    Record(Vec<(String, Ty)>),
    /// A struct or union.
    C {
        ty: TypeRef,
        size: u32,
    },
    Stack {
        user: bool,
        mode: StackMode,
        depth: u32,
    },
    /// A floating-point number of C, 4 or 8 bytes: it can be shown and kept, and no more.
    Float(u8),
    Ksym,
    Usym,
    Inet,
    Mac,
    CgroupPath(Arc<str>),
    Username,
    ErrorText,
    SignalText,
    Time {
        clock: Clock,
        format: Arc<str>,
    },
    /// What `count()` and the like give: only a map can hold it.
    Agg(Agg),
}

pub(crate) const I64: Ty = Ty::Int { size: 8, signed: true };
pub(crate) const U64: Ty = Ty::Int { size: 8, signed: false };
pub(crate) const U32: Ty = Ty::Int { size: 4, signed: false };

/// No value is larger, so that sums of sizes need no care: a multiple of all alignments.
pub(crate) const MAX_SIZE: u32 = 1 << 28;
/// The most types that a type is made of.
pub(crate) const MAX_PARTS: usize = 512;

impl Ty {
    /// Whether a register holds it.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Int { .. }
                | Self::Bool
                | Self::Enum { .. }
                | Self::Ptr { .. }
                | Self::Ref(_)
                | Self::Ksym
                | Self::CgroupPath(_)
                | Self::Username
                | Self::ErrorText
                | Self::SignalText
                | Self::Time { .. }
        )
    }

    /// Whether arithmetic can be done with it.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int { .. } | Self::Bool | Self::Enum { .. })
    }

    pub(crate) fn is_signed(&self) -> bool {
        match self {
            Self::Int { signed, .. } | Self::Enum { signed, .. } => *signed,
            Self::ErrorText | Self::SignalText => true,
            _ => false,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Array { elem, .. } => elem.is_unknown(),
            Self::Tuple(items) => items.iter().any(Self::is_unknown),
            Self::Record(fields) => fields.iter().any(|(_, ty)| ty.is_unknown()),
            _ => false,
        }
    }

    /// Bytes in memory, [`MAX_SIZE`] if it is larger.
    pub(crate) fn size(&self) -> u32 {
        let size = match self {
            Self::Unknown | Self::Void | Self::Agg(_) => 0,
            Self::Int { size, .. } | Self::Enum { size, .. } | Self::Float(size) => u32::from(*size),
            Self::Bool => 1,
            Self::Ptr { .. } | Self::Ref(_) | Self::Ksym | Self::CgroupPath(_) | Self::Time { .. } => 8,
            Self::Str(size) | Self::C { size, .. } => *size,
            Self::Buf(size) => size.min(&MAX_SIZE).next_multiple_of(4) + 4,
            Self::Array { elem, count } => elem.size().saturating_mul(*count),
            Self::Tuple(items) => lay_out(items.iter()).1,
            Self::Record(fields) => lay_out(fields.iter().map(|(_, ty)| ty)).1,
            Self::Stack { user: false, depth, .. } => 8 + 8 * depth,
            Self::Stack { user: true, mode, depth } => 16 + mode.frame_bytes() * depth,
            Self::Usym => 16,
            Self::Inet => 20,
            Self::Mac => 6,
            Self::Username | Self::ErrorText | Self::SignalText => 4,
        };
        size.min(MAX_SIZE)
    }

    /// How many types it is made of, itself included. Nothing is kept of a type that has more than [`MAX_PARTS`]: a tuple of
    /// two tuples of two tuples... doubles with each statement.
    pub(crate) fn all_parts(&self) -> usize {
        match self {
            Self::Array { elem, .. } => 1 + elem.all_parts(),
            Self::Tuple(items) => 1 + items.iter().map(Self::all_parts).sum::<usize>(),
            Self::Record(fields) => 1 + fields.iter().map(|(_, ty)| ty.all_parts()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Its place in a tuple is a multiple of this.
    pub(crate) fn align(&self) -> u32 {
        match self {
            Self::Int { size, .. } | Self::Enum { size, .. } | Self::Float(size) => u32::from(*size),
            Self::Bool => 1,
            Self::Username | Self::ErrorText | Self::SignalText => 4,
            Self::Array { elem, .. } => elem.align(),
            _ => 8,
        }
    }

    /// The parts of a tuple or record with their offsets.
    pub(crate) fn parts(&self) -> Vec<(Option<&str>, u32, &Self)> {
        match self {
            Self::Tuple(items) => {
                let offsets = lay_out(items.iter()).0;
                items.iter().zip(offsets).map(|(ty, offset)| (None, offset, ty)).collect()
            }
            Self::Record(fields) => {
                let offsets = lay_out(fields.iter().map(|(_, ty)| ty)).0;
                fields.iter().zip(offsets).map(|((name, ty), offset)| (Some(name.as_str()), offset, ty)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The type that values of both fit, if there is one.
    pub(crate) fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Self::Unknown, ty) | (ty, Self::Unknown) => Some(ty.clone()),
            (Self::Int { size: a, signed: x }, Self::Int { size: b, signed: y }) => Some(join_ints((*a, *x), (*b, *y))),
            (Self::Bool, Self::Int { .. }) => Some(other.clone()),
            (Self::Int { .. }, Self::Bool) => Some(self.clone()),
            (Self::Enum { size, signed, .. }, int @ Self::Int { .. })
            | (int @ Self::Int { .. }, Self::Enum { size, signed, .. }) => {
                int.join(&Self::Int { size: *size, signed: *signed })
            }
            (Self::Str(a), Self::Str(b)) => Some(Self::Str(*a.max(b))),
            (Self::Buf(a), Self::Buf(b)) => Some(Self::Buf(*a.max(b))),
            (Self::Ptr { to, space: a }, Self::Ptr { to: other_to, space: b }) => {
                let to = if to == other_to { *to } else { TypeRef::VOID };
                Some(Self::Ptr { to, space: if a == b { *a } else { Space::Any } })
            }
            (Self::Ptr { .. }, Self::Int { .. }) => Some(self.clone()),
            (Self::Int { .. }, Self::Ptr { .. } | Self::Ref(_)) => Some(other.clone()),
            (Self::Ref(_), Self::Int { .. }) => Some(self.clone()),
            (Self::Ref(_), Self::Ptr { .. } | Self::Ref(_)) | (Self::Ptr { .. }, Self::Ref(_)) => {
                Some(Self::Ptr { to: TypeRef::VOID, space: Space::Any })
            }
            (Self::Array { elem, count }, Self::Array { elem: other_elem, count: other_count }) => {
                let elem = Box::new(elem.join(other_elem)?);
                (count == other_count).then_some(Self::Array { elem, count: *count })
            }
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => {
                a.iter().zip(b).map(|(a, b)| a.join(b)).collect::<Option<_>>().map(Self::Tuple)
            }
            (Self::Record(a), Self::Record(b)) if a.len() == b.len() => join_records(a, b),
            (Self::Stack { user, mode, depth: a }, Self::Stack { user: u, mode: m, depth: b })
                if user == u && mode.frame_bytes() == m.frame_bytes() =>
            {
                Some(Self::Stack { user: *user, mode: *mode, depth: *a.max(b) })
            }
            _ => None,
        }
    }
}

/// Fields of both by name, in the order of the first.
fn join_records(a: &[(String, Ty)], b: &[(String, Ty)]) -> Option<Ty> {
    let field = |(name, ty): &(String, Ty)| {
        let other = b.iter().find(|(other, _)| other == name)?;
        Some((name.clone(), ty.join(&other.1)?))
    };
    a.iter().map(field).collect::<Option<_>>().map(Ty::Record)
}

/// The integer that holds both; of mixed signs a signed one, twice as wide as the unsigned one where there is one.
fn join_ints((a, x): (u8, bool), (b, y): (u8, bool)) -> Ty {
    if x == y {
        return Ty::Int { size: a.max(b), signed: x };
    }
    let (signed, unsigned) = if x { (a, b) } else { (b, a) };
    Ty::Int { size: signed.max(unsigned.saturating_mul(2)).min(8), signed: true }
}

/// Offsets of fields in order, and the size of all.
fn lay_out<'t>(types: impl Iterator<Item = &'t Ty>) -> (Vec<u32>, u32) {
    let (mut size, mut align) = (0_u32, 1);
    let offsets = types.map(|ty| {
        align = align.max(ty.align());
        let offset = size.next_multiple_of(ty.align());
        size = offset.saturating_add(ty.size()).min(MAX_SIZE);
        offset
    });
    let offsets = offsets.collect();
    (offsets, size.next_multiple_of(align))
}

impl Agg {
    /// The same for the runtime.
    pub(crate) fn value(&self) -> MapValue {
        match *self {
            Self::Count => MapValue::Count,
            Self::Sum { signed } => MapValue::Sum { signed },
            Self::Min { signed } => MapValue::Min { signed },
            Self::Max { signed } => MapValue::Max { signed },
            Self::Avg { signed } => MapValue::Avg { signed },
            Self::Stats { signed } => MapValue::Stats { signed },
            Self::Hist { bits } => MapValue::Hist { bits },
            Self::Lhist { min, max, step } => MapValue::Lhist { min, max, step },
            Self::Series { interval, buckets, op, signed } => MapValue::Series { interval, buckets, op, signed },
        }
    }

    /// What reading such a map gives: one number, where there is one.
    pub(crate) fn read_type(&self) -> Option<Ty> {
        match self {
            Self::Count => Some(I64),
            Self::Sum { signed } | Self::Min { signed } | Self::Max { signed } | Self::Avg { signed } => {
                Some(Ty::Int { size: 8, signed: *signed })
            }
            _ => None,
        }
    }

    /// As messages have it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Count => "count_t",
            Self::Sum { signed: true } => "sum_t",
            Self::Sum { signed: false } => "usum_t",
            Self::Min { signed: true } => "min_t",
            Self::Min { signed: false } => "umin_t",
            Self::Max { signed: true } => "max_t",
            Self::Max { signed: false } => "umax_t",
            Self::Avg { signed: true } => "avg_t",
            Self::Avg { signed: false } => "uavg_t",
            Self::Stats { signed: true } => "stats_t",
            Self::Stats { signed: false } => "ustats_t",
            Self::Hist { .. } => "hist_t",
            Self::Lhist { .. } => "lhist_t",
            Self::Series { .. } => "tseries_t",
        }
    }

    /// Two uses of one map must agree; signs may differ.
    pub(crate) fn join(&self, other: &Self) -> Option<Self> {
        let either = |a: &bool, b: &bool| *a || *b;
        Some(match (self, other) {
            (a, b) if a == b => a.clone(),
            (Self::Sum { signed: a }, Self::Sum { signed: b }) => Self::Sum { signed: either(a, b) },
            (Self::Min { signed: a }, Self::Min { signed: b }) => Self::Min { signed: either(a, b) },
            (Self::Max { signed: a }, Self::Max { signed: b }) => Self::Max { signed: either(a, b) },
            (Self::Avg { signed: a }, Self::Avg { signed: b }) => Self::Avg { signed: either(a, b) },
            (Self::Stats { signed: a }, Self::Stats { signed: b }) => Self::Stats { signed: either(a, b) },
            _ => return None,
        })
    }
}
