//! Walks the notes of a section or a segment (gABI chapter 5, "Note Section").
//!
//! It is our own and not the library's, since a broken note is reported with its place in the file.

use thiserror::Error;

use crate::address::FileOffset;

/// Length of a note's header in bytes: the lengths of name and descriptor, and the type, 4 bytes
/// each.
const HEADER_SIZE: usize = 12;

/// Bytes that hold notes, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct NoteArea<'data> {
    /// Offset of the bytes in the file.
    pub offset: FileOffset,
    /// The bytes themselves.
    pub bytes: &'data [u8],
    /// Alignment that the header states: 8 for `.note.gnu.property`, 4 (or less, meaning 4) for all
    /// else.
    pub align: u64,
}

/// A note that is not interpreted yet.
#[derive(Clone, Copy, Debug)]
pub struct RawNote<'data> {
    /// Offset of its header in the file.
    pub offset: FileOffset,
    /// Owner that defines its meaning, without the NUL at the end.
    pub owner: &'data [u8],
    /// Type, as the owner defines it.
    pub kind: u32,
    /// Contents.
    pub descriptor: &'data [u8],
}

/// A note with impossible lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokenNote {
    /// Offset of its header in the file.
    pub offset: FileOffset,
    /// Fault of the note.
    pub fault: NoteFrameFault,
}

/// Fault of a note's header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum NoteFrameFault {
    /// Fewer than 12 bytes are left for the note's header.
    #[error("its header is cut short: expected 12 bytes, found {left}")]
    Header {
        /// Number of bytes that are left.
        left: usize,
    },
    /// The name or the descriptor is longer than the rest of the notes.
    #[error("it claims to hold {needed:#x} bytes, but {left:#x} are left")]
    Length {
        /// Name and descriptor with their padding, in bytes.
        needed: u64,
        /// Bytes that are left after the header.
        left: usize,
    },
}

impl<'data> NoteArea<'data> {
    /// Returns true if both have a byte of the file in common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let end = |area: &Self| area.offset.0.saturating_add(area.bytes.len() as u64);
        self.offset.0 < end(other) && other.offset.0 < end(self)
    }

    /// Returns the notes in file order. Nothing can be found behind a note with impossible lengths.
    pub fn notes(self) -> impl Iterator<Item = Result<RawNote<'data>, BrokenNote>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
            let offset = FileOffset(self.offset.0.saturating_add(at as u64));
            Some(match self.note(rest, offset) {
                Ok((note, length)) => {
                    at = at.saturating_add(length);
                    Ok(note)
                }
                Err(fault) => {
                    at = self.bytes.len();
                    Err(BrokenNote { offset, fault })
                }
            })
        })
    }

    /// Reads the note at the start of these bytes; returns it with its length including the
    /// padding.
    fn note(
        &self,
        bytes: &'data [u8],
        offset: FileOffset,
    ) -> Result<(RawNote<'data>, usize), NoteFrameFault> {
        let word = |at: usize| {
            let four = bytes.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*four) as usize)
        };
        let (Some(name_size), Some(descriptor_size), Some(kind)) = (word(0), word(4), word(8))
        else {
            return Err(NoteFrameFault::Header { left: bytes.len() });
        };
        let align = if self.align == 8 { 8 } else { 4 };
        let descriptor_at = (HEADER_SIZE + name_size).next_multiple_of(align);
        let owner = bytes.get(HEADER_SIZE..HEADER_SIZE + name_size);
        let descriptor = bytes.get(descriptor_at..descriptor_at + descriptor_size);
        let (Some(owner), Some(descriptor)) = (owner, descriptor) else {
            let needed = (descriptor_at - HEADER_SIZE + descriptor_size) as u64;
            return Err(NoteFrameFault::Length {
                needed,
                left: bytes.len() - HEADER_SIZE,
            });
        };
        let owner = owner.strip_suffix(b"\0").unwrap_or(owner);
        let length = (descriptor_at + descriptor_size).next_multiple_of(align);
        Ok((
            RawNote {
                offset,
                owner,
                kind: kind as u32,
                descriptor,
            },
            length,
        ))
    }
}
