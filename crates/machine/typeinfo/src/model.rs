//! The common model of a type, for BTF, DWARF and definitions in scripts.
//!
//! A [`TypeRef`] identifies a type: a small number that only its [`TypeStore`](crate::TypeStore) can look up. The results borrow
//! the names from the bytes of the source.

/// Id of a source of types: one BTF, one file's DWARF, or the store's own definitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(pub(crate) u16);

impl SourceId {
    /// The store itself: definitions of scripts, the types of C, and pointers and arrays made of
    /// other types.
    pub const OWN: Self = Self(0);
}

/// Handle of a type in a store. Two different handles may mean equal types (a struct that two
/// sources have).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TypeRef {
    pub(crate) source: SourceId,
    /// Dimension of an array, from 0, for sources that write `int a[2][3]` as one type.
    pub(crate) part: u16,
    pub(crate) id: u32,
}

impl TypeRef {
    /// C's `void`, in every source.
    pub const VOID: Self = Self {
        source: SourceId::OWN,
        part: 0,
        id: 0,
    };

    pub(crate) fn new(source: SourceId, id: u32) -> Self {
        Self {
            source,
            part: 0,
            id,
        }
    }

    /// Returns the source of the type.
    pub fn source(self) -> SourceId {
        self.source
    }

    /// Returns true for `void` itself (not for a typedef of it).
    pub fn is_void(self) -> bool {
        self == Self::VOID
    }
}

/// A type: its own name, if it has one, and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type<'s> {
    /// The name without `struct`, `union` or `enum`. Pointers, arrays and anonymous types have none.
    pub name: Option<&'s str>,
    /// Kind of the type.
    pub kind: TypeKind,
}

/// Interpretation of an integer. Only text output and C's own rules distinguish between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntClass {
    /// A number.
    Number,
    /// A character (`char`, `char8_t`; in BTF, which does not mark characters, a one-byte integer with the name `char`).
    Char,
    /// A truth value.
    Bool,
}

/// A word that C puts before a type, without effect on its layout in memory.
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

/// Keyword of a tagged type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tag {
    /// `struct`
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
}

/// Kind of a type. Members, enumerators and parameters have queries of their own, so that this
/// stays small.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// `void`: no value at all.
    Void,
    /// An integer.
    Int {
        /// Size in bytes: 1, 2, 4, 8 or 16.
        size: u32,
        /// True if it can be negative.
        signed: bool,
        /// Interpretation of the value.
        class: IntClass,
    },
    /// A floating-point number.
    Float {
        /// Size in bytes.
        size: u32,
    },
    /// A pointer, or a C++ reference.
    Pointer {
        /// Type that it points to.
        target: TypeRef,
        /// Size in bytes.
        size: u32,
    },
    /// An array.
    Array {
        /// Type of the elements.
        element: TypeRef,
        /// Number of elements; `None` for a flexible array (`char name[]`), which BTF writes as an
        /// array of no elements.
        count: Option<u64>,
    },
    /// A struct (or C++ class): [`TypeStore::members`](crate::TypeStore::members) has its members.
    Struct {
        /// Size in bytes.
        size: u64,
    },
    /// A union.
    Union {
        /// Size in bytes.
        size: u64,
    },
    /// An enumeration: [`TypeStore::enumerators`](crate::TypeStore::enumerators) has its names.
    Enum {
        /// Size in bytes.
        size: u32,
        /// True if its values can be negative.
        signed: bool,
    },
    /// A struct, union or enum that is only declared here:
    /// [`TypeStore::complete`](crate::TypeStore::complete) looks for its definition elsewhere.
    Forward {
        /// Keyword of the declaration.
        tag: Tag,
    },
    /// Another name for a type.
    Typedef {
        /// The named type.
        target: TypeRef,
    },
    /// A type with a qualifier.
    Qualified {
        /// The qualifier.
        qualifier: Qualifier,
        /// The qualified type.
        target: TypeRef,
    },
    /// A function, or the type of one: [`TypeStore::params`](crate::TypeStore::params) has its parameters.
    Func {
        /// Return type.
        returns: TypeRef,
        /// True if more arguments may follow the parameters.
        variadic: bool,
    },
}

/// A member of a struct or union, as its definition lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'s> {
    /// Name; `None` for an anonymous struct or union, whose members are reached without a name.
    pub name: Option<&'s str>,
    /// Type; for a bit-field, the type before the colon.
    pub ty: TypeRef,
    /// Offset from the beginning of the struct in bits, least significant bit of the first byte
    /// first.
    pub bit_offset: u64,
    /// Width in bits, for a bit-field.
    pub bit_size: Option<u32>,
}

/// Result of a member look-up, relative to the type where the search began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Type; for a bit-field, the type before the colon.
    pub ty: TypeRef,
    /// Offset in bits from the type where the search began.
    pub bit_offset: u64,
    /// Width in bits, for a bit-field.
    pub bit_size: Option<u32>,
}

/// Recipe to read a bit-field: load some bytes, shift right, and keep the low bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitAccess {
    /// Byte offset of the load, from the type where the search began.
    pub byte_offset: u64,
    /// Number of bytes to load: 1, 2, 4 or 8.
    pub load_size: u32,
    /// Right shift of the loaded value, in bits (little-endian).
    pub shift: u32,
    /// Number of bits to keep. The type says whether to extend the sign.
    pub bits: u32,
}

impl Field {
    /// Returns the byte offset from the type where the search began, rounded down for a bit-field.
    pub fn byte_offset(&self) -> u64 {
        self.bit_offset / 8
    }

    /// Returns how to read a bit-field; `None` if it is not one, or no load of at most eight bytes
    /// holds it. Prefers a naturally aligned load, which stays within the struct.
    pub fn bit_access(&self) -> Option<BitAccess> {
        let bits = self.bit_size.filter(|bits| (1..=64).contains(bits))?;
        let aligned = [1_u32, 2, 4, 8]
            .into_iter()
            .map(|size| (self.byte_offset() / u64::from(size) * u64::from(size), size));
        let unaligned = [2_u32, 4, 8]
            .into_iter()
            .map(|size| (self.byte_offset(), size));
        aligned
            .chain(unaligned)
            .find_map(|(byte_offset, load_size)| {
                let shift = u32::try_from(self.bit_offset - byte_offset * 8).ok()?;
                (shift + bits <= load_size * 8).then_some(BitAccess {
                    byte_offset,
                    load_size,
                    shift,
                    bits,
                })
            })
    }
}

/// Name and value of an enumerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumerator<'s> {
    /// The name.
    pub name: &'s str,
    /// The value; for an unsigned enumeration, the bits of its `u64`.
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

/// A function, with its parameters and return type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function<'s> {
    /// The function itself. Its [`BtfId`] is what fentry and fexit programs attach to.
    pub ty: TypeRef,
    /// Name that it was found by.
    pub name: &'s str,
    /// Parameters in order. The calling convention says where their values are.
    pub params: Vec<Param<'s>>,
    /// Return type.
    pub returns: TypeRef,
    /// True if more arguments may follow.
    pub variadic: bool,
}

/// A variable defined outside of functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable<'s> {
    /// Type of the variable.
    pub ty: TypeRef,
    /// Address as the file states it. `None` for a declaration, for a thread-local variable, or if
    /// its location is described in a way that is not read; the symbol table may then have it.
    pub address: Option<u64>,
    /// The source file of the unit that defines it.
    pub unit: Option<&'s str>,
    /// True for a definition. A declaration only has the type of a variable that another file
    /// defines.
    pub is_defined: bool,
}

/// A tracepoint as `raw_tp` and `tp_btf` programs see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawTracepoint<'s> {
    /// The typedef `btf_trace_NAME`, whose [`BtfId`] is what `tp_btf` programs attach to.
    pub ty: TypeRef,
    /// Arguments of a program, without the kernel's own first one. They have no names if no
    /// function in the kernel's BTF names them.
    pub params: Vec<Param<'s>>,
}

/// The kernel's id of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BtfId {
    /// BTF of the kernel or a module, as [`TypeStore::add_btf`](crate::TypeStore::add_btf) numbered
    /// it.
    pub source: SourceId,
    /// The id for `attach_btf_id`.
    pub id: u32,
}

/// Name space of a look-up.
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
    /// All name spaces.
    pub const ALL: [Self; 6] = [
        Self::Struct,
        Self::Union,
        Self::Enum,
        Self::Typedef,
        Self::Base,
        Self::Func,
    ];

    /// Returns the word for messages.
    pub fn words(self) -> &'static str {
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
    /// Returns the C keyword.
    pub fn word(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
        }
    }
}
