//! Types as written: in casts, `let`, `sizeof`, and in C definitions.

use super::{CEnum, CRecord, Expr, Name, Span, TypeOrExpr};

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Kind of the type.
    pub kind: TypeKind,
    /// Source range. For a C declaration, the words of its base type.
    pub span: Span,
}

impl Type {
    /// Creates a type.
    pub fn new(kind: TypeKind, span: Span) -> Self {
        Self { kind, span }
    }
}

/// The kinds of type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    /// A part that could not be parsed; a diagnostic has been reported.
    Error,
    /// A name: one of [`scalar`], `string`, `buffer`, `inet`, `count_t` and so on, or a typedef.
    /// C's words are normalized: `long unsigned int` is `unsigned long`; `signed` and a superfluous
    /// `int` are dropped.
    Name(String),
    /// `struct name`, `union name`, `enum name`.
    Tagged(RecordKind, Name),
    /// A struct or union defined where it is used (C definitions only).
    Inline(Box<CRecord>),
    /// An enum defined where it is used (C definitions only).
    InlineEnum(Box<CEnum>),
    /// `type*`.
    Pointer(Box<Type>),
    /// `type[N]` and `type[]`; also `string[64]`, `buffer[8]` and `inet[4]`, whose length is a
    /// size.
    Array(Box<Type>, Option<Box<Expr>>),
    /// A function, only behind a pointer (C definitions only).
    Function,
    /// `typeof(x)`.
    Typeof(Box<TypeOrExpr>),
}

/// Tag keyword of a C type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RecordKind {
    Struct,
    Union,
    Enum,
}

impl RecordKind {
    /// Returns the keyword.
    pub fn text(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
        }
    }
}

/// A type of fixed size that needs no definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalarType {
    /// The name in [`TypeKind::Name`].
    pub name: &'static str,
    /// Size in bytes; 0 for `void`.
    pub size: u8,
    /// True if the type is signed.
    pub signed: bool,
}

/// Types of fixed size: bpftrace's own, C's on 64-bit Linux (LP64), and the kernel's `u8`..`s64`,
/// which mean the same everywhere.
const SCALARS: [(&str, u8, bool); 41] = [
    ("void", 0, false),
    ("bool", 1, false),
    ("_Bool", 1, false),
    ("int8", 1, true),
    ("int16", 2, true),
    ("int32", 4, true),
    ("int64", 8, true),
    ("uint8", 1, false),
    ("uint16", 2, false),
    ("uint32", 4, false),
    ("uint64", 8, false),
    ("char", 1, true),
    ("unsigned char", 1, false),
    ("short", 2, true),
    ("unsigned short", 2, false),
    ("int", 4, true),
    ("unsigned int", 4, false),
    ("long", 8, true),
    ("unsigned long", 8, false),
    ("long long", 8, true),
    ("unsigned long long", 8, false),
    ("int8_t", 1, true),
    ("int16_t", 2, true),
    ("int32_t", 4, true),
    ("int64_t", 8, true),
    ("uint8_t", 1, false),
    ("uint16_t", 2, false),
    ("uint32_t", 4, false),
    ("uint64_t", 8, false),
    ("size_t", 8, false),
    ("ssize_t", 8, true),
    ("uintptr_t", 8, false),
    ("intptr_t", 8, true),
    ("u8", 1, false),
    ("u16", 2, false),
    ("u32", 4, false),
    ("u64", 8, false),
    ("s8", 1, true),
    ("s16", 2, true),
    ("s32", 4, true),
    ("s64", 8, true),
];

/// Returns the type of fixed size with this name.
pub fn scalar(name: &str) -> Option<ScalarType> {
    SCALARS
        .iter()
        .find(|row| row.0 == name)
        .map(|&(name, size, signed)| ScalarType { name, size, signed })
}
