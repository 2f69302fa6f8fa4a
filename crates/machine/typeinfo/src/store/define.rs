//! Definitions in a script, and derived types.

use super::TypeStore;
use crate::error::TypeError;
use crate::layout::{Item, lay_out};
use crate::model::{NameKind, Qualifier, SourceId, Tag, TypeKind, TypeRef};
use crate::own::{EnumDef, MemberDef, PlacedMember, RecordDef};
use crate::source::Source as _;

/// Limit on types visited for one alignment. No real struct has nearly as many members within
/// members; a broken file can have exponentially many.
const MAX_VISITED: usize = 1 << 16;

impl TypeStore<'_> {
    /// Returns a type of C by its name (`unsigned long`, words in any order), of `<stdint.h>`, or
    /// bpftrace's (`uint64`).
    pub fn base(&mut self, name: &str) -> Result<Option<TypeRef>, TypeError> {
        self.own.base(name, self.abi)
    }

    /// Returns a pointer to a type; the same reference each time.
    pub fn pointer_to(&mut self, target: TypeRef) -> Result<TypeRef, TypeError> {
        self.own.make(TypeKind::Pointer { target, size: 8 })
    }

    /// Returns an array, or a flexible array if `count` is `None`; the same reference each time.
    pub fn array_of(&mut self, element: TypeRef, count: Option<u64>) -> Result<TypeRef, TypeError> {
        self.own.make(TypeKind::Array { element, count })
    }

    /// Returns a qualified type; the same reference each time.
    pub fn qualified(
        &mut self,
        qualifier: Qualifier,
        target: TypeRef,
    ) -> Result<TypeRef, TypeError> {
        self.own.make(TypeKind::Qualified { qualifier, target })
    }

    /// Returns a struct, union or enum by its tag: the script's own, or a declaration that a later
    /// definition completes. So pointers to a struct can be members of it. [`TypeStore::strip`]
    /// finds the definition of another source.
    pub fn forward(&mut self, tag: Tag, name: &str) -> Result<TypeRef, TypeError> {
        self.own.name(tag.into(), name, TypeKind::Forward { tag })
    }

    /// Lays out a struct or union. The script's definition hides those of other sources.
    pub fn define_record(&mut self, def: RecordDef) -> Result<TypeRef, TypeError> {
        let word = if def.union { "union" } else { "struct" };
        let name = format!("{word} {}", def.name.as_deref().unwrap_or("(anonymous)"));
        let refuse = |problem: String| TypeError::Definition {
            name: name.clone(),
            problem,
        };
        let mut items = Vec::with_capacity(def.members.len());
        for (index, member) in def.members.iter().enumerate() {
            let last = index + 1 == def.members.len() && !def.union;
            items.push(self.item(member, last).map_err(&refuse)?);
        }
        check_names(&def).map_err(refuse)?;
        let laid =
            lay_out(self.abi, def.union, def.packed, def.align, &items).ok_or_else(|| {
                refuse("it is too large, or an alignment is not a power of two".to_owned())
            })?;
        let kind = if def.union {
            TypeKind::Union { size: laid.size }
        } else {
            TypeKind::Struct { size: laid.size }
        };
        // Bit-fields without a name only take up space.
        let placed = def.members.into_iter().zip(laid.bit_offsets);
        let placed = placed.map(|(def, bit_offset)| PlacedMember { def, bit_offset });
        let placed = placed
            .filter(|member| member.def.name.is_some() || member.def.bits.is_none())
            .collect();
        let made = self.own.record(def.name, kind, laid.align, placed)?;
        made.ok_or_else(|| TypeError::Definition {
            name,
            problem: "it is defined twice".to_owned(),
        })
    }

    /// Returns the layout item of a member, or the reason why C does not allow it.
    fn item(&self, member: &MemberDef, last: bool) -> Result<Item, String> {
        let name = member.name.as_deref().unwrap_or("an anonymous member");
        let kind = self.kind(member.ty).map_err(|error| error.to_string())?;
        let size = self
            .size_of(member.ty)
            .map_err(|error| format!("{name}: {error}"))?;
        let align = self
            .align_of(member.ty)
            .map_err(|error| format!("{name}: {error}"))?;
        if let Some(bits) = member.bits {
            let width = match kind {
                TypeKind::Int {
                    class: crate::IntClass::Bool,
                    ..
                } => 1,
                TypeKind::Int { size, .. } | TypeKind::Enum { size, .. } => size * 8,
                _ => {
                    return Err(format!(
                        "{name}: a bit-field must be an integer, not {}",
                        self.display(member.ty)
                    ));
                }
            };
            if bits > width {
                return Err(format!(
                    "{name}: {bits} bits do not fit {}, which has {width}",
                    self.display(member.ty)
                ));
            }
            if bits == 0 && member.name.is_some() {
                return Err(format!("{name}: a bit-field of no bits can't have a name"));
            }
        } else if member.name.is_none()
            && !matches!(kind, TypeKind::Struct { .. } | TypeKind::Union { .. })
        {
            return Err(format!(
                "a member of type {} has no name",
                self.display(member.ty)
            ));
        }
        if matches!(kind, TypeKind::Array { count: None, .. }) && !last {
            return Err(format!(
                "{name}: only the last member of a struct can be a flexible array"
            ));
        }
        Ok(Item {
            size,
            align,
            bits: member.bits,
            named: member.name.is_some(),
            at_least: member.align,
        })
    }

    /// Defines an enumeration: four bytes, or eight if a value needs them, as in GCC.
    pub fn define_enum(&mut self, def: EnumDef) -> Result<TypeRef, TypeError> {
        let name = format!("enum {}", def.name.as_deref().unwrap_or("(anonymous)"));
        let values = || def.values.iter().map(|(_, value)| *value);
        let signed = !def.unsigned && values().any(|value| value < 0);
        let fits = |value: i64| {
            if signed {
                i32::try_from(value).is_ok()
            } else {
                u32::try_from(value).is_ok()
            }
        };
        let size = if values().all(fits) { 4 } else { 8 };
        let made = self.own.enumeration(def, TypeKind::Enum { size, signed })?;
        made.ok_or_else(|| TypeError::Definition {
            name,
            problem: "it is defined twice".to_owned(),
        })
    }

    /// Defines another name for a type. Repeating the same definition is allowed, as in C11.
    pub fn define_typedef(&mut self, name: &str, target: TypeRef) -> Result<TypeRef, TypeError> {
        let made = self
            .own
            .name(NameKind::Typedef, name, TypeKind::Typedef { target })?;
        if self.own.get(made)?.kind == (TypeKind::Typedef { target }) {
            return Ok(made);
        }
        Err(TypeError::Definition {
            name: name.to_owned(),
            problem: "it names another type already".to_owned(),
        })
    }

    /// Returns the alignment of a type in bytes. Neither BTF nor most DWARF states it: it is that
    /// of the largest member, or 1 if a member's offset or the size shows that the struct is
    /// packed.
    pub fn align_of(&self, ty: TypeRef) -> Result<u64, TypeError> {
        let mut budget = MAX_VISITED;
        self.align_within(ty, &mut budget, super::MAX_CHAIN)
    }

    fn align_within(
        &self,
        ty: TypeRef,
        budget: &mut usize,
        depth: usize,
    ) -> Result<u64, TypeError> {
        *budget = budget.saturating_sub(1);
        if *budget == 0 || depth == 0 {
            return Err(self.too_deep(ty));
        }
        let ty = self.strip(ty)?;
        let scalar = |size: u32| {
            Ok(u64::from(size)
                .checked_next_power_of_two()
                .unwrap_or(1)
                .clamp(1, 16))
        };
        match self.get(ty)?.kind {
            TypeKind::Int { size, .. }
            | TypeKind::Float { size }
            | TypeKind::Pointer { size, .. }
            | TypeKind::Enum { size, .. } => scalar(size),
            TypeKind::Array { element, .. } => self.align_within(element, budget, depth - 1),
            TypeKind::Struct { size } | TypeKind::Union { size } => {
                if ty.source == SourceId::OWN
                    && let Some(align) = self.own.align(ty)
                {
                    return Ok(align);
                }
                let mut align = 1;
                for member in self.members(ty)? {
                    let own = self.align_within(member.ty, budget, depth - 1)?;
                    if member.bit_size.is_none() && member.bit_offset % (own * 8) != 0 {
                        return Ok(1);
                    }
                    align = align.max(own);
                }
                Ok(if size % align == 0 { align } else { 1 })
            }
            TypeKind::Forward { .. } => Err(TypeError::Incomplete {
                name: self.display(ty),
            }),
            _ => Ok(1),
        }
    }
}

/// Returns an error if two members have one name, which would leave one unreachable.
fn check_names(def: &RecordDef) -> Result<(), String> {
    let mut names: Vec<&str> = def
        .members
        .iter()
        .filter_map(|member| member.name.as_deref())
        .collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two members are named {}", pair[0])),
        None => Ok(()),
    }
}
