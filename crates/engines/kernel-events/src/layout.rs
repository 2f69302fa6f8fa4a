//! Layout of the ring and of the maps: programs take offsets from these structures, readers get the
//! structures themselves.

use bpf_insn::{MapDef, MapKind};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use bpf_program::bytes_of;
pub(crate) use bpf_program::event::RING;
use sched_programs::Comm;

/// Head of each event in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    /// Time, in nanoseconds of `CLOCK_BOOTTIME`.
    pub(crate) at: u64,
    /// CPU that sent the event.
    pub(crate) cpu: u32,
    /// Kind: one of [`kind`].
    pub(crate) kind: u32,
}

/// Event of a thread. The kind's comment lists the fields that it uses; others are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Event {
    /// Time, CPU and kind.
    pub(crate) head: Head,
    /// Detail, depending on the kind.
    pub(crate) detail: u64,
    /// Thread of the event.
    pub(crate) tid: u32,
    /// Second detail, depending on the kind.
    pub(crate) other: u32,
    /// Name of the thread `other`, if that is a thread.
    pub(crate) comm: Comm,
}

/// Event that reports the loss of its CPU, of the kind [`kind::LOST`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LostEvent {
    /// Time, CPU and kind.
    pub(crate) head: Head,
    /// Loss of the CPU.
    pub(crate) lost: LossRecord,
}

/// Kinds of events.
pub(crate) mod kind {
    /// `tid` leaves the CPU because of `detail` (one of [`super::leaves`]), and the thread `other`
    /// comes.
    pub(crate) const SWITCH: u32 = 1;
    /// `tid` is woken for the CPU in the lower half of `detail`, by `other`: a thread, or the number
    /// of an interrupt. The upper half has the kind of waker: one of [`super::other`], or that of
    /// the interrupt's begin.
    pub(crate) const WAKE: u32 = 2;
    /// `tid` is given to the CPU in the lower half of `detail`. If the upper half is
    /// [`super::other::THREAD`], `other` has the CPU for which it waited.
    pub(crate) const MIGRATE: u32 = 3;
    /// `tid` enters the system call `detail`.
    pub(crate) const CALL_ENTER: u32 = 4;
    /// `tid` returns from a system call, with `detail`.
    pub(crate) const CALL_EXIT: u32 = 5;
    /// Events of this CPU were lost: a [`super::LostEvent`].
    pub(crate) const LOST: u32 = 6;
    /// `tid` did one thing all the time, in `detail`: one of [`super::leaves`], or [`super::RUNS`].
    /// No program sends this kind.
    pub(crate) const FOUND: u32 = 7;
    /// A signal that stops, `detail`, is sent to `tid` by the thread `other`; 0 is the kernel.
    pub(crate) const STOP_SIGNAL: u32 = 16;
    /// `tid` begins its life: woken as by [`WAKE`], by the thread that starts it. It has the name of
    /// that thread.
    pub(crate) const START: u32 = 17;
    /// `tid` is interrupted by the device interrupt `detail`. The end of an interrupt has the next
    /// number.
    pub(crate) const HARD: u32 = 8;
    /// `tid` is interrupted by the soft interrupt `detail`.
    pub(crate) const SOFT: u32 = 10;
    /// `tid` is interrupted by the tick.
    pub(crate) const TICK: u32 = 12;
    /// `tid` is interrupted by another CPU's call.
    pub(crate) const CALL: u32 = 14;
}

/// Kinds of the other side of an event that are no interrupts.
pub(crate) mod other {
    /// Unknown.
    pub(crate) const UNKNOWN: u32 = 0;
    /// Thread, outside of interrupts if it wakes another. No interrupt has this kind.
    pub(crate) const THREAD: u32 = 1;
}

/// Number of the bits of an event's `detail` below the kind of its other side.
pub(crate) const OTHER_SHIFT: i32 = 32;

/// Other side of an event: the cause of a wake-up, or the thread that has a CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Other {
    /// Kind: one of [`other`], or the kind of the interrupt's begin.
    pub(crate) kind: u32,
    /// Thread, or number of the interrupt.
    pub(crate) number: u32,
    /// Name of the thread.
    pub(crate) comm: Comm,
}

/// Interrupts that a CPU is in. Those of devices and the processor's own do not interrupt one
/// another, nor do soft ones.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Interrupts {
    /// Kind of the begin of the interrupt of a device or of the processor's own; 0 if there is
    /// none.
    pub(crate) hard: u32,
    /// Number of that interrupt.
    pub(crate) hard_number: u32,
    /// Kind of the begin of the soft interrupt; 0 if there is none.
    pub(crate) soft: u32,
    /// Number of that interrupt.
    pub(crate) soft_number: u32,
    /// Thread that it interrupted, or that runs it. With `PREEMPT_RT`, another one may run
    /// meanwhile.
    pub(crate) soft_thread: u32,
}

/// Reasons why a thread leaves a CPU.
pub(crate) mod leaves {
    pub(crate) const PREEMPTED: u32 = 0;
    pub(crate) const BLOCKED: u32 = 1;
    pub(crate) const STOPPED: u32 = 2;
    pub(crate) const ENDED: u32 = 3;
}

/// Value in place of one of [`leaves`]: the thread did not leave.
pub(crate) const RUNS: u32 = u32::MAX;

/// Loss of one CPU: events that did not fit into the ring.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(crate) struct LossRecord {
    /// Number of unreported events.
    pub(crate) count: u64,
    /// Time of the first of them.
    pub(crate) since: u64,
}

/// Name of the map with a [`LossRecord`] for each CPU.
pub(crate) const LOST: &str = "lost";
/// Name of the map from CPU to the number of our threads that wait for it, a `u64`.
pub(crate) const QUEUES: &str = "queues";
/// Name of the map from CPU to the thread that has it, an [`Other`]; unknown before the first switch.
pub(crate) const HOLDERS: &str = "holders";
/// Name of the map from each of our threads to the CPU for which it waits plus 1, or 0; a `u64`.
pub(crate) const WAITING: &str = "waiting";
/// Name of the map from thread of the process to the [`Other`] that is about to wake it.
pub(crate) const WAKERS: &str = "wakers";
/// Name of the map with the [`Interrupts`] of each CPU.
pub(crate) const INTERRUPTS: &str = "interrupts";

/// Limit on threads in a map. For threads beyond it, the thread that ran while they waited is
/// unknown, and so is their waker.
const THREADS: u32 = 16_384;

/// Returns the maps, for a ring of `ring_bytes` bytes (a power of two, and a multiple of the page
/// size) and `cpus` CPUs.
pub(crate) fn maps(ring_bytes: u32, cpus: u32) -> Vec<MapDef> {
    vec![
        MapDef::ring_buffer(RING, ring_bytes),
        MapDef::new(
            LOST,
            MapKind::PercpuArray,
            4,
            bytes_of!(LossRecord).cast_unsigned().into(),
            1,
        ),
        MapDef::new(QUEUES, MapKind::Array, 4, 8, cpus),
        MapDef::new(
            HOLDERS,
            MapKind::Array,
            4,
            bytes_of!(Other).cast_unsigned().into(),
            cpus,
        ),
        MapDef::new(WAITING, MapKind::Hash, 4, 8, THREADS),
        MapDef::new(
            WAKERS,
            MapKind::Hash,
            4,
            bytes_of!(Other).cast_unsigned().into(),
            THREADS,
        ),
        MapDef::new(
            INTERRUPTS,
            MapKind::PercpuArray,
            4,
            bytes_of!(Interrupts).cast_unsigned().into(),
            1,
        ),
    ]
}
