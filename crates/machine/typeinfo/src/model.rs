//! The common model of a type, for BTF, DWARF and definitions in scripts.
//!
//! A [`TypeRef`] identifies a type: a small number that only its [`TypeStore`](crate::TypeStore) can look up. The results borrow
//! the names from the bytes of the source.

/// Where a type came from: one BTF, one file's DWARF, or the store's own definitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(pub(crate) u16);

impl SourceId {
    /// The store itself: what scripts define, the types of C, and pointers and arrays made of other types.
    pub const OWN: Self = Self(0);
}

/// The name of a type in a store. Two different references may mean equal types (a struct that two sources have).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeRef {
    pub(crate) source: SourceId,
    /// Which dimension of an array, for sources that write `int a[2][3]` as one type.
    pub(crate) part: u16,
    pub(crate) id: u32,
}

impl TypeRef {
    /// C's `void`, in every source.
    pub const VOID: Self = Self { source: SourceId::OWN, part: 0, id: 0 };

    pub(crate) fn new(source: SourceId, id: u32) -> Self {
        Self { source, part: 0, id }
    }

    /// The source that the type came from.
    pub fn source(self) -> SourceId {
        self.source
    }

    /// Whether it is `void` itself (not a typedef of it).
    pub fn is_void(self) -> bool {
        self == Self::VOID
    }
}

/// A type: its own name, if it has one, and what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type<'s> {
    /// The name without `struct`, `union` or `enum`. Pointers, arrays and anonymous types have none.
    pub name: Option<&'s str>,
    /// What it is.
    pub kind: TypeKind,
}

/// What an integer holds. Only text output and C's own rules make a difference between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntClass {
    /// A number.
    Number,
    /// A character (`char`, `char8_t`; in BTF, which does not mark characters, a one-byte integer with the name `char`).
    Char,
    /// A truth value.
    Bool,
}

/// A word that C puts before a type and that changes nothing in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Qualifier {
    /// `const`
    Const,
    /// `volatile`
    Volatile,
    /// `restrict`
    Restrict,
    /// `_Atomic`
    Atomic,
    /// A tag of BTF, such as `__user` or `__rcu`, which is the type's name.
    Tag,
}

/// Which of C's three name spaces for tags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tag {
    /// `struct`
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
}

/// What a type is. Members, enumerators and parameters are asked for separately, so that this stays small.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// `void`: no value at all.
    Void,
    /// An integer.
    Int {
        /// In bytes: 1, 2, 4, 8 or 16.
        size: u32,
        /// Whether it can be negative.
        signed: bool,
        /// What it holds.
        class: IntClass,
    },
    /// A floating-point number.
    Float {
        /// In bytes.
        size: u32,
    },
    /// A pointer, or a C++ reference.
    Pointer {
        /// What it points to.
        target: TypeRef,
        /// In bytes.
        size: u32,
    },
    /// An array.
    Array {
        /// What it holds.
        element: TypeRef,
        /// How many; none for a flexible array (`char name[]`), which BTF writes as an array of no elements.
        count: Option<u64>,
    },
    /// A struct (or C++ class): [`TypeStore::members`](crate::TypeStore::members) has its members.
    Struct {
        /// In bytes.
        size: u64,
    },
    /// A union.
    Union {
        /// In bytes.
        size: u64,
    },
    /// An enumeration: [`TypeStore::enumerators`](crate::TypeStore::enumerators) has its names.
    Enum {
        /// In bytes.
        size: u32,
        /// Whether its values can be negative.
        signed: bool,
    },
    /// A struct, union or enum of which only the name is known here:
    /// [`TypeStore::complete`](crate::TypeStore::complete) looks for its definition elsewhere.
    Forward {
        /// Of what.
        tag: Tag,
    },
    /// Another name for a type.
    Typedef {
        /// The type.
        target: TypeRef,
    },
    /// A type with a word before it.
    Qualified {
        /// The word.
        qualifier: Qualifier,
        /// The type.
        target: TypeRef,
    },
    /// A function, or the type of one: [`TypeStore::params`](crate::TypeStore::params) has its parameters.
    Func {
        /// What it returns.
        returns: TypeRef,
        /// Whether more arguments may follow the parameters.
        variadic: bool,
    },
}

/// A member of a struct or union, as its definition lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'s> {
    /// None for an anonymous struct or union, whose members are reached without a name.
    pub name: Option<&'s str>,
    /// Its type; of a bit-field the type before the colon.
    pub ty: TypeRef,
    /// From the beginning of the struct, in bits, least significant bit of the first byte first.
    pub bit_offset: u64,
    /// How many bits, of a bit-field.
    pub bit_size: Option<u32>,
}

/// A member that was looked for, seen from the type that the search began at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its type; of a bit-field the type before the colon.
    pub ty: TypeRef,
    /// From where the search began, in bits.
    pub bit_offset: u64,
    /// How many bits, of a bit-field.
    pub bit_size: Option<u32>,
}

/// How to read a bit-field: load some bytes, shift right, and keep the low bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitAccess {
    /// Where to load from, in bytes from where the search began.
    pub byte_offset: u64,
    /// How many bytes: 1, 2, 4 or 8.
    pub load_size: u32,
    /// How far to shift right what was loaded (little-endian).
    pub shift: u32,
    /// How many bits to keep. Whether to extend the sign is the type's to say.
    pub bits: u32,
}

impl Field {
    /// From where the search began, in bytes, rounded down for a bit-field.
    pub fn byte_offset(&self) -> u64 {
        self.bit_offset / 8
    }

    /// How to read it, when it is a bit-field that one load of at most eight bytes can hold. A load at its natural place
    /// is preferred, since it stays within the struct.
    pub fn bit_access(&self) -> Option<BitAccess> {
        let bits = self.bit_size.filter(|bits| (1..=64).contains(bits))?;
        let aligned =
            [1_u32, 2, 4, 8].into_iter().map(|size| (self.byte_offset() / u64::from(size) * u64::from(size), size));
        let unaligned = [2_u32, 4, 8].into_iter().map(|size| (self.byte_offset(), size));
        aligned.chain(unaligned).find_map(|(byte_offset, load_size)| {
            let shift = u32::try_from(self.bit_offset - byte_offset * 8).ok()?;
            (shift + bits <= load_size * 8).then_some(BitAccess { byte_offset, load_size, shift, bits })
        })
    }
}

/// A name of an enumeration and its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumerator<'s> {
    /// The name.
    pub name: &'s str,
    /// The value; of an unsigned enumeration the bits of its `u64`.
    pub value: i64,
}

/// A parameter of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param<'s> {
    /// The name; types of functions often have none.
    pub name: Option<&'s str>,
    /// The type.
    pub ty: TypeRef,
}

/// A function, with what is needed to name its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function<'s> {
    /// The function itself. Its [`BtfId`] is what fentry and fexit programs attach to.
    pub ty: TypeRef,
    /// The name that it was found by.
    pub name: &'s str,
    /// In order. Where the values are is the calling convention's to say.
    pub params: Vec<Param<'s>>,
    /// What it returns.
    pub returns: TypeRef,
    /// Whether more arguments may follow.
    pub variadic: bool,
}

/// A variable of a program that is not within a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable<'s> {
    /// Its type.
    pub ty: TypeRef,
    /// Where it is in the file's own addresses. None if it has a place only in each thread, or its place is described in a
    /// way that is not read: then the symbol table may have it.
    pub address: Option<u64>,
    /// The source file of the unit that defines it.
    pub unit: Option<&'s str>,
    /// Whether it is defined there. A declaration only has the type of a variable that another file defines.
    pub is_defined: bool,
}

/// A tracepoint as `raw_tp` and `tp_btf` programs see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawTracepoint<'s> {
    /// The typedef `btf_trace_NAME`, whose [`BtfId`] is what `tp_btf` programs attach to.
    pub ty: TypeRef,
    /// The arguments that a program gets, without the kernel's own first one. A kernel whose BTF has no function that
    /// names them leaves the names out.
    pub params: Vec<Param<'s>>,
}

/// The number that the kernel knows a type by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BtfId {
    /// Which BTF: the kernel's or a module's, as [`TypeStore::add_btf`](crate::TypeStore::add_btf) numbered it.
    pub source: SourceId,
    /// The id, as `attach_btf_id` wants it.
    pub id: u32,
}

/// In which name space to look for a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NameKind {
    /// `struct NAME`, or a C++ class.
    Struct,
    /// `union NAME`
    Union,
    /// `enum NAME`
    Enum,
    /// A typedef.
    Typedef,
    /// An integer or floating-point type by its name in the source (`unsigned int`, `long unsigned int`: producers differ).
    Base,
    /// A function.
    Func,
}

impl NameKind {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Struct, Self::Union, Self::Enum, Self::Typedef, Self::Base, Self::Func];

    /// For messages.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
            Self::Typedef => "typedef",
            Self::Base => "type",
            Self::Func => "function",
        }
    }
}

impl From<Tag> for NameKind {
    fn from(tag: Tag) -> Self {
        match tag {
            Tag::Struct => Self::Struct,
            Tag::Union => Self::Union,
            Tag::Enum => Self::Enum,
        }
    }
}

impl Tag {
    /// The word of C.
    pub fn word(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
        }
    }
}
