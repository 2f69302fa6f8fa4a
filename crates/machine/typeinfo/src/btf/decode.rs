//! One record of BTF (`struct btf_type` and what follows it) as a type of the common model.

use super::Btf;
use super::header::word;
use crate::error::TypeError;
use crate::model::{IntClass, NameKind, Qualifier, Tag, Type, TypeKind, TypeRef};

/// `BTF_KIND_*`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Int,
    Ptr,
    Array,
    Struct,
    Union,
    Enum,
    Fwd,
    Typedef,
    Volatile,
    Const,
    Restrict,
    Func,
    FuncProto,
    Var,
    Datasec,
    Float,
    DeclTag,
    TypeTag,
    Enum64,
}

/// Kinds in the order of their numbers, each with the bytes that follow its record once, and the
/// bytes for each of its `vlen` parts.
const KINDS: [(Kind, usize, usize); 19] = [
    (Kind::Int, 4, 0),
    (Kind::Ptr, 0, 0),
    (Kind::Array, 12, 0),
    (Kind::Struct, 0, 12),
    (Kind::Union, 0, 12),
    (Kind::Enum, 0, 8),
    (Kind::Fwd, 0, 0),
    (Kind::Typedef, 0, 0),
    (Kind::Volatile, 0, 0),
    (Kind::Const, 0, 0),
    (Kind::Restrict, 0, 0),
    (Kind::Func, 0, 0),
    (Kind::FuncProto, 0, 8),
    (Kind::Var, 4, 0),
    (Kind::Datasec, 0, 12),
    (Kind::Float, 0, 0),
    (Kind::DeclTag, 4, 0),
    (Kind::TypeTag, 0, 0),
    (Kind::Enum64, 0, 12),
];

impl Kind {
    /// Decodes `btf_type.info`. A `BTF_KIND_FUNC` has its linkage where others have their number of
    /// parts.
    pub(super) fn decode(info: u32) -> Option<Self> {
        let number = (info >> 24 & 0x1f) as usize;
        KINDS.get(number.checked_sub(1)?).map(|(kind, _, _)| *kind)
    }

    pub(super) fn fixed(self) -> usize {
        KINDS[self as usize].1
    }

    pub(super) fn each(self) -> usize {
        KINDS[self as usize].2
    }
}

/// `BTF_INT_SIGNED`, `BTF_INT_CHAR`, `BTF_INT_BOOL`
const SIGNED: u32 = 1 << 24;
const CHAR: u32 = 1 << 25;
const BOOL: u32 = 1 << 26;
/// Size of a pointer in bytes. BTF does not state it; all kernels that we trace have 64 bits.
const POINTER: u32 = 8;

/// Record of a type, checked to lie within the data.
#[derive(Clone, Copy)]
pub(super) struct Record<'b, 'data> {
    pub(super) btf: &'b Btf<'data>,
    pub(super) at: usize,
    pub(super) kind: Kind,
    info: u32,
}

impl<'data> Btf<'data> {
    pub(super) fn record(&self, id: u32) -> Result<Record<'_, 'data>, TypeError> {
        let index = id.checked_sub(self.first_id).map(|index| index as usize);
        let at = index
            .and_then(|index| self.offsets.get(index))
            .map(|at| *at as usize);
        let found = at.and_then(|at| self.record_at(at));
        found.ok_or_else(|| TypeError::BtfId {
            id,
            last: self.next_id() - 1,
        })
    }

    fn record_at(&self, at: usize) -> Option<Record<'_, 'data>> {
        let info = word(self.data, at + 4)?;
        Some(Record {
            btf: self,
            at,
            kind: Kind::decode(info)?,
            info,
        })
    }

    pub(super) fn records(&self) -> impl Iterator<Item = (u32, Record<'_, 'data>)> {
        let records = self.offsets.iter().map(|at| self.record_at(*at as usize));
        (self.first_id..)
            .zip(records)
            .filter_map(|(id, record)| Some((id, record?)))
    }

    /// Returns a string by its offset, which counts the base's strings first.
    pub(super) fn bytes_at(&self, offset: u32) -> Option<&'data [u8]> {
        let offset = offset as usize;
        let tail = match offset.checked_sub(self.base_strings.len()) {
            Some(own) => self.strings.get(own..)?,
            None => self.base_strings.get(offset..)?,
        };
        tail.get(..memchr::memchr(0, tail)?)
    }
}

impl<'b> Record<'b, '_> {
    /// Reads word number `index` behind the record.
    pub(super) fn word(&self, index: usize) -> Result<u32, TypeError> {
        let at = self.at + 12 + index * 4;
        word(self.btf.data, at).ok_or(TypeError::Btf {
            offset: at,
            expected: "a word",
        })
    }

    /// Reads `btf_type.size` or `btf_type.type`.
    pub(super) fn size_or_type(&self) -> Result<u32, TypeError> {
        let at = self.at + 8;
        word(self.btf.data, at).ok_or(TypeError::Btf {
            offset: at,
            expected: "a size or type",
        })
    }

    fn target(&self) -> Result<TypeRef, TypeError> {
        self.check(self.size_or_type()?)
    }

    pub(super) fn check(&self, id: u32) -> Result<TypeRef, TypeError> {
        let next = self.btf.next_id();
        if id >= next {
            Err(TypeError::BtfId { id, last: next - 1 })
        } else {
            Ok(self.btf.reference(id))
        }
    }

    pub(super) fn flag(&self) -> bool {
        self.info >> 31 == 1
    }

    pub(super) fn parts(&self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// Returns the name space of the type's name; `None` for kinds that cannot be looked up.
    pub(super) fn space(&self) -> Option<NameKind> {
        match self.kind {
            Kind::Struct => Some(NameKind::Struct),
            Kind::Union => Some(NameKind::Union),
            Kind::Enum | Kind::Enum64 => Some(NameKind::Enum),
            Kind::Typedef => Some(NameKind::Typedef),
            Kind::Int | Kind::Float => Some(NameKind::Base),
            Kind::Func => Some(NameKind::Func),
            _ => None,
        }
    }

    pub(super) fn name_bytes(&self) -> Option<&'b [u8]> {
        self.btf.bytes_at(word(self.btf.data, self.at)?)
    }

    /// Returns the type's name, if it has one.
    pub(super) fn name(&self) -> Result<Option<&'b str>, TypeError> {
        let offset = word(self.btf.data, self.at);
        self.text(offset.unwrap_or(0), self.at)
    }

    /// Returns the string at this offset; `None` if it is empty. `at` is the position of the
    /// reference, for errors.
    pub(super) fn text(&self, offset: u32, at: usize) -> Result<Option<&'b str>, TypeError> {
        let bytes = self.btf.bytes_at(offset);
        let bytes = bytes.ok_or(TypeError::Btf {
            offset: at,
            expected: "the offset of a string",
        })?;
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| TypeError::Btf {
            offset: self.btf.strings_at
                + (offset as usize).saturating_sub(self.btf.base_strings.len()),
            expected: "a name in UTF-8",
        })?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    pub(super) fn get(&self) -> Result<Type<'b>, TypeError> {
        let tag = if self.flag() { Tag::Union } else { Tag::Struct };
        let qualified = |qualifier| {
            Ok::<_, TypeError>(TypeKind::Qualified {
                qualifier,
                target: self.target()?,
            })
        };
        let kind = match self.kind {
            Kind::Int => self.int()?,
            Kind::Float => TypeKind::Float {
                size: self.size_or_type()?,
            },
            Kind::Ptr => TypeKind::Pointer {
                target: self.target()?,
                size: POINTER,
            },
            Kind::Array => {
                let count = Some(u64::from(self.word(2)?)).filter(|count| *count > 0);
                TypeKind::Array {
                    element: self.check(self.word(0)?)?,
                    count,
                }
            }
            Kind::Struct => TypeKind::Struct {
                size: self.size_or_type()?.into(),
            },
            Kind::Union => TypeKind::Union {
                size: self.size_or_type()?.into(),
            },
            // An enum without values is how older producers wrote `enum foo;`.
            Kind::Enum | Kind::Enum64 if self.parts() == 0 => TypeKind::Forward { tag: Tag::Enum },
            Kind::Enum | Kind::Enum64 => TypeKind::Enum {
                size: self.size_or_type()?,
                signed: self.flag(),
            },
            Kind::Fwd => TypeKind::Forward { tag },
            // A variable is not a type, and no query leads to one.
            Kind::Typedef | Kind::Var => TypeKind::Typedef {
                target: self.target()?,
            },
            Kind::Volatile => qualified(Qualifier::Volatile)?,
            Kind::Const => qualified(Qualifier::Const)?,
            Kind::Restrict => qualified(Qualifier::Restrict)?,
            Kind::TypeTag | Kind::DeclTag => qualified(Qualifier::Tag)?,
            // Nor is a section a type.
            Kind::Datasec => TypeKind::Void,
            Kind::Func | Kind::FuncProto => self.func()?,
        };
        Ok(Type {
            name: self.name()?,
            kind,
        })
    }

    fn int(&self) -> Result<TypeKind, TypeError> {
        let (encoding, size) = (self.word(0)?, self.size_or_type()?);
        // The kernel's BTF has `char` as a number of one byte.
        let class = if encoding & BOOL != 0 {
            IntClass::Bool
        } else if encoding & CHAR != 0 || (size == 1 && self.name_bytes() == Some(b"char")) {
            IntClass::Char
        } else {
            IntClass::Number
        };
        // BTF never marks a `char` as signed, even where the machine's is.
        Ok(TypeKind::Int {
            size,
            signed: encoding & SIGNED != 0,
            class,
        })
    }

    /// Returns the record of the function's type: this one, or the one that a function refers to.
    pub(super) fn proto(&self) -> Result<Self, TypeError> {
        if self.kind == Kind::FuncProto {
            return Ok(*self);
        }
        let id = self.size_or_type()?;
        let proto = self.btf.record(id);
        // FIXME: a module's function can have a type that the base holds, which can't be reached from here: it is an error.
        let broken = TypeError::Btf {
            offset: self.at + 8,
            expected: "a function's type in the same BTF",
        };
        proto
            .ok()
            .filter(|proto| proto.kind == Kind::FuncProto)
            .ok_or(broken)
    }

    fn func(&self) -> Result<TypeKind, TypeError> {
        let proto = self.proto()?;
        let last = proto.parts().checked_sub(1);
        let variadic = last.map(|last| proto.word(last * 2 + 1)).transpose()? == Some(0);
        Ok(TypeKind::Func {
            returns: proto.target()?,
            variadic,
        })
    }
}
