//! The index of a file's unwind table: `.eh_frame_hdr` (Linux Standard Base 5.0, Core, chapter 10.6.2).
//!
//! Only the form that all linkers write is read: version 1; the table's address relative to its own
//! place, a count of 4 bytes, and rows of two addresses relative to the index, 4 bytes each. Other
//! forms state their own sizes, and reading them adds and multiplies numbers from the file.

/// The first bytes of an index in that form.
const PLAIN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Offset of the address of `.eh_frame` in the index.
const FRAMES_AT: usize = 4;
/// Offset of the count of rows in the index.
const COUNT_AT: usize = 8;
/// Length of the part before the rows, in bytes.
const HEAD: usize = 12;
/// Length of a row in bytes: the beginning of a function, and its entry.
const ROW: usize = 8;

/// An index in the form that linkers write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameIndex<'data> {
    bytes: &'data [u8],
    /// Load address of the index, as the file states it.
    address: u64,
}

impl<'data> FrameIndex<'data> {
    /// Returns the index of these bytes, which are loaded at this address; `None` if it has another
    /// form.
    pub fn new(bytes: &'data [u8], address: u64) -> Option<Self> {
        bytes.starts_with(&PLAIN).then_some(Self { bytes, address })
    }

    /// Returns true if it has rows, and all that it counts.
    pub fn is_complete(&self) -> bool {
        (1..=self.room()).contains(&self.count())
    }

    /// Returns the address of `.eh_frame`.
    pub fn frames_address(&self) -> Option<u64> {
        let relative = distance(self.bytes, FRAMES_AT)?;
        Some(
            self.address
                .wrapping_add(FRAMES_AT as u64)
                .wrapping_add_signed(relative),
        )
    }

    /// Returns the address of the entry whose row is the last one that begins at or before this
    /// address.
    pub fn entry_before(&self, address: u64) -> Option<u64> {
        let rows = self.bytes.get(HEAD..)?.as_chunks::<ROW>().0;
        let rows = &rows[..self.count().min(rows.len())];
        let absolute = |row: &[u8], at| Some(self.address.wrapping_add_signed(distance(row, at)?));
        let behind =
            rows.partition_point(|row| absolute(row, 0).is_some_and(|begin| begin <= address));
        absolute(rows.get(behind.checked_sub(1)?)?, ROW / 2)
    }

    fn count(&self) -> usize {
        self.bytes
            .get(COUNT_AT..)
            .and_then(<[u8]>::first_chunk)
            .map_or(0, |count| u32::from_le_bytes(*count) as usize)
    }

    /// Returns the number of rows that the bytes have room for.
    fn room(&self) -> usize {
        self.bytes.len().saturating_sub(HEAD) / ROW
    }
}

/// Writes an index that is loaded at the address of `.eh_frame` itself. A row has the beginning of
/// a function and its entry, both relative to that address.
pub fn write(mut rows: Vec<(i32, i32)>) -> Vec<u8> {
    rows.sort_unstable();
    let mut index = Vec::with_capacity(HEAD + rows.len() * ROW);
    index.extend_from_slice(&PLAIN);
    // The table is `FRAMES_AT` bytes before this field.
    index.extend_from_slice(&(-4_i32).to_le_bytes());
    index.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    for (begin, entry) in rows {
        index.extend_from_slice(&begin.to_le_bytes());
        index.extend_from_slice(&entry.to_le_bytes());
    }
    index
}

/// Reads a signed number of 4 bytes.
fn distance(bytes: &[u8], at: usize) -> Option<i64> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|number| i32::from_le_bytes(*number).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_entries_are_found() {
        let bytes = write(vec![(0x200, 48), (0x100, 24)]);
        let index = FrameIndex::new(&bytes, 0x4000).expect("the form is plain");
        assert!(index.is_complete());
        assert_eq!(index.frames_address(), Some(0x4000));
        assert_eq!(index.entry_before(0x40ff), None);
        assert_eq!(index.entry_before(0x4100), Some(0x4000 + 24));
        assert_eq!(index.entry_before(0x41ff), Some(0x4000 + 24));
        assert_eq!(index.entry_before(u64::MAX), Some(0x4000 + 48));
    }

    #[test]
    fn a_cut_or_foreign_index_is_rejected() {
        let bytes = write(vec![(0x100, 24), (0x200, 48)]);
        assert!(
            !FrameIndex::new(&bytes[..bytes.len() - 1], 0).is_some_and(|index| index.is_complete())
        );
        assert!(!FrameIndex::new(&write(Vec::new()), 0).is_some_and(|index| index.is_complete()));
        assert_eq!(
            FrameIndex::new(&bytes[..4], 0).and_then(|index| index.entry_before(0x100)),
            None
        );
        assert_eq!(FrameIndex::new(&[1, 0x1b, 0x03, 0x3c, 0, 0, 0, 0], 0), None);
    }
}
