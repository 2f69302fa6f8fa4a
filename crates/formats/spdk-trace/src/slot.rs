//! One slot of a ring: 32 bytes, the same in every era.
//!
//! Source: `struct spdk_trace_entry` and `struct spdk_trace_entry_buffer`, include/spdk/trace.h.

use crate::tpoint::{CONTINUATION_BYTES, INLINE_ARG_BYTES};
use crate::units::{FileOffset, Ticks};

/// Bytes of a slot.
pub(crate) const SLOT_SIZE: usize = 32;

/// Where the slot `index` of the ring at `ring` stands. A ring may be said to be larger than any file: then it is
/// nowhere, behind all files.
pub(crate) fn place(ring: FileOffset, index: u64) -> FileOffset {
    FileOffset(ring.0.saturating_add(index.saturating_mul(SLOT_SIZE as u64)))
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

    /// 0 if the slot was never written.
    #[inline]
    pub(crate) fn tsc(self) -> Ticks {
        Ticks(u64::from_le_bytes(self.array(0)))
    }

    #[inline]
    pub(crate) fn tpoint_id(self) -> u16 {
        u16::from_le_bytes(self.array(8))
    }

    /// The poller's id in the old eras.
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

    /// The first bytes of a record's arguments.
    #[inline]
    pub(crate) fn inline_args(self) -> &'a [u8] {
        &self.0[24..24 + INLINE_ARG_BYTES]
    }

    /// A continuation's bytes.
    #[inline]
    pub(crate) fn continued_args(self) -> &'a [u8] {
        &self.0[10..10 + CONTINUATION_BYTES]
    }
}

/// A run of slots.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a>(&'a [[u8; SLOT_SIZE]]);

impl<'a> Slots<'a> {
    /// The whole slots in `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

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
