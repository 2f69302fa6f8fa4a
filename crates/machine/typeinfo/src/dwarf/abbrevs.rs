//! Tables of abbreviations, held to bounds before they are read (DWARF 5 standard, section 7.5.3).

use gimli::Reader;

/// Limit on the attributes of an abbreviation. An entry of one byte has all the attributes of its
/// abbreviation, and those may take no bytes. Compilers write some 20.
pub(crate) const MAX_ATTRIBUTES: usize = 256;

/// Returns the length of a table in bytes, from the reader's position to its end. `None` if it is
/// broken, or one of its abbreviations has too many attributes.
pub(crate) fn length<R: Reader<Offset = usize>>(mut table: R) -> Option<usize> {
    let before = table.len();
    loop {
        if table.is_empty() || table.read_uleb128().ok()? == 0 {
            return Some(before - table.len());
        }
        table.read_uleb128().ok()?;
        table.read_u8().ok()?;
        let mut attributes = 0;
        loop {
            let (name, form) = (table.read_uleb128().ok()?, table.read_uleb128().ok()?);
            if name == 0 && form == 0 {
                break;
            }
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                table.skip_leb128().ok()?;
            }
            attributes += 1;
            if attributes > MAX_ATTRIBUTES {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, LittleEndian};

    use super::*;

    #[test]
    fn tables_end_and_attributes_are_counted() {
        let check = |table: &[u8], wanted| {
            assert_eq!(
                length(EndianSlice::new(table, LittleEndian)),
                wanted,
                "{table:?}"
            );
        };
        check(&[], Some(0));
        check(&[0, 9], Some(1));
        // An abbreviation with a constant (`DW_FORM_implicit_const`) and a string.
        check(
            &[1, 0x11, 1, 3, 8, 0x3b, 0x21, 0x80, 1, 0, 0, 0, 7],
            Some(12),
        );
        check(&[1, 0x11, 1, 3], None);
        let many = |count| [&[1, 0x11, 1][..], &[3, 0x19].repeat(count), &[0, 0, 0]].concat();
        check(&many(MAX_ATTRIBUTES), Some(6 + 2 * MAX_ATTRIBUTES));
        check(&many(MAX_ATTRIBUTES + 1), None);
    }
}
