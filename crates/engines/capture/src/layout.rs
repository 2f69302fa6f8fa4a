//! Layouts of both streams' payloads. Writers and readers use them; all numbers are little-endian.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Head of a chunk.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ChunkHead {
    pub(crate) kind: U32,
    /// Bytes of the payload.
    pub(crate) length: U32,
}

/// Beginning of a part of the trace file's header.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeadPart {
    /// Bytes of the trace file.
    pub(crate) file_len: U64,
    /// Offset of the part in the trace file.
    pub(crate) at: U64,
}

/// Beginning of a changed part of the trace file.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Section {
    /// Offset of the part in the trace file.
    pub(crate) at: U64,
}

/// Beginning of a run of slots.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) lcore: U64,
    /// Number of the first slot since the ring's beginning.
    pub(crate) seq: U64,
    /// Slots lost before it.
    pub(crate) lost: U64,
}

/// Time of a poll, or of the beginning of the kernel's events.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Time {
    pub(crate) nanos: U64,
}

/// Reading of both clocks.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Reading {
    pub(crate) ticks: U64,
    pub(crate) nanos: U64,
    pub(crate) bracket: U64,
}

/// Event of the kernel.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) at: U64,
    pub(crate) detail: U64,
    pub(crate) cpu: U32,
    pub(crate) kind: U32,
    pub(crate) tid: U32,
    pub(crate) other: U32,
}

/// Name of a thread.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ThreadName {
    pub(crate) since: U64,
    pub(crate) tid: U32,
    pub(crate) unused: U32,
    pub(crate) name: [u8; 16],
}

/// Bytes of an entry of the kernel's stream.
pub(crate) const ENTRY: usize = size_of::<Event>();

// A reader splits chunks of both into entries of one size.
const _: () = assert!(size_of::<ThreadName>() == ENTRY);
