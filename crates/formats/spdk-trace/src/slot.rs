//! One slot of a ring: 32 bytes, the same in every era.
//!
//! Source: `struct spdk_trace_entry` and `struct spdk_trace_entry_buffer`, include/spdk/trace.h.

use crate::tpoint::{CONTINUATION_BYTES, INLINE_ARG_BYTES};
use crate::units::{FileOffset, Ticks};

/// Size of a slot, in bytes.
pub(crate) const SLOT_SIZE: usize = 32;

/// Returns the offset of slot `index` of the ring at `ring`. If the claimed ring is too large for
/// any file, the offset saturates and lies outside every file.
pub(crate) fn place(ring: FileOffset, index: u64) -> FileOffset {
    FileOffset(
        ring.0
            .saturating_add(index.saturating_mul(SLOT_SIZE as u64)),
    )
}

/// A slot: a record, or the continuation of one.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a>(&'a [u8; SLOT_SIZE]);

impl<'a> Slot<'a> {
    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[offset..offset + N]);
        bytes
    }

    /// Returns the time; 0 if the slot was never written.
    #[inline]
    pub(crate) fn tsc(self) -> Ticks {
        Ticks(u64::from_le_bytes(self.array(0)))
    }

    #[inline]
    pub(crate) fn tpoint_id(self) -> u16 {
        u16::from_le_bytes(self.array(8))
    }

    /// Returns the owner's id, or the poller's in the old eras.
    #[inline]
    pub(crate) fn owner_id(self) -> u16 {
        u16::from_le_bytes(self.array(10))
    }

    #[inline]
    pub(crate) fn size(self) -> u32 {
        u32::from_le_bytes(self.array(12))
    }

    #[inline]
    pub(crate) fn object_id(self) -> u64 {
        u64::from_le_bytes(self.array(16))
    }

    /// Returns the first bytes of a record's arguments.
    #[inline]
    pub(crate) fn inline_args(self) -> &'a [u8] {
        &self.0[24..24 + INLINE_ARG_BYTES]
    }

    /// Returns the argument bytes of a continuation.
    #[inline]
    pub(crate) fn continued_args(self) -> &'a [u8] {
        &self.0[10..10 + CONTINUATION_BYTES]
    }
}

/// Consecutive slots.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a>(&'a [[u8; SLOT_SIZE]]);

impl<'a> Slots<'a> {
    /// Returns the complete slots in `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the slot at `index`.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub(crate) fn at(self, index: usize) -> Slot<'a> {
        Slot(&self.0[index])
    }

    #[inline]
    pub(crate) fn get(self, index: usize) -> Option<Slot<'a>> {
        self.0.get(index).map(Slot)
    }
}
