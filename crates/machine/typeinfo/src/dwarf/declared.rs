//! Detects mentions of a name that only declare it (`struct x;`) from the bytes before the name,
//! without reading the unit.
//!
//! Each unit that includes a public header declares its structs, and one unit in hundreds defines
//! them. An entry begins with its abbreviation number (DWARF 5, 7.5.2), and compilers put the name
//! first, so the number ends where the name begins.

use gimli::{DwTag, Reader};

/// Limit on abbreviation numbers; no compiler uses larger ones.
const MAX_CODE: u64 = 1 << 14;
/// Flag: the name is the first attribute.
const NAME_FIRST: u8 = 1;
/// Flag: the entry is a type that is only declared.
const DECLARED: u8 = 2;

/// Flags of a unit's abbreviations, by their numbers.
#[derive(Debug, Default)]
pub(super) struct AbbrevFlags {
    codes: Vec<u8>,
}

impl AbbrevFlags {
    /// Reads a table of abbreviations (DWARF 5, 7.5.3). Nothing is known if it is broken, or if a
    /// type's name is not always first.
    pub(super) fn read<R: Reader<Offset = usize>>(table: R) -> Self {
        Self {
            codes: codes(table).unwrap_or_default(),
        }
    }

    /// Returns true if the name behind these bytes certainly belongs to a type that is only
    /// declared.
    pub(super) fn ends_with_declaration(&self, before: &[u8]) -> bool {
        let mut is_declared = false;
        // A number of one byte may be the end of a longer one: both are checked.
        let mut code = 0_u64;
        for (at, byte) in before.iter().rev().take(3).enumerate() {
            if (at == 0) != (byte & 0x80 == 0) {
                break;
            }
            code = code << 7 | u64::from(byte & 0x7f);
            let flags = usize::try_from(code)
                .ok()
                .and_then(|code| self.codes.get(code))
                .copied()
                .unwrap_or(0);
            if flags == NAME_FIRST {
                return false;
            }
            is_declared |= flags & DECLARED != 0;
        }
        // At the beginning of a block, a longer number may be cut.
        is_declared && before.len() > 3
    }
}

fn is_type(tag: u64) -> bool {
    let tag = u16::try_from(tag).map_or(DwTag(0), DwTag);
    matches!(
        tag,
        gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
    )
}

fn codes<R: Reader<Offset = usize>>(mut table: R) -> Option<Vec<u8>> {
    let mut codes = Vec::new();
    loop {
        let code = if table.is_empty() {
            0
        } else {
            table.read_uleb128().ok()?
        };
        if code == 0 {
            return Some(codes);
        }
        if code > MAX_CODE {
            return None;
        }
        let is_type = is_type(table.read_uleb128().ok()?);
        table.read_u8().ok()?;
        let (mut place, mut name, mut is_declared) = (0, None, false);
        loop {
            let (attribute, form) = (table.read_uleb128().ok()?, table.read_uleb128().ok()?);
            if attribute == 0 && form == 0 {
                break;
            }
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                table.skip_leb128().ok()?;
            }
            if attribute == u64::from(gimli::DW_AT_name.0) {
                name = Some(place);
            }
            is_declared |= attribute == u64::from(gimli::DW_AT_declaration.0);
            place += 1;
        }
        if is_type && name.is_some_and(|name| name > 0) {
            return None;
        }
        let code = usize::try_from(code).ok()?;
        if codes.len() <= code {
            codes.resize(code + 1, 0);
        }
        codes[code] = match name {
            Some(0) if is_type && is_declared => NAME_FIRST | DECLARED,
            Some(0) => NAME_FIRST,
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, LittleEndian};

    use super::*;

    /// Abbreviations of a defined struct (1), a declared one (2), a base type (3) and a lexical
    /// block (0x102), each with its children flag and attributes.
    const TABLE: &[u8] = &[
        1, 0x13, 1, 3, 0x0e, 0x0b, 0x0b, 0, 0, 2, 0x13, 0, 3, 0x0e, 0x3c, 0x19, 0, 0, 3, 0x24, 0,
        0x0b, 0x0b, 3, 8, 0, 0, 0x82, 2, 0x0b, 0, 3, 0x0e, 0, 0, 0,
    ];

    fn declared(table: &[u8]) -> AbbrevFlags {
        AbbrevFlags::read(EndianSlice::new(table, LittleEndian))
    }

    #[test]
    fn a_declaration_is_known_by_the_number_before_the_name() {
        let known = declared(TABLE);
        assert!(known.ends_with_declaration(&[0, 0, 0, 2]));
        assert!(!known.ends_with_declaration(&[0, 0, 0, 1]));
        // 3 has its name elsewhere, 4 does not exist, and 0x82 2 may be one number or two.
        assert!(
            !known.ends_with_declaration(&[0, 0, 0, 3])
                && !known.ends_with_declaration(&[0, 0, 0, 4])
        );
        assert!(!known.ends_with_declaration(&[0, 0, 0x82, 2]));
        assert!(
            known.ends_with_declaration(&[0, 0, 0x83, 2]),
            "0x103 is nothing"
        );
        assert!(
            !known.ends_with_declaration(&[2]),
            "the beginning may be cut"
        );
        assert!(!known.ends_with_declaration(&[]));
    }

    #[test]
    fn other_tables_are_unknown() {
        // A struct whose name is its second attribute, as Clang writes C++'s.
        let other = [&[4, 0x13, 1, 0x36, 0x0b, 3, 0x0e, 0, 0][..], TABLE].concat();
        assert!(!declared(&other).ends_with_declaration(&[0, 0, 0, 2]));
        for length in 1..TABLE.len() - 1 {
            let _ = declared(&TABLE[..length]).ends_with_declaration(&[0, 0, 0, 2]);
        }
        assert!(!declared(&[]).ends_with_declaration(&[0, 0, 0, 2]));
    }
}
