//! An entry of DWARF as a type of the common model.

use gimli::{Attribute, AttributeValue, DwAt};

use super::Dwarf;
use super::index::name_kind;
use super::units::{Entry, Slice, Unit, broken};
use crate::error::TypeError;
use crate::model::{IntClass, Param, Qualifier, Tag, Type, TypeKind, TypeRef};

/// Limit on references from an entry to the one that holds its name or type.
const MAX_ORIGINS: usize = 8;
/// Limit on typedefs around the type of an old bit-field or an enumeration.
pub(super) const MAX_TYPEDEFS: usize = 32;
/// Limit on the dimensions of an array.
const MAX_DIMENSIONS: usize = 64;

/// Reads a whole number, as unsigned if its form does not say. GCC writes a negative one in a form
/// that does.
pub(super) fn number(entry: &Entry<'_>, name: DwAt) -> Option<i64> {
    match entry.attr(name).map(Attribute::value)? {
        AttributeValue::Data1(value) => Some(value.into()),
        AttributeValue::Data2(value) => Some(value.into()),
        AttributeValue::Data4(value) => Some(value.into()),
        AttributeValue::Data8(value) | AttributeValue::Udata(value) => Some(value.cast_signed()),
        AttributeValue::Sdata(value) => Some(value),
        _ => None,
    }
}

pub(super) fn flag(entry: &Entry<'_>, name: DwAt) -> bool {
    entry.attr_value(name) == Some(AttributeValue::Flag(true))
}

/// Reads a member's byte offset: a number, or, in DWARF 2, the operation `DW_OP_plus_uconst`
/// (0x23).
pub(super) fn location(entry: &Entry<'_>) -> i64 {
    if let Some(AttributeValue::Exprloc(expression)) =
        entry.attr_value(gimli::DW_AT_data_member_location)
    {
        let bytes = expression.0.slice();
        let digits = bytes.strip_prefix(&[0x23]).unwrap_or_default();
        let leb =
            |value: i64, (index, byte): (usize, &u8)| value | i64::from(byte & 0x7f) << (7 * index);
        return digits.iter().enumerate().take(9).fold(0, leb);
    }
    number(entry, gimli::DW_AT_data_member_location).unwrap_or(0)
}

impl<'data> Dwarf<'data> {
    pub(super) fn text(
        &self,
        unit: &Unit<'data>,
        entry: &Entry<'data>,
        name: DwAt,
    ) -> Option<&'data str> {
        entry
            .attr_value(name)
            .and_then(|value| self.units.text(unit, &value))
    }

    /// Returns the id that a reference leads to.
    fn follow(&self, unit: &Unit<'data>, value: &AttributeValue<Slice<'data>>) -> Option<u32> {
        match *value {
            AttributeValue::UnitRef(offset) => {
                unit.start.checked_add(u32::try_from(offset.0).ok()?)
            }
            AttributeValue::DebugInfoRef(offset) => u32::try_from(offset.0).ok(),
            AttributeValue::DebugTypesRef(signature) => self.units.by_signature(signature.0),
            _ => None,
        }
    }

    /// Returns the type of an entry (`DW_AT_type`); void if it has none.
    pub(super) fn type_of(
        &self,
        unit: &Unit<'data>,
        entry: &Entry<'data>,
    ) -> Result<TypeRef, TypeError> {
        let Some(value) = entry.attr_value(gimli::DW_AT_type) else {
            return Ok(TypeRef::VOID);
        };
        let at = unit.start as usize + entry.offset().0;
        let id = self
            .follow(unit, &value)
            .ok_or_else(|| broken(at, "expected a reference to a type in this file"))?;
        Ok(self.reference(id))
    }

    /// Returns the id of the entry that holds the attributes missing in this one.
    pub(super) fn origin(&self, unit: &Unit<'data>, entry: &Entry<'data>) -> Option<u32> {
        let value = entry.attr_value(gimli::DW_AT_abstract_origin);
        let value = value.or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        self.follow(unit, &value)
    }

    /// Returns an entry's name, from the entry that holds it.
    pub(super) fn name_of(&self, id: u32) -> Result<Option<&'data str>, TypeError> {
        let mut at = id;
        for _ in 0..MAX_ORIGINS {
            let (unit, entry) = self.units.entry(at)?;
            if let Some(name) = self.text(unit, &entry, gimli::DW_AT_name) {
                return Ok(Some(name));
            }
            match self.origin(unit, &entry) {
                Some(origin) => at = origin,
                None => break,
            }
        }
        Ok(None)
    }

    /// Reads the kind of a type from the entry that defines it.
    fn kind(
        &self,
        ty: TypeRef,
        unit: &Unit<'data>,
        entry: &Entry<'data>,
    ) -> Result<TypeKind, TypeError> {
        let target = || self.type_of(unit, entry);
        let qualified = |qualifier| {
            Ok::<_, TypeError>(TypeKind::Qualified {
                qualifier,
                target: target()?,
            })
        };
        let size = number(entry, gimli::DW_AT_byte_size).unwrap_or(0).max(0) as u64;
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type => base(entry, size as u32),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let size = if size == 0 {
                    u32::from(unit.header()?.address_size())
                } else {
                    size as u32
                };
                TypeKind::Pointer {
                    target: target()?,
                    size,
                }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                record(entry, size)
            }
            gimli::DW_TAG_enumeration_type if flag(entry, gimli::DW_AT_declaration) => {
                TypeKind::Forward { tag: Tag::Enum }
            }
            gimli::DW_TAG_enumeration_type => TypeKind::Enum {
                size: size as u32,
                signed: self.enum_is_signed(ty.id, unit, entry)?,
            },
            gimli::DW_TAG_typedef => TypeKind::Typedef { target: target()? },
            gimli::DW_TAG_const_type => qualified(Qualifier::Const)?,
            gimli::DW_TAG_volatile_type => qualified(Qualifier::Volatile)?,
            gimli::DW_TAG_restrict_type => qualified(Qualifier::Restrict)?,
            gimli::DW_TAG_atomic_type => qualified(Qualifier::Atomic)?,
            gimli::DW_TAG_array_type => self.array(ty, target()?)?,
            gimli::DW_TAG_subroutine_type | gimli::DW_TAG_subprogram => self.func(ty.id)?,
            gimli::DW_TAG_unspecified_type => TypeKind::Void,
            tag => {
                return Err(broken(
                    ty.id as usize,
                    format!("expected a type, found {tag}"),
                ));
            }
        })
    }

    pub(super) fn decode(&self, ty: TypeRef) -> Result<Type<'data>, TypeError> {
        let (unit, entry) = self.units.entry(ty.id)?;
        // The definition is in a type unit; this entry only refers to it.
        if let Some(value) = entry.attr_value(gimli::DW_AT_signature) {
            let target = self.follow(unit, &value);
            let target = target
                .ok_or_else(|| broken(ty.id as usize, "expected a signature of a type unit"))?;
            return Ok(Type {
                name: None,
                kind: TypeKind::Typedef {
                    target: self.reference(target),
                },
            });
        }
        let kind = self.kind(ty, unit, &entry)?;
        let named = name_kind(entry.tag()).is_some();
        Ok(Type {
            name: if named { self.name_of(ty.id)? } else { None },
            kind,
        })
    }

    /// Returns true if an enumeration is signed. C's enumerations have a type since DWARF 3;
    /// without one, a negative value decides.
    fn enum_is_signed(
        &self,
        id: u32,
        unit: &Unit<'data>,
        entry: &Entry<'data>,
    ) -> Result<bool, TypeError> {
        let mut at = self.type_of(unit, entry)?;
        for _ in 0..MAX_TYPEDEFS {
            if at.is_void() {
                break;
            }
            let (unit, entry) = self.units.entry(at.id)?;
            if entry.tag() == gimli::DW_TAG_base_type {
                return Ok(matches!(
                    base(&entry, 4),
                    TypeKind::Int { signed: true, .. }
                ));
            }
            at = self.type_of(unit, &entry)?;
        }
        Ok(self
            .decode_enumerators(id)?
            .iter()
            .any(|enumerator| enumerator.value < 0))
    }

    /// Decodes one dimension of an array; DWARF has all of them in one entry.
    fn array(&self, ty: TypeRef, element: TypeRef) -> Result<TypeKind, TypeError> {
        let mut counts = Vec::new();
        self.units.children(ty.id, &mut |_, _, child| {
            if child.tag() == gimli::DW_TAG_subrange_type {
                let last =
                    || number(child, gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1));
                let count = number(child, gimli::DW_AT_count).or_else(last);
                // GCC writes the upper bound -1 of `int x[0]` in 4 or 8 bytes without a sign.
                counts.push(
                    count
                        .filter(|count| *count > 0 && *count != 1 << 32)
                        .map(|count| count as u64),
                );
            }
            Ok(counts.len() < MAX_DIMENSIONS)
        })?;
        let part = usize::from(ty.part);
        let count = counts.get(part).copied().flatten();
        let inner = TypeRef {
            part: ty.part.saturating_add(1),
            ..ty
        };
        Ok(TypeKind::Array {
            element: if part + 1 < counts.len() {
                inner
            } else {
                element
            },
            count,
        })
    }

    fn func(&self, id: u32) -> Result<TypeKind, TypeError> {
        let mut at = id;
        let mut returns = TypeRef::VOID;
        for _ in 0..MAX_ORIGINS {
            let (unit, entry) = self.units.entry(at)?;
            returns = self.type_of(unit, &entry)?;
            match self.origin(unit, &entry) {
                Some(origin) if returns.is_void() => at = origin,
                _ => break,
            }
        }
        let mut variadic = false;
        self.units.children(id, &mut |_, _, child| {
            variadic |= child.tag() == gimli::DW_TAG_unspecified_parameters;
            Ok(!variadic)
        })?;
        Ok(TypeKind::Func { returns, variadic })
    }

    pub(super) fn decode_params(&self, id: u32) -> Result<Vec<Param<'data>>, TypeError> {
        let (unit, entry) = self.units.entry(id)?;
        if !matches!(
            entry.tag(),
            gimli::DW_TAG_subprogram | gimli::DW_TAG_subroutine_type
        ) {
            return Ok(Vec::new());
        }
        let mut params = Vec::new();
        self.units.children(id, &mut |unit, child_id, child| {
            if child.tag() == gimli::DW_TAG_formal_parameter {
                params.push(self.param(unit, child_id, child)?);
            }
            Ok(true)
        })?;
        match self.origin(unit, &entry) {
            Some(origin) if params.is_empty() && origin < id => self.decode_params(origin),
            _ => Ok(params),
        }
    }

    fn param(
        &self,
        unit: &Unit<'data>,
        id: u32,
        entry: &Entry<'data>,
    ) -> Result<Param<'data>, TypeError> {
        let mut ty = self.type_of(unit, entry)?;
        let mut at = self.origin(unit, entry);
        for _ in 0..MAX_ORIGINS {
            let Some(origin) = at.filter(|_| ty.is_void()) else {
                break;
            };
            let (unit, entry) = self.units.entry(origin)?;
            ty = self.type_of(unit, &entry)?;
            at = self.origin(unit, &entry);
        }
        Ok(Param {
            name: self.name_of(id)?,
            ty,
        })
    }
}

fn record(entry: &Entry<'_>, size: u64) -> TypeKind {
    let union = entry.tag() == gimli::DW_TAG_union_type;
    if flag(entry, gimli::DW_AT_declaration) {
        return TypeKind::Forward {
            tag: if union { Tag::Union } else { Tag::Struct },
        };
    }
    if union {
        TypeKind::Union { size }
    } else {
        TypeKind::Struct { size }
    }
}

fn base(entry: &Entry<'_>, size: u32) -> TypeKind {
    let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
        return TypeKind::Int {
            size,
            signed: false,
            class: IntClass::Number,
        };
    };
    let int = |signed, class| TypeKind::Int {
        size,
        signed,
        class,
    };
    match encoding {
        gimli::DW_ATE_float | gimli::DW_ATE_complex_float | gimli::DW_ATE_imaginary_float => {
            TypeKind::Float { size }
        }
        gimli::DW_ATE_signed => int(true, IntClass::Number),
        gimli::DW_ATE_signed_char => int(true, IntClass::Char),
        gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF | gimli::DW_ATE_ASCII => {
            int(false, IntClass::Char)
        }
        gimli::DW_ATE_boolean => int(false, IntClass::Bool),
        _ => int(false, IntClass::Number),
    }
}
