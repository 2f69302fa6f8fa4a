//! Log of the places of a CPU.

use sched_programs::Comm;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of entries in a CPU's log: a power of two. More entries cover longer waits but make
/// loading slower: the verifier walks them all, 10 ms for each hundred.
pub const LOG_LENGTH: usize = 128;

/// Log of the tasks that ran on a CPU lately. Only programs read it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Log {
    /// Number of entries ever written.
    pub(crate) head: u64,
    /// Kernel worker that last began some work here.
    pub(crate) worker: u64,
    /// Function of that work; 0 if it is done.
    pub(crate) function: u64,
    /// Ring of entries; the oldest is overwritten.
    pub(crate) entries: [LogEntry; LOG_LENGTH],
}

/// Task that ran.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LogEntry {
    /// Time until which it ran.
    pub(crate) end: u64,
    /// Process of the task.
    pub(crate) tgid: u32,
    /// Parent of the process.
    pub(crate) parent: u32,
    /// Name of the task.
    pub(crate) comm: Comm,
    /// Function of its work, if it is a kernel worker; otherwise 0.
    pub(crate) function: u64,
    /// Padding to a power of two.
    pub(crate) pad: [u64; 3],
}

/// Maximum number of threads that wait for a CPU and have their wait attributed at each switch.
/// More make each switch costlier: 0.1 us for each thread that waits.
pub(crate) const PLACES_OF_CPU: usize = 8;

/// Threads that wait for a CPU. Only programs read it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Places {
    /// Place for each waiting thread.
    pub(crate) places: [Place; PLACES_OF_CPU],
}

/// Thread that waits for a CPU.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Place {
    /// Number of the thread; 0 if the place is free.
    pub(crate) tid: u64,
    /// Time from which its wait is not attributed yet; 0 while the place is being taken.
    pub(crate) from: u64,
    /// Time at which it was moved to another CPU; 0 if it was not moved.
    pub(crate) until: u64,
}
