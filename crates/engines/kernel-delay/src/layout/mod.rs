//! Contents of the maps and the ring, with each structure written once: programs take a field's
//! offset from here (`offset!`), and readers get the structure itself ([`read_key`],
//! [`read_value`]).
//!
//! Numbers are in the machine's own byte order, as in the programs. There is no padding (deriving
//! `IntoBytes` would not compile), so each field lies at a multiple of its size, as atomic
//! instructions require.
//!
//! | module | holds |
//! |---|---|
//! | here | keys and values of the maps |
//! | `event` | events of the ring |
//! | `maps` | names and sizes of the maps |
//! | `bucket` | offsets in a thread's value that this value holds |

mod bucket;
mod event;
mod keys;
mod log;
mod maps;

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use bpf_program::wire::{WrongSize, read_key, read_value};
pub use bucket::{Bucket, entry_of, slot_of};
pub use event::{
    EventHead, KernelStack, MAX_STACK_BYTES, REGISTER_COUNT, STACK_CHUNK_BYTES, STACK_DEPTH,
    StackEvent, stack_event_size,
};
pub use maps::{COUNTS, INTERRUPTS, LOG, PREEMPTORS, TEMPLATE, THREADS, UPCALLS, WINDOW};
pub(crate) use maps::{PLACES, TURNS, maps, turns};

pub use keys::{InterruptKey, PreemptorKey, SOFT_INTERRUPT, UpcallKey, VECTOR_INTERRUPT};
pub use log::LOG_LENGTH;
pub(crate) use log::{Log, LogEntry, PLACES_OF_CPU, Place, Places};
pub use sched_programs::Comm;

/// Count and times in nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Tally {
    /// Number of times.
    pub count: u64,
    /// Sum of the times.
    pub total: u64,
    /// Longest time. The window's number is above bit 48, so that the first time of a new window is
    /// always greater.
    pub max: u64,
}

/// Tally that also keeps the shortest time.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TallyWithMin {
    /// Count, sum, longest.
    pub tally: Tally,
    /// Shortest time: as [`Tally::max`], but [`TIME_MASK`] less the time.
    pub min: u64,
}

/// State of a thread except its system calls: the start of its [`ThreadValue`]. Times are in
/// nanoseconds of `CLOCK_MONOTONIC`, buckets are sums of nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Thread {
    /// Time until which the thread is accounted for: the latest of the three marks, of which two
    /// are 0 on most kernels (`programs/marks.rs`).
    pub mark: u64,
    /// Current destination of its time, as an offset in its value: see [`Bucket`].
    pub bucket: u32,
    /// Entry of its current system call, as an offset in its value ([`entry_of`]).
    pub call: u32,
    /// One of [`state`].
    pub state: u32,
    /// Bits: 1 in a hard interrupt, 2 in a soft interrupt, 4 in one of the processor's own.
    pub inside: u32,
    /// State before the first event, as that event showed it: one of [`first`].
    pub first: u32,
    /// Entry of the call at its first sight, as the first system call's event showed; 0 before.
    pub resolved: u32,
    /// Bucket before the hard interrupt.
    pub saved_hard: u32,
    /// Bucket before the soft interrupt.
    pub saved_soft: u32,
    /// 1 while [`Counts::waiting`] includes it.
    pub waits: u32,
    /// Bucket before the interrupt of the processor's own.
    pub saved_vector: u32,
    /// Time of entry to the call; 0 if that was before it was first seen.
    pub entered: u64,
    /// Start of its state; 0 if that was before it was first seen.
    pub since: u64,
    /// Start of the hard interrupt.
    pub hard_since: u64,
    /// Start of the soft interrupt.
    pub soft_since: u64,
    /// End of its last `poll`.
    pub poll_end: u64,
    /// Start of the thread; 0 if that was before it was first seen.
    pub start_time: u64,
    /// End of the thread.
    pub end_time: u64,
    /// Name of the thread.
    pub comm: Comm,
    /// Bucket of time whose nature the first event will show.
    pub unsure: u64,
    /// Bucket of waiting for a CPU.
    pub ready: u64,
    /// Bucket of being stopped.
    pub stopped: u64,
    /// Bucket of hard interrupts.
    pub hard: u64,
    /// Bucket of soft interrupts.
    pub soft: u64,
    /// Runs that lie wholly in the window.
    pub runs: TallyWithMin,
    /// Waits for a CPU, likewise; without a shortest.
    pub waited: TallyWithMin,
    /// Stops, likewise; without a shortest.
    pub stops: TallyWithMin,
    /// Times between two `poll` calls, likewise.
    pub polls: TallyWithMin,
    /// Longest wait for a CPU, cut at the window's edges, with the window's number as in
    /// [`Tally::max`].
    pub longest: u64,
    /// Waits for a CPU by the logarithm of their length.
    pub ready_histogram: Histogram,
    /// Times blocked, likewise.
    pub blocked_histogram: Histogram,
    /// Start of an interrupt of the processor's own.
    pub vector_since: u64,
    /// Bucket of time in which nobody had its number: from its end until another thread runs a
    /// program and takes the number.
    pub nobody: u64,
    /// Bucket of the time that our own events cost: reading stacks, writing events.
    pub traced: u64,
    /// Number of its events sent in windows.
    pub events: u64,
    /// Value of the bucket of hard interrupts when the soft interrupt began.
    pub hard_before: u64,
    /// Duration of the interrupt that found the map of interrupts locked; 0 if there is none.
    pub late_time: u64,
    /// Window of that interrupt: its number as in [`WindowValue::number`].
    pub late_window: u64,
    /// Number of that interrupt, as in [`InterruptKey::number`].
    pub late_number: u32,
    /// 1 while a program of the scheduler is between setting the mark and setting its bucket.
    pub changes: u32,
    /// Process: the thread group.
    pub tgid: u32,
    /// Histogram in [`ThreadValue::histograms`] for the next system call without one, as an offset
    /// in its value.
    pub next_histogram: u32,
    /// Bucket of being frozen with its control group.
    pub frozen: u64,
    /// Start of its current reclaim of memory.
    pub reclaim_since: u64,
    /// Entry that was current before the reclaim, as [`Thread::call`].
    pub outer: u32,
    /// Padding to a multiple of eight.
    pub pad: u32,
    /// Time at which it joined the queue that it waits in.
    pub queued: u64,
    /// CPU that it has a place of, plus 1; 0 if it has none.
    pub place_cpu: u32,
    /// Offset of that place in the CPU's `Places`.
    pub place: u32,
    /// Mark of soft interrupts.
    pub soft_mark: u64,
    /// Mark of hard interrupts and of the scheduler.
    pub hard_mark: u64,
    /// Time, plus 1, from which the first program that interrupted the thread's own accounted; 0 if
    /// none did.
    pub note: u64,
    /// Same note for a soft interrupt's program.
    pub soft_note: u64,
    /// Number of absences in windows, if they are counted.
    pub absences: u64,
    /// Sum of these absences in nanoseconds.
    pub absent: u64,
}

/// Counts by the logarithm to base 2 of nanoseconds; the last one is for 2^39 ns (nine minutes) and
/// more.
pub type Histogram = [u32; HISTOGRAM];

/// Number of counts in a histogram.
pub const HISTOGRAM: usize = 40;

/// Record of a system call.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CallEntry {
    /// Calls completed in the window, with their times from entry to exit.
    pub tally: Tally,
    /// Bucket of time on the CPU.
    pub cpu: u64,
    /// Bucket of time blocked.
    pub blocked: u64,
    /// Number of calls completed in the window that returned an error.
    pub errors: u32,
    /// Offset of its histogram in the thread's value; 0 if it has none.
    pub histogram: u32,
}

/// Counts of completed calls by the logarithm to base 2 of the square of their nanoseconds, less
/// [`CALL_HISTOGRAM_FIRST`]: two counts for each power of two. The first count includes all shorter
/// calls, the last one all longer calls.
pub type CallHistogram = [u32; CALL_HISTOGRAM];

/// Number of counts in a call's histogram; the last one is for 2^30.5 ns (1.5 s) and more.
pub const CALL_HISTOGRAM: usize = 50;
/// Logarithm of the square of the shortest time in the first count: 2^6 ns.
pub const CALL_HISTOGRAM_FIRST: u32 = 12;
/// Number of calls of a thread that have a histogram: the first ones it made. A value has no room
/// for all, and threads make few different calls.
pub const CALL_HISTOGRAMS: usize = 24;

/// Value of a thread in the map.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ThreadValue {
    /// Everything except its calls. It comes first, so an offset in it is an offset in the value.
    pub thread: Thread,
    /// Entry for each system call.
    pub calls: [CallEntry; SLOTS as usize],
    /// Histograms of the durations of calls.
    pub histograms: [CallHistogram; CALL_HISTOGRAMS],
    /// If events are requested: bytes of the kernel's stack where it last blocked in its call; 0 if
    /// it did not block.
    pub blocked_bytes: u64,
    /// Stack at that point.
    pub blocked_stack: KernelStack,
}

const _: () = assert!(offset_of!(ThreadValue, thread) == 0);

/// Returns the offset of a histogram in a thread's value.
pub const fn histogram_at(index: u32) -> u32 {
    offset_of!(ThreadValue, histograms) as u32 + index * size_of::<CallHistogram>() as u32
}

/// Returns the index of the histogram at this offset in a thread's value; `None` if no histogram is
/// there.
pub fn histogram_index(offset: u32) -> Option<usize> {
    let index = offset.checked_sub(histogram_at(0))? as usize / size_of::<CallHistogram>();
    (index < CALL_HISTOGRAMS).then_some(index)
}

/// Number of entries for calls.
pub const SLOTS: u32 = 512;
/// Number of entries for system calls by number; the others are for activities without a number.
pub const NUMBERED_SLOTS: u32 = SLOT_RECLAIM;
/// Entry for reclaim of memory, in a call or in a page fault.
pub const SLOT_RECLAIM: u32 = 506;
/// Entry for page faults of the process's own code.
pub const SLOT_FAULT: u32 = 507;
/// Entry for 32-bit calls, whose numbers have other meanings.
pub const SLOT_COMPAT: u32 = 508;
/// Entry for numbers that have no entry.
pub const SLOT_OTHER: u32 = 509;
/// Entry for no call: on the CPU, the process's own code; blocked, the kernel's work on the way
/// back to it.
pub const SLOT_NONE: u32 = 510;
/// Entry for an unknown call at first sight, until a system call's event shows which it was.
pub const SLOT_UNKNOWN: u32 = 511;
/// Bits of a time in [`Tally::max`]: 78 hours.
pub const TIME_MASK: u64 = (1 << WINDOW_SHIFT) - 1;
/// Position of the window's number in [`Tally::max`].
pub const WINDOW_SHIFT: u32 = 48;

/// States of a thread, as the scheduler sees it.
pub mod state {
    /// Seen in the process's list of threads; no event yet.
    pub const UNSURE: u32 = 0;
    /// On a CPU.
    pub const RUNNING: u32 = 1;
    /// Waiting for a CPU.
    pub const READY: u32 = 2;
    /// Waiting for something other than a CPU.
    pub const BLOCKED: u32 = 3;
    /// Stopped by a signal or a debugger.
    pub const STOPPED: u32 = 4;
    /// Ended.
    pub const DEAD: u32 = 5;
}

/// States before the first event, as that event showed them.
pub mod first {
    /// No event yet.
    pub const NONE: u32 = 0;
    /// On a CPU.
    pub const RUNNING: u32 = 1;
    /// Waiting for a CPU.
    pub const READY: u32 = 2;
    /// Blocked or stopped.
    pub const ASLEEP: u32 = 3;
}

/// Bounds of the window, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct WindowValue {
    /// Start; the greatest number until it is known.
    pub start: u64,
    /// End.
    pub stop: u64,
    /// Number of the window, shifted by [`WINDOW_SHIFT`].
    pub number: u64,
    /// Length of a window that a trigger starts.
    pub duration: u64,
    /// Nanoseconds, plus 1, from the start by a trigger until all programs see it; 0 before.
    pub start_took: u64,
    /// Nanoseconds, plus 1, from the stop by a trigger until all programs see it; 0 before.
    pub stop_took: u64,
    /// One of [`armed`]. It is the last field, and so written last: a trigger that gets its turn
    /// finds the other fields set.
    pub armed: u64,
}

/// Holders of the turn to change the window.
pub mod armed {
    /// User space: triggers that fire are missed.
    pub const NO: u32 = 0;
    /// Start trigger.
    pub const FOR_START: u32 = 1;
    /// Stop trigger, or the clock.
    pub const FOR_STOP: u32 = 2;
    /// User space: the stop trigger fired.
    pub const FIRED: u32 = 3;
}

/// Counts of the programs.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counts {
    /// Number of threads that wait for a CPU; at 0, the programs do not log who runs.
    pub waiting: u64,
    /// Number of threads without room.
    pub no_thread: u64,
    /// Number of preemptors without room.
    pub no_preemptor: u64,
    /// Number of interrupts without room.
    pub no_interrupt: u64,
    /// Number of events without room.
    pub no_event: u64,
    /// Number of start triggers that fired while no window could start.
    pub missed: u64,
    /// Number of upcalls without room.
    pub no_upcall: u64,
    /// Number of processes without room.
    pub no_process: u64,
}

const _: () = assert!(LOG_LENGTH.is_power_of_two() && size_of::<LogEntry>().is_power_of_two());
