//! Keys of the maps of preemptors, interrupts and upcalls.

use sched_programs::Comm;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Key of a task that ran while a thread waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PreemptorKey {
    /// Number of the thread that waited.
    pub waiter: u64,
    /// Process that ran.
    pub tgid: u32,
    /// Parent of that process.
    pub parent: u32,
    /// Name of the task that ran.
    pub comm: Comm,
    /// Address of the function of its work, if it is a kernel worker; otherwise 0.
    pub function: u64,
}

/// Key of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterruptKey {
    /// Number of the thread.
    pub tid: u32,
    /// Number of the interrupt, with [`SOFT_INTERRUPT`] or [`VECTOR_INTERRUPT`] if it is not a
    /// device's.
    pub number: u32,
}

/// Bit that marks the number of a soft interrupt.
pub const SOFT_INTERRUPT: u32 = 1 << 30;

/// Bit that marks the number of one of the processor's own interrupts.
pub const VECTOR_INTERRUPT: u32 = 1 << 29;

/// Key of upcalls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UpcallKey {
    /// Number of the CPU.
    pub cpu: u32,
    /// Error as a positive number; 0 for no error.
    pub error: u32,
}
