//! Types of expressions, with everything that emitting their code needs.

use std::borrow::Cow;

use typeinfo::TypeRef;

use bt_abi::{Aggregation, StackMode, ValueType};

/// Memory that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Space {
    /// Kernel memory.
    Kernel,
    /// Memory of the process.
    User,
    /// Either, decided by the address at run time: kernel addresses have the highest bit set, on
    /// x86-64 and on arm64.
    Any,
}

/// Type of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Ty {
    /// Unknown type: not known yet, or refused and reported.
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
    /// Pointer to a value of our own, of a type that C may not have.
    Ref(Box<Ty>),
    Str(u32),
    Buf(u32),
    Array {
        elem: Box<Ty>,
        count: u32,
    },
    Tuple(Vec<Ty>),
    Record(Vec<(String, Ty)>),
    /// Struct or union.
    C {
        ty: TypeRef,
        size: u32,
    },
    Stack {
        user: bool,
        mode: StackMode,
        depth: u32,
    },
    /// Value that scripts keep and print, with a meaning that only the runtime knows.
    Opaque(ValueType),
    /// Result of `count()` and the like, which only a map can hold.
    Agg(Aggregation),
}

pub(crate) const I64: Ty = Ty::Int {
    size: 8,
    signed: true,
};
pub(crate) const U64: Ty = Ty::Int {
    size: 8,
    signed: false,
};
pub(crate) const U32: Ty = Ty::Int {
    size: 4,
    signed: false,
};

/// Limit on a value's size in bytes, small enough that sums of sizes can't overflow. It is a
/// multiple of all alignments.
pub(crate) const MAX_SIZE: u32 = 1 << 28;
/// Limit on the number of types that make up a type.
pub(crate) const MAX_PARTS: usize = 512;

impl Ty {
    /// Returns true if a register can hold it.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Int { .. } | Self::Bool | Self::Enum { .. } | Self::Ptr { .. } | Self::Ref(_) => {
                true
            }
            Self::Opaque(value) => value.fits_register(),
            _ => false,
        }
    }

    /// Returns true if arithmetic is possible with it.
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

    /// Returns its size in memory in bytes, at most [`MAX_SIZE`].
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

    /// Counts the types that make it up, itself included. A type of more than [`MAX_PARTS`] is not
    /// kept: a tuple of two tuples of two tuples... doubles with each statement.
    pub(crate) fn all_parts(&self) -> usize {
        match self {
            Self::Array { elem, .. } => 1 + elem.all_parts(),
            Self::Tuple(items) => 1 + items.iter().map(Self::all_parts).sum::<usize>(),
            Self::Record(fields) => 1 + fields.iter().map(|(_, ty)| ty.all_parts()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Returns its alignment in a tuple, in bytes.
    pub(crate) fn align(&self) -> u32 {
        match self {
            Self::Array { elem, .. } => elem.align(),
            _ => self.in_memory().align(),
        }
    }

    /// Returns the runtime's type, as far as it is known without the types of the target. A type
    /// with parts or a definition becomes [`ValueType::None`], an enumeration its number.
    pub(crate) fn in_memory(&self) -> Cow<'_, ValueType> {
        Cow::Owned(match self {
            Self::Opaque(value) => return Cow::Borrowed(value),
            Self::Int { size, signed } | Self::Enum { size, signed, .. } => ValueType::Int {
                size: *size,
                signed: *signed,
            },
            Self::Bool => ValueType::Bool,
            Self::Ptr { .. } | Self::Ref(_) => ValueType::Pointer,
            Self::Str(size) => ValueType::Str { size: *size },
            Self::Buf(size) => ValueType::Buffer { size: *size },
            Self::Stack {
                user: false,
                mode,
                depth,
            } => ValueType::KernelStack {
                mode: *mode,
                depth: *depth,
            },
            Self::Stack {
                user: true,
                mode,
                depth,
            } => ValueType::UserStack {
                mode: *mode,
                depth: *depth,
            },
            Self::Unknown
            | Self::Void
            | Self::Agg(_)
            | Self::Array { .. }
            | Self::Tuple(_)
            | Self::Record(_)
            | Self::C { .. } => ValueType::None,
        })
    }

    /// Returns the parts of a tuple or record with their offsets.
    pub(crate) fn parts(&self) -> Vec<(Option<&str>, u32, &Self)> {
        match self {
            Self::Tuple(items) => {
                let offsets = lay_out(items.iter()).0;
                items
                    .iter()
                    .zip(offsets)
                    .map(|(ty, offset)| (None, offset, ty))
                    .collect()
            }
            Self::Record(fields) => {
                let offsets = lay_out(fields.iter().map(|(_, ty)| ty)).0;
                fields
                    .iter()
                    .zip(offsets)
                    .map(|((name, ty), offset)| (Some(name.as_str()), offset, ty))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the type that values of both types fit, if both have parts.
    fn join_parts(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (
                Self::Array { elem, count },
                Self::Array {
                    elem: other_elem,
                    count: other_count,
                },
            ) => {
                let elem = Box::new(elem.join(other_elem)?);
                (count == other_count).then_some(Self::Array {
                    elem,
                    count: *count,
                })
            }
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => a
                .iter()
                .zip(b)
                .map(|(a, b)| a.join(b))
                .collect::<Option<_>>()
                .map(Self::Tuple),
            (Self::Record(a), Self::Record(b)) if a.len() == b.len() => join_records(a, b),
            (
                Self::Stack {
                    user,
                    mode,
                    depth: a,
                },
                Self::Stack {
                    user: u,
                    mode: m,
                    depth: b,
                },
            ) if user == u && mode.frame_bytes() == m.frame_bytes() => Some(Self::Stack {
                user: *user,
                mode: *mode,
                depth: *a.max(b),
            }),
            _ => None,
        }
    }

    /// Returns the type that values of both types fit, if there is one.
    pub(crate) fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a.clone()),
            (Self::Unknown, ty) | (ty, Self::Unknown) => Some(ty.clone()),
            (Self::Int { size: a, signed: x }, Self::Int { size: b, signed: y }) => {
                Some(join_ints((*a, *x), (*b, *y)))
            }
            (Self::Bool, Self::Int { .. }) => Some(other.clone()),
            (Self::Int { .. }, Self::Bool) => Some(self.clone()),
            (Self::Enum { size, signed, .. }, int @ Self::Int { .. })
            | (int @ Self::Int { .. }, Self::Enum { size, signed, .. }) => int.join(&Self::Int {
                size: *size,
                signed: *signed,
            }),
            (Self::Str(a), Self::Str(b)) => Some(Self::Str(*a.max(b))),
            (Self::Buf(a), Self::Buf(b)) => Some(Self::Buf(*a.max(b))),
            (
                Self::Ptr { to, space: a },
                Self::Ptr {
                    to: other_to,
                    space: b,
                },
            ) => {
                let to = if to == other_to { *to } else { TypeRef::VOID };
                Some(Self::Ptr {
                    to,
                    space: if a == b { *a } else { Space::Any },
                })
            }
            (Self::Ptr { .. }, Self::Int { .. }) => Some(self.clone()),
            (Self::Int { .. }, Self::Ptr { .. } | Self::Ref(_)) => Some(other.clone()),
            (Self::Ref(_), Self::Int { .. }) => Some(self.clone()),
            (Self::Ref(_), Self::Ptr { .. } | Self::Ref(_)) | (Self::Ptr { .. }, Self::Ref(_)) => {
                Some(Self::Ptr {
                    to: TypeRef::VOID,
                    space: Space::Any,
                })
            }
            _ => self.join_parts(other),
        }
    }
}

/// Joins two records by the names of their fields, in the order of the first; `None` if `b` lacks a
/// field.
fn join_records(a: &[(String, Ty)], b: &[(String, Ty)]) -> Option<Ty> {
    let field = |(name, ty): &(String, Ty)| {
        let other = b.iter().find(|(other, _)| other == name)?;
        Some((name.clone(), ty.join(&other.1)?))
    };
    a.iter().map(field).collect::<Option<_>>().map(Ty::Record)
}

/// Returns the integer that holds both. For mixed signs it is signed, and twice as wide as the
/// unsigned one, up to 8 bytes.
fn join_ints((a, x): (u8, bool), (b, y): (u8, bool)) -> Ty {
    if x == y {
        return Ty::Int {
            size: a.max(b),
            signed: x,
        };
    }
    let (signed, unsigned) = if x { (a, b) } else { (b, a) };
    Ty::Int {
        size: signed.max(unsigned.saturating_mul(2)).min(8),
        signed: true,
    }
}

/// Returns the fields' offsets in order, and the size of all.
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

/// Returns the type that a script reads from a map with this aggregation; `None` if it isn't one
/// number.
pub(crate) fn read_type(aggregation: &Aggregation) -> Option<Ty> {
    aggregation
        .number_is_signed()
        .map(|signed| Ty::Int { size: 8, signed })
}
