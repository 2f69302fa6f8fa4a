//! Types that are in no file: definitions of scripts, C's built-in types, and pointers to and
//! arrays of other types.

mod base;

use std::collections::HashMap;

use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, Param, SourceId, Tag, Type, TypeKind, TypeRef};
use crate::source::{Source, Visit};
use uapi::Arch;

/// Limit on types: more than any script needs, and reached before memory is short.
const MAX_TYPES: usize = 1 << 20;

/// A struct or union as a script writes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordDef {
    /// True for a union.
    pub union: bool,
    /// Tag; `None` for an anonymous one within another.
    pub name: Option<String>,
    /// Members in order.
    pub members: Vec<MemberDef>,
    /// `__attribute__((packed))`
    pub packed: bool,
    /// `__attribute__((aligned(N)))`: at least this number of bytes, a power of two.
    pub align: Option<u64>,
}

/// A member as a script writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberDef {
    /// Name; `None` for an anonymous struct or union, and for an unnamed bit-field.
    pub name: Option<String>,
    /// Type; for a bit-field, the type before the colon.
    pub ty: TypeRef,
    /// Number behind the colon: the width of a bit-field in bits.
    pub bits: Option<u32>,
    /// `__attribute__((aligned(N)))`: at least this number of bytes, a power of two.
    pub align: Option<u64>,
}

impl MemberDef {
    /// Creates a plain member.
    pub fn new(name: &str, ty: TypeRef) -> Self {
        Self {
            name: Some(name.to_owned()),
            ty,
            bits: None,
            align: None,
        }
    }

    /// Creates a member without a name.
    pub fn anonymous(ty: TypeRef) -> Self {
        Self {
            name: None,
            ty,
            bits: None,
            align: None,
        }
    }

    /// Makes the member a bit-field of this width.
    #[must_use]
    pub fn bits(mut self, bits: u32) -> Self {
        self.bits = Some(bits);
        self
    }
}

/// An enumeration as a script writes it, with the values worked out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EnumDef {
    /// Tag, if it has one.
    pub name: Option<String>,
    /// Names and values; values above `i64::MAX` as their bits, with `unsigned` set.
    pub values: Vec<(String, i64)>,
    /// True if the values are `u64`.
    pub unsigned: bool,
}

#[derive(Debug)]
struct OwnMember {
    name: Option<String>,
    ty: TypeRef,
    bit_offset: u64,
    bit_size: Option<u32>,
}

#[derive(Debug, Default)]
struct OwnType {
    name: Option<String>,
    kind: Option<TypeKind>,
    members: Vec<OwnMember>,
    values: Vec<(String, i64)>,
    /// Alignment that the definition gave it, in bytes; 0 without one.
    align: u64,
}

/// The store's own types.
#[derive(Debug)]
pub(crate) struct OwnTypes {
    types: Vec<OwnType>,
    named: HashMap<(NameKind, String), u32>,
    made: HashMap<TypeKind, u32>,
}

/// A member with its offset.
pub(crate) struct PlacedMember {
    pub(crate) def: MemberDef,
    pub(crate) bit_offset: u64,
}

impl OwnTypes {
    pub(crate) fn new() -> Self {
        let void = OwnType {
            kind: Some(TypeKind::Void),
            ..OwnType::default()
        };
        Self {
            types: vec![void],
            named: HashMap::new(),
            made: HashMap::from([(TypeKind::Void, 0)]),
        }
    }

    fn add(&mut self, ty: OwnType) -> Result<u32, TypeError> {
        if self.types.len() >= MAX_TYPES {
            return Err(TypeError::TooMany {
                what: "types defined by a script",
                limit: MAX_TYPES as u64,
            });
        }
        self.types.push(ty);
        Ok(self.types.len() as u32 - 1)
    }

    fn at(&self, ty: TypeRef) -> Option<&OwnType> {
        self.types.get(ty.id as usize)
    }

    /// Returns a type of C by its name; `None` if C has no such type.
    pub(crate) fn base(&mut self, name: &str, abi: Arch) -> Result<Option<TypeRef>, TypeError> {
        let Some(kind) = base::base_type(name, abi) else {
            return Ok(None);
        };
        if kind == TypeKind::Void {
            return Ok(Some(TypeRef::VOID));
        }
        self.name(NameKind::Base, name, kind).map(Some)
    }

    /// Returns the type that has nothing but this kind: the same one each time.
    pub(crate) fn make(&mut self, kind: TypeKind) -> Result<TypeRef, TypeError> {
        let id = match self.made.get(&kind) {
            Some(id) => *id,
            None => self.add(OwnType {
                kind: Some(kind),
                ..OwnType::default()
            })?,
        };
        self.made.insert(kind, id);
        Ok(TypeRef::new(SourceId::OWN, id))
    }

    /// Returns the type of this name; creates it if there is none yet.
    pub(crate) fn name(
        &mut self,
        space: NameKind,
        name: &str,
        kind: TypeKind,
    ) -> Result<TypeRef, TypeError> {
        let key = (space, name.to_owned());
        if let Some(id) = self.named.get(&key) {
            return Ok(TypeRef::new(SourceId::OWN, *id));
        }
        let id = self.add(OwnType {
            name: Some(name.to_owned()),
            kind: Some(kind),
            ..OwnType::default()
        })?;
        self.named.insert(key, id);
        Ok(TypeRef::new(SourceId::OWN, id))
    }

    /// Gives a struct, union or enum its definition. `None` if it has one already.
    fn complete(&mut self, tag: Tag, mut ty: OwnType) -> Result<Option<TypeRef>, TypeError> {
        let Some(name) = ty.name.take() else {
            return self.add(ty).map(|id| Some(TypeRef::new(SourceId::OWN, id)));
        };
        let place = self.name(tag.into(), &name, TypeKind::Forward { tag })?;
        let Some(known) = self.types.get_mut(place.id as usize) else {
            return Ok(None);
        };
        if !matches!(known.kind, Some(TypeKind::Forward { .. })) {
            return Ok(None);
        }
        *known = OwnType {
            name: Some(name),
            ..ty
        };
        Ok(Some(place))
    }

    /// Adds a struct or union whose layout is known. `None` if one of this name is defined.
    pub(crate) fn record(
        &mut self,
        name: Option<String>,
        kind: TypeKind,
        align: u64,
        members: Vec<PlacedMember>,
    ) -> Result<Option<TypeRef>, TypeError> {
        let tag = if matches!(kind, TypeKind::Union { .. }) {
            Tag::Union
        } else {
            Tag::Struct
        };
        let members = members.into_iter().map(|member| OwnMember {
            name: member.def.name,
            ty: member.def.ty,
            bit_offset: member.bit_offset,
            bit_size: member.def.bits,
        });
        self.complete(
            tag,
            OwnType {
                name,
                kind: Some(kind),
                align,
                members: members.collect(),
                ..OwnType::default()
            },
        )
    }

    /// Adds an enumeration. `None` if one of this name is defined.
    pub(crate) fn enumeration(
        &mut self,
        def: EnumDef,
        kind: TypeKind,
    ) -> Result<Option<TypeRef>, TypeError> {
        let ty = OwnType {
            name: def.name,
            kind: Some(kind),
            values: def.values,
            ..OwnType::default()
        };
        self.complete(Tag::Enum, ty)
    }

    /// Returns the alignment that a definition here gave the struct or union, in bytes.
    pub(crate) fn align(&self, ty: TypeRef) -> Option<u64> {
        self.at(ty).map(|ty| ty.align).filter(|align| *align > 0)
    }
}

impl Source for OwnTypes {
    fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError> {
        // A reference from another store means nothing here.
        let own = self.at(ty);
        let kind = own.and_then(|own| own.kind).unwrap_or(TypeKind::Void);
        Ok(Type {
            name: own.and_then(|own| own.name.as_deref()),
            kind,
        })
    }

    fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError> {
        let members = self
            .at(ty)
            .map(|ty| ty.members.as_slice())
            .unwrap_or_default();
        let member = |member: &OwnMember| (member.ty, member.bit_offset, member.bit_size);
        Ok(members
            .iter()
            .map(|m| (m.name.as_deref(), member(m)))
            .map(|(name, (ty, bit_offset, bit_size))| Member {
                name,
                ty,
                bit_offset,
                bit_size,
            })
            .collect())
    }

    fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError> {
        let values = self
            .at(ty)
            .map(|ty| ty.values.as_slice())
            .unwrap_or_default();
        Ok(values
            .iter()
            .map(|(name, value)| Enumerator {
                name,
                value: *value,
            })
            .collect())
    }

    /// Returns no parameters: scripts define no functions.
    fn params(&self, _ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError> {
        Ok(Vec::new())
    }

    fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError> {
        let id = self.named.get(&(kind, name.to_owned())).copied();
        let defined = id.filter(|id| {
            let kind = self.types.get(*id as usize).and_then(|ty| ty.kind);
            !matches!(kind, Some(TypeKind::Forward { .. }))
        });
        Ok(defined.map(|id| TypeRef::new(SourceId::OWN, id)))
    }

    fn visit<'s>(&'s self, kind: NameKind, visit: Visit<'_, 's>) -> Result<(), TypeError> {
        let mut ids: Vec<u32> = self
            .named
            .iter()
            .filter(|((k, _), _)| *k == kind)
            .map(|(_, id)| *id)
            .collect();
        ids.sort_unstable();
        for id in ids {
            let ty = TypeRef::new(SourceId::OWN, id);
            let defined = self
                .at(ty)
                .filter(|ty| !matches!(ty.kind, Some(TypeKind::Forward { .. })));
            if let Some(name) = defined.and_then(|ty| ty.name.as_deref())
                && !visit(name, ty)
            {
                break;
            }
        }
        Ok(())
    }

    fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError> {
        let value = |ty: &OwnType| {
            ty.values
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| *value)
        };
        let found = self
            .types
            .iter()
            .enumerate()
            .find_map(|(id, ty)| value(ty).map(|value| (id, value)));
        Ok(found.map(|(id, value)| (TypeRef::new(SourceId::OWN, id as u32), value)))
    }
}
