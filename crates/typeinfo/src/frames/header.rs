//! The index of an unwind table (`.eh_frame_hdr`; Linux Standard Base 5.0, chapter 10.6.2).

use gimli::BaseAddresses;

use super::{FrameSection, entry_at};
use crate::error::FrameFault;

/// Version 1; the table's address relative to its own place, a count of 4 bytes, and rows of two addresses relative to the
/// section, 4 bytes each. All linkers write this.
const PLAIN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// The length of what is before the rows.
const HEAD: usize = 12;
/// The length of a row: where a function begins, and where its entry is.
const ROW: usize = 8;

/// Whether an index is as linkers write it, and has all its rows.
pub(super) fn is_plain(index: &[u8]) -> bool {
    let count = index.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |count| u32::from_le_bytes(*count));
    let rows = index.len().saturating_sub(HEAD) / ROW;
    index.starts_with(&PLAIN) && count > 0 && count as usize <= rows
}

/// An index of all entries, to be thought at the table's own address.
pub(super) fn make(frames: &FrameSection<&[u8]>, bases: &BaseAddresses) -> Result<Vec<u8>, FrameFault> {
    let mut rows: Vec<(i32, i32)> = Vec::new();
    let mut offset = 0;
    while let Some((length, id)) = super::lengths(frames.data, offset)? {
        // An entry without a length is the end of what one object file brought along.
        if length > 0 && id != 0 {
            rows.extend(entry_at(frames.data, bases, offset)?.and_then(|(entry, _)| {
                let begin = entry.initial_address().wrapping_sub(frames.address).cast_signed();
                Some((i32::try_from(begin).ok()?, i32::try_from(offset).ok()?))
            }));
        }
        offset = offset.saturating_add(4).saturating_add(length as usize);
    }
    rows.sort_unstable();
    let mut index = Vec::with_capacity(HEAD + rows.len() * ROW);
    index.extend_from_slice(&PLAIN);
    // The table is 4 bytes before this field.
    index.extend_from_slice(&(-4_i32).to_le_bytes());
    index.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    for (begin, entry) in rows {
        index.extend_from_slice(&begin.to_le_bytes());
        index.extend_from_slice(&entry.to_le_bytes());
    }
    Ok(index)
}
