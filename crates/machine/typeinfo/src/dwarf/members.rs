//! Members of structs and values of enumerations.

use super::Dwarf;
use super::index::name_kind;
use super::units::{Entry, Unit, broken};
use crate::dwarf::decode::{MAX_TYPEDEFS, flag, location, number};
use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, TypeRef};

impl<'data> Dwarf<'data> {
    pub(super) fn decode_members(&self, id: u32) -> Result<Vec<Member<'data>>, TypeError> {
        let (_, entry) = self.units.entry(id)?;
        if !matches!(
            name_kind(entry.tag()),
            Some(NameKind::Struct | NameKind::Union)
        ) {
            return Ok(Vec::new());
        }
        let mut members = Vec::new();
        self.units.children(id, &mut |unit, _, child| {
            // The members of a C++ base are reached like those of an anonymous struct.
            let member = matches!(
                child.tag(),
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance
            );
            let fixed = flag(child, gimli::DW_AT_external) || flag(child, gimli::DW_AT_declaration);
            if member && !fixed {
                members.push(self.member(unit, child)?);
            }
            Ok(true)
        })?;
        Ok(members)
    }

    fn member(&self, unit: &Unit<'data>, entry: &Entry<'data>) -> Result<Member<'data>, TypeError> {
        let ty = self.type_of(unit, entry)?;
        let bits = number(entry, gimli::DW_AT_bit_size)
            .and_then(|bits| u32::try_from(bits).ok())
            .filter(|b| *b > 0);
        let bytes = location(entry).wrapping_mul(8);
        let offset = match bits {
            None => bytes,
            Some(bits) => match number(entry, gimli::DW_AT_data_bit_offset) {
                Some(offset) => offset,
                None => bytes.wrapping_add(self.old_bit_offset(ty, entry, bits)?),
            },
        };
        let bit_offset = u64::try_from(offset);
        let at = unit.start as usize + entry.offset().0;
        let bit_offset =
            bit_offset.map_err(|_| broken(at, "expected a member within its struct"))?;
        Ok(Member {
            name: self.text(unit, entry, gimli::DW_AT_name),
            ty,
            bit_offset,
            bit_size: bits,
        })
    }

    /// Converts the bit offset of DWARF 2 and 3, which counts from the most significant bit of the
    /// bit-field's unit (DWARF 4, 5.5.6).
    fn old_bit_offset(
        &self,
        ty: TypeRef,
        entry: &Entry<'data>,
        bits: u32,
    ) -> Result<i64, TypeError> {
        let Some(from_top) = number(entry, gimli::DW_AT_bit_offset) else {
            return Ok(0);
        };
        let mut size = number(entry, gimli::DW_AT_byte_size);
        let mut at = ty;
        for _ in 0..MAX_TYPEDEFS {
            if size.is_some() || at.is_void() {
                break;
            }
            let (unit, entry) = self.units.entry(at.id)?;
            size = number(&entry, gimli::DW_AT_byte_size);
            at = self.type_of(unit, &entry)?;
        }
        let unit = size.unwrap_or(0).wrapping_mul(8);
        Ok(unit.wrapping_sub(from_top).wrapping_sub(i64::from(bits)))
    }

    pub(super) fn decode_enumerators(&self, id: u32) -> Result<Vec<Enumerator<'data>>, TypeError> {
        let mut values = Vec::new();
        self.units.children(id, &mut |unit, _, child| {
            if child.tag() == gimli::DW_TAG_enumerator
                && let Some(name) = self.text(unit, child, gimli::DW_AT_name)
            {
                let value = number(child, gimli::DW_AT_const_value).unwrap_or(0);
                values.push(Enumerator { name, value });
            }
            Ok(true)
        })?;
        Ok(values)
    }
}
