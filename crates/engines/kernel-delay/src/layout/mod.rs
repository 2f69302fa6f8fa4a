//! What the maps and the ring hold, each structure written once: programs take a field's offset from here (`offset!`),
//! and readers get the structure itself ([`read_key`], [`read_value`]).
//!
//! Numbers are in the machine's own byte order, which is the programs' too. There is no padding (deriving `IntoBytes` would
//! not compile), so each field lies at a multiple of its size, as atomic instructions want it.
//!
//! | module | holds |
//! |---|---|
//! | here | the maps' keys and values |
//! | `event` | the ring's events |
//! | `maps` | the maps' names and sizes |
//! | `bucket` | offsets in a thread's value that are in that value |

mod bucket;
mod event;
mod maps;

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use bpf_program::wire::{WrongSize, read_key, read_value};
pub use bucket::{Bucket, entry_of, slot_of};
pub use event::{
    EventHead, KernelStack, MOST_COPIED, REGISTER_COUNT, STACK_DEPTH, STACK_PIECE, StackEvent, stack_event_size,
};
pub use maps::{COUNTS, INTERRUPTS, LOG, PREEMPTORS, TEMPLATE, THREADS, UPCALLS, WINDOW};
pub(crate) use maps::{PLACES, TURNS, maps, turns};
pub use sched_programs::processes::PROCESSES;

pub use sched_programs::Comm;

/// A count with times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The longest. Above bit 48 is the window's number, so that the first one of a new window is always greater.
    pub max: u64,
}

/// The same with the shortest, where that is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TallyWithMin {
    /// Count, sum, longest.
    pub tally: Tally,
    /// The shortest: as [`Tally::max`], with [`TIME_MASK`] less the time.
    pub min: u64,
}

/// What is known of a thread, but for its system calls: the beginning of its [`ThreadValue`]. Times are in nanoseconds of
/// `CLOCK_MONOTONIC`, buckets are sums of nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Thread {
    /// Until when its time is accounted for: the latest of the three marks, of which two are 0 on most kernels
    /// (`programs/marks.rs`).
    pub mark: u64,
    /// Where its time goes at present, as an offset in its value: see [`Bucket`].
    pub bucket: u32,
    /// The entry of the system call that it is in, as an offset in its value ([`entry_of`]).
    pub call: u32,
    /// One of [`state`].
    pub state: u32,
    /// Bits: 1 in a hard interrupt, 2 in a soft interrupt, 4 in one of the processor's own.
    pub inside: u32,
    /// What the first event showed of the time before it: one of [`first`].
    pub first: u32,
    /// The entry of the call that it was in when it was first seen, as the first system call's event showed; 0 before.
    pub resolved: u32,
    /// The bucket that a hard interrupt interrupted.
    pub saved_hard: u32,
    /// The bucket that a soft interrupt interrupted.
    pub saved_soft: u32,
    /// 1 while it is one of [`Counts::waiting`].
    pub waits: u32,
    /// The bucket that an interrupt of the processor's own interrupted.
    pub saved_vector: u32,
    /// When it entered the call; 0 where that was before it was seen.
    pub entered: u64,
    /// When its state began; 0 where that was before it was seen.
    pub since: u64,
    /// When the hard interrupt began.
    pub hard_since: u64,
    /// When the soft interrupt began.
    pub soft_since: u64,
    /// When its last `poll` ended.
    pub poll_end: u64,
    /// When it was started; 0 where that was before it was seen.
    pub start_time: u64,
    /// When it was gone for good.
    pub end_time: u64,
    /// Its name.
    pub comm: Comm,
    /// The bucket of time whose nature the first event will show.
    pub unsure: u64,
    /// The bucket of waiting for a CPU.
    pub ready: u64,
    /// The bucket of being stopped.
    pub stopped: u64,
    /// The bucket of hard interrupts.
    pub hard: u64,
    /// The bucket of soft interrupts.
    pub soft: u64,
    /// Runs that lie wholly in the window.
    pub runs: TallyWithMin,
    /// Waits for a CPU, likewise; without a shortest.
    pub waited: TallyWithMin,
    /// Stops, likewise; without a shortest.
    pub stops: TallyWithMin,
    /// Times between two `poll` calls, likewise.
    pub polls: TallyWithMin,
    /// The longest wait for a CPU, cut at the window's edges: with the window's number as in [`Tally::max`].
    pub longest: u64,
    /// Waits for a CPU by the logarithm of their length.
    pub ready_histogram: Histogram,
    /// Times blocked, likewise.
    pub blocked_histogram: Histogram,
    /// When an interrupt of the processor's own began.
    pub vector_since: u64,
    /// The bucket of time in which nobody had its number: after its end, until another thread runs a program and takes it.
    pub nobody: u64,
    /// The bucket of what our own events take of it: reading stacks, writing events.
    pub traced: u64,
    /// How many events of it were sent in windows.
    pub events: u64,
    /// What the bucket of hard interrupts had when the soft interrupt began.
    pub hard_before: u64,
    /// How long the interrupt took that found the map of interrupts taken; 0 where there is none.
    pub late_time: u64,
    /// The window in which that was: its number as in [`WindowValue::number`].
    pub late_window: u64,
    /// That interrupt's number, as in [`InterruptKey::number`].
    pub late_number: u32,
    /// 1 while a program of the scheduler is between the mark and the bucket that belongs to it.
    pub changes: u32,
    /// Its process: the thread group.
    pub tgid: u32,
    /// Which of the [`ThreadValue::histograms`] the next system call that has none gets, as an offset in its value.
    pub next_histogram: u32,
    /// The bucket of being frozen with its control group.
    pub frozen: u64,
    /// Time at which the reclaim of memory began that it is in.
    pub reclaim_since: u64,
    /// The entry of what that is a part of, as [`Thread::call`].
    pub outer: u32,
    /// Padding to a multiple of eight.
    pub pad: u32,
    /// Time at which it came to the queue that it waits in.
    pub queued: u64,
    /// The CPU that it has a place of, plus 1; 0 if it has none.
    pub place_cpu: u32,
    /// Offset of that place in the CPU's `Places`.
    pub place: u32,
    /// The mark of soft interrupts.
    pub soft_mark: u64,
    /// The mark of hard ones and of the scheduler.
    pub hard_mark: u64,
    /// From when on, plus 1, the first one accounted that came while the thread's own program did; 0 where none came.
    pub note: u64,
    /// The same of a soft interrupt's program.
    pub soft_note: u64,
    /// Number of absences in windows, if they are counted.
    pub absences: u64,
    /// Sum of them in nanoseconds.
    pub absent: u64,
}

/// Counts by the logarithm to base 2 of nanoseconds: the last one is for 2^39 ns (nine minutes) and more.
pub type Histogram = [u32; HISTOGRAM];

/// How many counts a histogram has.
pub const HISTOGRAM: usize = 40;

/// What is kept of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CallEntry {
    /// Those completed in the window, with their times from entry to exit.
    pub tally: Tally,
    /// The bucket of time on the CPU.
    pub cpu: u64,
    /// The bucket of time blocked.
    pub blocked: u64,
    /// How many of those completed in the window returned an error.
    pub errors: u32,
    /// Where its histogram is, as an offset in the thread's value; 0 where it has none.
    pub histogram: u32,
}

/// Counts of completed calls by the logarithm to base 2 of the square of their nanoseconds, less [`CALL_HISTOGRAM_FIRST`]:
/// two counts for each power of two. The first one has all that is shorter, the last one all that is longer.
pub type CallHistogram = [u32; CALL_HISTOGRAM];

/// How many counts a call's histogram has: the last one from 2^30.5 ns, 1.5 s, on.
pub const CALL_HISTOGRAM: usize = 50;
/// The logarithm of the square of the shortest time that the first count is for: 2^6 ns.
pub const CALL_HISTOGRAM_FIRST: u32 = 12;
/// How many calls of a thread have a histogram: those that it made first. A value has no room for all, and threads make few
/// different calls.
pub const CALL_HISTOGRAMS: usize = 24;

/// A thread's value.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ThreadValue {
    /// All but its calls. It comes first: an offset in it is one in the value.
    pub thread: Thread,
    /// An entry for each system call.
    pub calls: [CallEntry; SLOTS as usize],
    /// How long calls took.
    pub histograms: [CallHistogram; CALL_HISTOGRAMS],
    /// Where events are wanted: the bytes of the kernel's stack where it last blocked in its call; 0 where it did not.
    pub blocked_bytes: u64,
    /// That stack.
    pub blocked_stack: KernelStack,
}

const _: () = assert!(offset_of!(ThreadValue, thread) == 0);

/// The offset of a histogram in a thread's value.
pub const fn histogram_at(index: u32) -> u32 {
    offset_of!(ThreadValue, histograms) as u32 + index * size_of::<CallHistogram>() as u32
}

/// Which histogram is at this offset in a thread's value; none where there is no histogram.
pub fn histogram_index(offset: u32) -> Option<usize> {
    let index = offset.checked_sub(histogram_at(0))? as usize / size_of::<CallHistogram>();
    (index < CALL_HISTOGRAMS).then_some(index)
}

/// How many entries for calls there are.
pub const SLOTS: u32 = 512;
/// Number of entries that are system calls by their numbers; the others stand for what has no number.
pub const NUMBERED_SLOTS: u32 = SLOT_RECLAIM;
/// The entry for reclaim of memory, in a call or in a page fault.
pub const SLOT_RECLAIM: u32 = 506;
/// The entry for page faults of the process's own code.
pub const SLOT_FAULT: u32 = 507;
/// The entry for 32-bit calls: their numbers mean others.
pub const SLOT_COMPAT: u32 = 508;
/// The entry for numbers that have no entry.
pub const SLOT_OTHER: u32 = 509;
/// The entry for no call: on the CPU it is the process's own code; blocked it is what the kernel does on the way back to that.
pub const SLOT_NONE: u32 = 510;
/// The entry for what the thread was in when it was first seen, until a system call's event shows it.
pub const SLOT_UNKNOWN: u32 = 511;
/// The bits of a time in [`Tally::max`]: 78 hours.
pub const TIME_MASK: u64 = (1 << WINDOW_SHIFT) - 1;
/// Where the window's number is in [`Tally::max`].
pub const WINDOW_SHIFT: u32 = 48;

/// What a thread is doing, as the scheduler sees it.
pub mod state {
    /// Seen in the process's list of threads; no event yet.
    pub const UNSURE: u32 = 0;
    /// On a CPU.
    pub const RUNNING: u32 = 1;
    /// Waiting for a CPU.
    pub const READY: u32 = 2;
    /// Waiting for something else.
    pub const BLOCKED: u32 = 3;
    /// Stopped by a signal or a debugger.
    pub const STOPPED: u32 = 4;
    /// Gone.
    pub const DEAD: u32 = 5;
}

/// What the first event showed of the time before it.
pub mod first {
    /// There was no event.
    pub const NONE: u32 = 0;
    /// It was on a CPU.
    pub const RUNNING: u32 = 1;
    /// It waited for one.
    pub const READY: u32 = 2;
    /// It was blocked or stopped.
    pub const ASLEEP: u32 = 3;
}

/// When time counts, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WindowValue {
    /// From when on; the greatest number before that is known.
    pub start: u64,
    /// Until when.
    pub stop: u64,
    /// The window's number, shifted by [`WINDOW_SHIFT`].
    pub number: u64,
    /// How long a window is that a trigger starts.
    pub duration: u64,
    /// Nanoseconds, plus 1, from the start by a trigger until all programs see it; 0 before.
    pub start_took: u64,
    /// Nanoseconds, plus 1, from the stop by a trigger until all programs see it; 0 before.
    pub stop_took: u64,
    /// One of [`armed`]. The last of all, and so the last that is written: a trigger whose turn it is finds the rest.
    pub armed: u64,
}

/// Whose turn it is.
pub mod armed {
    /// User space's: triggers that fire are missed.
    pub const NO: u32 = 0;
    /// The start trigger's.
    pub const FOR_START: u32 = 1;
    /// The stop trigger's, or the clock's.
    pub const FOR_STOP: u32 = 2;
    /// User space's: the stop trigger fired.
    pub const FIRED: u32 = 3;
}

/// What the programs count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// How many threads wait for a CPU: while there are none, nobody needs to know who runs.
    pub waiting: u64,
    /// Threads for which there was no room.
    pub no_thread: u64,
    /// Preemptors for which there was no room.
    pub no_preemptor: u64,
    /// Interrupts for which there was no room.
    pub no_interrupt: u64,
    /// Events for which there was no room.
    pub no_event: u64,
    /// Start triggers that came while a window could not start.
    pub missed: u64,
    /// Upcalls for which there was no room.
    pub no_upcall: u64,
    /// Processes for which there was no room.
    pub no_process: u64,
}

/// How many entries a CPU's log has: a power of two. More make long waits known better, and loading slower: the verifier
/// walks them all, 10 ms for each hundred.
pub const LOG_LENGTH: usize = 128;

/// Who ran on a CPU lately. Only programs look at it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Log {
    /// How many entries were ever written.
    pub(crate) head: u64,
    /// The worker of the kernel that has begun some work here last.
    pub(crate) worker: u64,
    /// The function of that work; 0 if it is done.
    pub(crate) function: u64,
    /// The entries; the oldest is written over.
    pub(crate) entries: [LogEntry; LOG_LENGTH],
}

/// A task that ran.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LogEntry {
    /// Until when it ran.
    pub(crate) end: u64,
    /// Its process.
    pub(crate) tgid: u32,
    /// Its process's parent.
    pub(crate) parent: u32,
    /// Its name.
    pub(crate) comm: Comm,
    /// The function of the work that it did, if it is a worker of the kernel; otherwise 0.
    pub(crate) function: u64,
    /// Up to a power of two.
    pub(crate) pad: [u64; 3],
}

const _: () = assert!(LOG_LENGTH.is_power_of_two() && size_of::<LogEntry>().is_power_of_two());

/// Number of threads that wait for a CPU and are each given the time of whoever leaves it. More make each switch dearer: 0.1 us for each
/// that waits.
pub(crate) const PLACES_OF_CPU: usize = 8;

/// The threads that wait for a CPU. Only programs look at it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Places {
    /// One for each thread.
    pub(crate) places: [Place; PLACES_OF_CPU],
}

/// A thread that waits for a CPU.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Place {
    /// Number of the thread; 0 if the place is free.
    pub(crate) tid: u64,
    /// Time from which on nobody's time was given to it; 0 while the place is being taken.
    pub(crate) from: u64,
    /// Time at which it was moved to another CPU; 0 if it was not.
    pub(crate) until: u64,
}

/// The key of who ran while a thread waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PreemptorKey {
    /// The number of the thread that waited.
    pub waiter: u64,
    /// The process that ran.
    pub tgid: u32,
    /// The parent of that process.
    pub parent: u32,
    /// The name of the task that ran.
    pub comm: Comm,
    /// The address of the function of the work that it did, if it is a worker of the kernel; otherwise 0.
    pub function: u64,
}

/// The key of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterruptKey {
    /// The thread's number.
    pub tid: u32,
    /// The interrupt's number, with [`SOFT_INTERRUPT`] or [`VECTOR_INTERRUPT`] for those that are no device's.
    pub number: u32,
}

/// The bit that makes a soft interrupt's number of it.
pub const SOFT_INTERRUPT: u32 = 1 << 30;
/// The same for the processor's own ones.
pub const VECTOR_INTERRUPT: u32 = 1 << 29;

/// The key of upcalls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UpcallKey {
    /// The CPU.
    pub cpu: u32,
    /// The error, as a positive number; 0 for none.
    pub error: u32,
}
