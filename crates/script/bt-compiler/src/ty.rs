//! The compiler's types: what an expression is, with all that is needed to emit code for it.

use std::borrow::Cow;

use typeinfo::TypeRef;

use bt_abi::{Aggregation, StackMode, ValueType};

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
    /// A value that scripts keep and print, and of which only the runtime knows what it means.
    Opaque(ValueType),
    /// What `count()` and the like give: only a map can hold it.
    Agg(Aggregation),
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
        match self {
            Self::Int { .. } | Self::Bool | Self::Enum { .. } | Self::Ptr { .. } | Self::Ref(_) => true,
            Self::Opaque(value) => value.fits_register(),
            _ => false,
        }
    }

    /// Whether arithmetic can be done with it.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int { .. } | Self::Bool | Self::Enum { .. })
    }

    pub(crate) fn is_signed(&self) -> bool {
        match self {
            Self::Int { signed, .. } | Self::Enum { signed, .. } => *signed,
            Self::Opaque(value) => value.is_signed(),
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
            Self::Unknown | Self::Agg(_) => 0,
            Self::C { size, .. } => *size,
            Self::Array { elem, count } => elem.size().saturating_mul(*count),
            Self::Tuple(items) => lay_out(items.iter()).1,
            Self::Record(fields) => lay_out(fields.iter().map(|(_, ty)| ty)).1,
            _ => self.in_memory().size(),
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
            Self::Array { elem, .. } => elem.align(),
            _ => self.in_memory().align(),
        }
    }

    /// The runtime's type of it, as far as that is known without the types of the target: what has parts, names or a
    /// definition there is [`ValueType::None`], or the number that it is.
    pub(crate) fn in_memory(&self) -> Cow<'_, ValueType> {
        Cow::Owned(match self {
            Self::Opaque(value) => return Cow::Borrowed(value),
            Self::Int { size, signed } | Self::Enum { size, signed, .. } => {
                ValueType::Int { size: *size, signed: *signed }
            }
            Self::Bool => ValueType::Bool,
            Self::Ptr { .. } | Self::Ref(_) => ValueType::Pointer,
            Self::Str(size) => ValueType::Str { size: *size },
            Self::Buf(size) => ValueType::Buffer { size: *size },
            Self::Stack { user: false, mode, depth } => ValueType::KernelStack { mode: *mode, depth: *depth },
            Self::Stack { user: true, mode, depth } => ValueType::UserStack { mode: *mode, depth: *depth },
            Self::Unknown
            | Self::Void
            | Self::Agg(_)
            | Self::Array { .. }
            | Self::Tuple(_)
            | Self::Record(_)
            | Self::C { .. } => ValueType::None,
        })
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

/// What a script reads from a map that gathers so: one number, where there is one.
pub(crate) fn read_type(aggregation: &Aggregation) -> Option<Ty> {
    aggregation.number_is_signed().map(|signed| Ty::Int { size: 8, signed })
}
