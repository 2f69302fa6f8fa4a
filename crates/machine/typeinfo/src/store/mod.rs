//! The store, which answers all queries about types.

mod define;
mod lookup;
mod members;

use crate::btf::Btf;
use crate::dwarf::Dwarf;
use crate::error::TypeError;
use crate::model::{BtfId, Enumerator, Member, NameKind, Param, SourceId, Type, TypeKind, TypeRef};
use crate::own::OwnTypes;
use crate::source::Source;
use uapi::Arch;

/// Limit on a chain of typedefs, qualifiers and array dimensions. The kernel's own limit for a
/// chain is 32 (`MAX_RESOLVE_DEPTH` in `kernel/bpf/btf.c`).
pub(crate) const MAX_CHAIN: usize = 64;
/// Limit on sources: more than there are modules on any machine.
const MAX_SOURCES: usize = 4096;

/// All the types that a script can name. `'data` is the lifetime of the sources' bytes.
pub struct TypeStore<'data> {
    abi: Arch,
    own: OwnTypes,
    sources: Vec<Box<dyn Source + 'data>>,
    /// Each source, with true if module BTF can build on it.
    bases: Vec<(SourceId, bool)>,
}

impl std::fmt::Debug for TypeStore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypeStore")
            .field("abi", &self.abi)
            .field("sources", &self.sources.len())
            .finish_non_exhaustive()
    }
}

impl<'data> TypeStore<'data> {
    /// Creates a store that knows only the types of C.
    pub fn new(abi: Arch) -> Self {
        Self {
            abi,
            own: OwnTypes::new(),
            sources: Vec::new(),
            bases: Vec::new(),
        }
    }

    /// Returns the architecture whose layout rules it follows.
    pub fn abi(&self) -> Arch {
        self.abi
    }

    /// Adds self-contained BTF, such as the kernel's.
    pub fn add_btf(&mut self, btf: Btf<'data>) -> Result<SourceId, TypeError> {
        let id = self.next_source()?;
        Ok(self.add(id, Box::new(btf.placed(id, id)), true))
    }

    /// Adds a module's BTF, made by [`Btf::parse_split`], on top of the kernel's that was added before.
    pub fn add_split_btf(
        &mut self,
        btf: Btf<'data>,
        base: SourceId,
    ) -> Result<SourceId, TypeError> {
        if !self.bases.contains(&(base, true)) {
            return Err(TypeError::WrongKind {
                name: "the base".to_owned(),
                expected: "BTF that was added before",
            });
        }
        let id = self.next_source()?;
        Ok(self.add(id, Box::new(btf.placed(id, base)), false))
    }

    /// Adds the DWARF of an executable or library.
    pub fn add_dwarf(&mut self, dwarf: Dwarf<'data>) -> Result<SourceId, TypeError> {
        let id = self.next_source()?;
        Ok(self.add(id, Box::new(dwarf.placed(id)), false))
    }

    fn next_source(&self) -> Result<SourceId, TypeError> {
        if self.sources.len() >= MAX_SOURCES {
            return Err(TypeError::TooMany {
                what: "sources of types",
                limit: MAX_SOURCES as u64,
            });
        }
        Ok(SourceId(self.sources.len() as u16 + 1))
    }

    fn add(&mut self, id: SourceId, source: Box<dyn Source + 'data>, base: bool) -> SourceId {
        self.sources.push(source);
        self.bases.push((id, base));
        id
    }

    /// Returns the source of this id. For an id of another store, our own types may answer.
    pub(crate) fn source(&self, id: SourceId) -> &dyn Source {
        let added = usize::from(id.0)
            .checked_sub(1)
            .and_then(|index| self.sources.get(index));
        added.map_or(&self.own as &dyn Source, |source| source.as_ref())
    }

    /// Returns all sources, in the order in which names are looked for.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        (0..=self.sources.len() as u16).map(SourceId)
    }

    /// Returns a type's name and kind.
    pub fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError> {
        if ty.is_void() {
            return Ok(Type {
                name: None,
                kind: TypeKind::Void,
            });
        }
        self.source(ty.source).get(ty)
    }

    /// Returns the type behind typedefs and qualifiers. If that is a declaration, returns its
    /// definition, if one is known.
    pub fn strip(&self, ty: TypeRef) -> Result<TypeRef, TypeError> {
        let mut at = ty;
        for _ in 0..MAX_CHAIN {
            match self.get(at)?.kind {
                TypeKind::Typedef { target } | TypeKind::Qualified { target, .. } => at = target,
                TypeKind::Forward { .. } => return self.complete(at),
                _ => return Ok(at),
            }
        }
        Err(TypeError::TooDeep {
            name: format!("#{}", ty.id),
            limit: MAX_CHAIN,
        })
    }

    /// Returns the definition of a declared struct, union or enum: from its own source, or else
    /// from the others. Returns the type itself if it is not a declaration, or if there is no
    /// definition.
    pub fn complete(&self, ty: TypeRef) -> Result<TypeRef, TypeError> {
        let Type {
            name: Some(name),
            kind: TypeKind::Forward { tag },
        } = self.get(ty)?
        else {
            return Ok(ty);
        };
        if let Some(found) = self.find_in(ty.source, tag.into(), name)? {
            return Ok(found);
        }
        Ok(self.find(tag.into(), name)?.unwrap_or(ty))
    }

    /// Returns the kind behind typedefs and qualifiers.
    pub fn kind(&self, ty: TypeRef) -> Result<TypeKind, TypeError> {
        Ok(self.get(self.strip(ty)?)?.kind)
    }

    /// Returns the size of a value in bytes: 0 for a flexible array, and an error for `void`,
    /// functions and mere declarations.
    pub fn size_of(&self, ty: TypeRef) -> Result<u64, TypeError> {
        let (mut at, mut count) = (ty, 1_u64);
        for _ in 0..MAX_CHAIN {
            let size = match self.kind(at)? {
                TypeKind::Int { size, .. }
                | TypeKind::Float { size }
                | TypeKind::Pointer { size, .. }
                | TypeKind::Enum { size, .. } => u64::from(size),
                TypeKind::Struct { size } | TypeKind::Union { size } => size,
                TypeKind::Array { element, count: n } => {
                    count = count
                        .checked_mul(n.unwrap_or(0))
                        .ok_or_else(|| self.too_deep(ty))?;
                    at = element;
                    continue;
                }
                TypeKind::Forward { .. } => {
                    return Err(TypeError::Incomplete {
                        name: self.display(at),
                    });
                }
                _ => {
                    return Err(TypeError::WrongKind {
                        name: self.display(at),
                        expected: "a type that has a size",
                    });
                }
            };
            return size.checked_mul(count).ok_or_else(|| self.too_deep(ty));
        }
        Err(self.too_deep(ty))
    }

    pub(crate) fn too_deep(&self, ty: TypeRef) -> TypeError {
        TypeError::TooDeep {
            name: self.display(ty),
            limit: MAX_CHAIN,
        }
    }

    /// Returns the members of a struct or union as its definition lists them; looks through
    /// typedefs and qualifiers.
    pub fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError> {
        let ty = self.strip(ty)?;
        self.source(ty.source).members(ty)
    }

    /// Returns the names and values of an enumeration.
    pub fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError> {
        let ty = self.strip(ty)?;
        self.source(ty.source).enumerators(ty)
    }

    /// Returns the parameters of a function, of a function's type, or of a pointer to one.
    pub fn params(&self, ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError> {
        let mut ty = self.strip(ty)?;
        if let TypeKind::Pointer { target, .. } = self.get(ty)?.kind {
            ty = self.strip(target)?;
        }
        self.source(ty.source).params(ty)
    }

    /// Returns the kernel's id of a type; `None` for types that are not from BTF.
    pub fn btf_id(&self, ty: TypeRef) -> Option<BtfId> {
        self.source(ty.source)
            .btf_id(ty)
            .map(|(source, id)| BtfId { source, id })
    }

    /// Finds the first definition with this name: the script's own, then the sources' in the order
    /// in which they were added.
    pub fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError> {
        for id in self.ids() {
            if let Some(found) = self.find_in(id, kind, name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Finds the first definition with this name in one source.
    pub fn find_in(
        &self,
        source: SourceId,
        kind: NameKind,
        name: &str,
    ) -> Result<Option<TypeRef>, TypeError> {
        self.source(source).find(kind, name)
    }
}
