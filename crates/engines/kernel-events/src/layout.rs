//! What lies in the ring and in the maps: programs take offsets from these structures, readers get the structures
//! themselves.

use bpf_insn::{MapDef, MapKind};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use bpf_program::bytes_of;
pub(crate) use bpf_program::event::RING;
use sched_programs::Comm;

/// The beginning of each event in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub(crate) at: u64,
    /// The CPU on which it was sent.
    pub(crate) cpu: u32,
    /// Kind: one of [`kind`].
    pub(crate) kind: u32,
}

/// An event of a thread. Which fields a kind uses is said at the kind; others are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Event {
    /// Time, CPU and kind.
    pub(crate) head: Head,
    /// Detail, by its kind.
    pub(crate) detail: u64,
    /// Thread of the event.
    pub(crate) tid: u32,
    /// Detail, by its kind.
    pub(crate) other: u32,
    /// The name of the thread `other`, where that is one.
    pub(crate) comm: Comm,
}

/// The event that reports what its CPU lost: it is of the kind [`kind::LOST`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LostEvent {
    /// Time, CPU and kind.
    pub(crate) head: Head,
    /// The loss.
    pub(crate) lost: Lost,
}

/// The kinds of events.
pub(crate) mod kind {
    /// `tid` leaves the CPU because of `detail` (one of [`super::leaves`]), and the thread `other` comes.
    pub(crate) const SWITCH: u32 = 1;
    /// `tid` is woken by the thread `other`, for the CPU `detail`.
    pub(crate) const WAKE: u32 = 2;
    /// `tid` is given to the CPU `detail`.
    pub(crate) const MIGRATE: u32 = 3;
    /// `tid` enters the system call `detail`.
    pub(crate) const CALL_ENTER: u32 = 4;
    /// `tid` returns from a system call, with `detail`.
    pub(crate) const CALL_EXIT: u32 = 5;
    /// Events of this CPU were lost: a [`super::LostEvent`].
    pub(crate) const LOST: u32 = 6;
    /// `tid` did all the time what `detail` says: one of [`super::leaves`], or [`super::RUNS`]. No program sends it.
    pub(crate) const FOUND: u32 = 7;
    /// `tid` is interrupted by the device interrupt `detail`. The end of an interrupt is the next number.
    pub(crate) const HARD: u32 = 8;
    /// `tid` is interrupted by the soft interrupt `detail`.
    pub(crate) const SOFT: u32 = 10;
    /// `tid` is interrupted by the tick.
    pub(crate) const TICK: u32 = 12;
    /// `tid` is interrupted by another CPU's call.
    pub(crate) const CALL: u32 = 14;
}

/// Reasons for which a thread leaves a CPU.
pub(crate) mod leaves {
    pub(crate) const PREEMPTED: u32 = 0;
    pub(crate) const BLOCKED: u32 = 1;
    pub(crate) const STOPPED: u32 = 2;
    pub(crate) const ENDED: u32 = 3;
}

/// In place of one of these: it did not leave.
pub(crate) const RUNS: u32 = u32::MAX;

/// Loss of one CPU: events that did not fit into the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Lost {
    /// Number of events that are not reported yet.
    pub(crate) count: u64,
    /// Time of the first of these.
    pub(crate) since: u64,
}

/// A [`Lost`] for each CPU.
pub(crate) const LOST: &str = "lost";
/// Map by CPU: number of threads of the process that wait for it, a `u64`.
pub(crate) const QUEUES: &str = "queues";
/// Map by thread of the process: the CPU for which it waits, plus 1; or 0. A `u64`.
pub(crate) const WAITING: &str = "waiting";

/// Threads for which there is room. For those beyond it is not known who ran while they waited.
const THREADS: u32 = 16_384;

/// Returns the maps, for a ring of that many bytes (a power of two, and a multiple of the page size) and that many
/// CPUs.
pub(crate) fn maps(ring_bytes: u32, cpus: u32) -> Vec<MapDef> {
    vec![
        MapDef::ring_buffer(RING, ring_bytes),
        MapDef::new(LOST, MapKind::PercpuArray, 4, bytes_of!(Lost).cast_unsigned().into(), 1),
        MapDef::new(QUEUES, MapKind::Array, 4, 8, cpus),
        MapDef::new(WAITING, MapKind::Hash, 4, 8, THREADS),
    ]
}
