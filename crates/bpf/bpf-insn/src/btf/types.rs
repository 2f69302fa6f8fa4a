//! The parts of type descriptions.

/// A type's number in its BTF; 0 is `void`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// `void`.
    pub const VOID: Self = Self(0);

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Who sees a variable or function (`BTF_VAR_*` and `BTF_FUNC_*` of `linux/btf.h`, which agree on these).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// This object only. The verifier follows each call of a static function with what it knows of the arguments.
    Static = 0,
    /// Everyone. The verifier checks a global function once, by its type alone.
    Global = 1,
}

/// A structure's member.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: TypeId,
    /// Its place in the structure.
    pub byte_offset: u32,
}

/// A function's parameter.
#[derive(Debug, Clone, Copy)]
pub struct Param<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: TypeId,
}

/// A variable's place in a section.
#[derive(Debug, Clone, Copy)]
pub struct SectionVar {
    /// The variable.
    pub ty: TypeId,
    /// Its first byte in the section.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
}

/// `BTF_KIND_*` of `linux/btf.h`.
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

/// `btf_type.info`: the number of what follows in bits 0 to 15, the kind in bits 24 to 28.
pub(super) const fn info(kind: Kind, length: usize) -> u32 {
    (kind as u32) << 24 | (length as u32 & 0xffff)
}
