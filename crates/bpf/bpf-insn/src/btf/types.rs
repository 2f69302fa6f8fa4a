//! The parts of type descriptions.

/// Number of a type in its BTF; 0 is `void`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// Type `void`.
    pub const VOID: Self = Self(0);

    /// Returns the number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Visibility of a variable or function (`BTF_VAR_*` and `BTF_FUNC_*` of `linux/btf.h`, which agree
/// on these).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// Visible in this object only. The verifier follows each call of a static function with its
    /// knowledge of the arguments.
    Static = 0,
    /// Visible everywhere. The verifier checks a global function once, by its type alone.
    Global = 1,
}

/// Member of a structure.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Name.
    pub name: &'a str,
    /// Type.
    pub ty: TypeId,
    /// Offset in the structure.
    pub byte_offset: u32,
}

/// Parameter of a function.
#[derive(Debug, Clone, Copy)]
pub struct Param<'a> {
    /// Name.
    pub name: &'a str,
    /// Type.
    pub ty: TypeId,
}

/// Place of a variable in a section.
#[derive(Debug, Clone, Copy)]
pub struct SectionVar {
    /// Type of the variable.
    pub ty: TypeId,
    /// Offset of its first byte in the section.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// Kinds of types, `BTF_KIND_*` of `linux/btf.h`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Int = 1,
    Ptr = 2,
    Array = 3,
    Struct = 4,
    Func = 12,
    FuncProto = 13,
    Var = 14,
    Datasec = 15,
}

/// Encodes `btf_type.info`: the number of following parts in bits 0 to 15, the kind in bits 24 to
/// 28.
pub(super) const fn info(kind: Kind, length: usize) -> u32 {
    (kind as u32) << 24 | (length as u32 & 0xffff)
}
