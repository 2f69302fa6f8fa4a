//! What the maps and the ring hold, each structure written once: programs take a field's offset from here ([`offset!`]),
//! and readers get the structure itself ([`read_key`], [`read_value`]).
//!
//! Numbers are in the machine's own byte order, which is the programs' too. There is no padding (deriving `IntoBytes` would
//! not compile), so each field lies at a multiple of its size, as atomic instructions want it.

use core::mem::offset_of;

use bpf_insn::{MapDef, MapKind};
use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The offset of a field, as instructions hold it: `offset!(Thread, runs.tally)`. One that does not fit does not compile.
macro_rules! offset {
    ($of:ty, $($field:tt)+) => {
        const { $crate::delay::layout::in_instruction(core::mem::offset_of!($of, $($field)+)) }
    };
}
pub(super) use offset;

/// A structure's size, as instructions and map definitions hold it.
macro_rules! bytes_of {
    ($of:ty) => {
        const { $crate::delay::layout::in_instruction(size_of::<$of>()) }
    };
}
pub(super) use bytes_of;

/// An offset in an instruction's 16 bits.
#[expect(clippy::cast_possible_wrap, reason = "it is compared with the greatest first")]
pub(super) const fn in_instruction(offset: usize) -> i16 {
    assert!(offset <= i16::MAX as usize, "an instruction can't hold this offset");
    offset as i16
}

/// Something in a map or in the ring has another size than its structure: one of the two is wrong, and that is our mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} {name} has {found} bytes, and {wanted} were expected: an internal error, please report it")]
pub struct WrongSize {
    /// What it is: a map's key or value, an event of the ring.
    what: &'static str,
    /// The map's or the ring's name.
    name: &'static str,
    found: usize,
    wanted: usize,
}

impl WrongSize {
    /// Of an event of the ring.
    pub fn event(found: usize, wanted: usize) -> Self {
        Self { what: "an event of the ring", name: crate::event::RING, found, wanted }
    }
}

/// A key of a map of ours, by the map's name.
pub fn read_key<K: FromBytes>(map: &'static str, bytes: &[u8]) -> Result<K, WrongSize> {
    read("a key of the map", map, bytes)
}

/// A value of a map of ours, by the map's name.
pub fn read_value<V: FromBytes>(map: &'static str, bytes: &[u8]) -> Result<V, WrongSize> {
    read("a value of the map", map, bytes)
}

fn read<T: FromBytes>(what: &'static str, name: &'static str, bytes: &[u8]) -> Result<T, WrongSize> {
    T::read_from_bytes(bytes).map_err(|_| WrongSize { what, name, found: bytes.len(), wanted: size_of::<T>() })
}

/// Threads by their number (`u32`): all that is known of each, a [`ThreadValue`].
pub const THREADS: &str = "threads";
/// One element, a [`WindowValue`]: when time counts. Written by user space and by triggers.
pub const WINDOW: &str = "window";
/// One element, [`Counts`]: what the programs count for themselves.
pub const COUNTS: &str = "counts";
/// One element: the [`ThreadValue`] that a new thread starts with.
pub const TEMPLATE: &str = "template";
/// Who ran on each CPU lately: a [`Log`] for each CPU.
pub const LOG: &str = "log";
/// Nanoseconds (`u64`) that others ran while a thread waited, by [`PreemptorKey`].
pub const PREEMPTORS: &str = "preemptors";
/// Interrupts by thread and number: a [`Tally`] by [`InterruptKey`].
pub const INTERRUPTS: &str = "interrupts";
/// How many upcalls of Open vSwitch there were (`u64`), by [`UpcallKey`].
pub const UPCALLS: &str = "upcalls";

/// A task's name, which ends with its first 0.
pub type Comm = [u8; 16];

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
    /// Until when its time is accounted for.
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
    /// Nothing.
    pub reserved: u64,
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
}

/// A thread's value.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ThreadValue {
    /// All but its calls. It comes first: an offset in it is one in the value.
    pub thread: Thread,
    /// An entry for each system call.
    pub calls: [CallEntry; SLOTS as usize],
    /// Where events are wanted: the bytes of the kernel's stack where it last blocked in its call; 0 where it did not.
    pub blocked_bytes: u64,
    /// That stack.
    pub blocked_stack: KernelStack,
}

const _: () = assert!(offset_of!(ThreadValue, thread) == 0);

/// A stack that the kernel walked: addresses, the innermost first.
pub type KernelStack = [u64; STACK_DEPTH];

/// How many addresses of a stack are kept.
pub const STACK_DEPTH: usize = 64;

/// How many entries for calls there are.
pub const SLOTS: u32 = 512;
/// The entry for 32-bit calls: their numbers mean others.
pub const SLOT_COMPAT: u32 = 508;
/// The entry for numbers that have no entry.
pub const SLOT_OTHER: u32 = 509;
/// The entry for no call: on the CPU it is the process's own code, blocked it is a page fault.
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
}

/// How many entries a CPU's log has: a power of two. More make long waits known better, and loading slower: the verifier
/// walks them all, 10 ms for each hundred.
pub const LOG_LENGTH: usize = 128;

/// Who ran on a CPU lately. Only programs look at it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Log {
    /// How many entries were ever written.
    pub(super) head: u64,
    /// The entries; the oldest is written over.
    pub(super) entries: [LogEntry; LOG_LENGTH],
}

/// A task that ran.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct LogEntry {
    /// Until when it ran.
    pub(super) end: u64,
    /// Its number.
    pub(super) tid: u64,
    /// Its name.
    pub(super) comm: Comm,
}

const _: () = assert!(LOG_LENGTH.is_power_of_two() && size_of::<LogEntry>().is_power_of_two());

/// The key of who ran while a thread waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PreemptorKey {
    /// The number of the thread that waited.
    pub waiter: u64,
    /// The name of the task that ran.
    pub comm: Comm,
}

/// The key of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterruptKey {
    /// The thread's number.
    pub tid: u32,
    /// The interrupt's number, with [`SOFT_INTERRUPT`] for soft ones.
    pub number: u32,
}

/// The bit that makes a soft interrupt's number of it.
pub const SOFT_INTERRUPT: u32 = 1 << 30;

/// The key of upcalls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UpcallKey {
    /// The CPU.
    pub cpu: u32,
    /// The error, as a positive number; 0 for none.
    pub error: u32,
}

/// An event in the ring without stacks, and the beginning of one with stacks: a system call that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventHead {
    /// When it was entered.
    pub entry: u64,
    /// When it was left.
    pub exit: u64,
    /// The thread.
    pub tid: u32,
    /// The call's entry, as an offset in the thread's value.
    pub call: u32,
    /// The thread's name.
    pub comm: Comm,
    /// The bytes of the kernel's stack, or a negative error.
    pub kernel_bytes: i64,
    /// The bytes of the user's stack, or a negative error.
    pub user_bytes: i64,
    /// Nothing.
    pub reserved: u64,
}

/// How many registers an event has.
pub const REGISTER_COUNT: usize = 4;

/// An event with stacks. Behind it is the user's stack: a copy of its bytes from the stack pointer on, or a [`KernelStack`]
/// where none is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackEvent {
    /// What each event has.
    pub head: EventHead,
    /// The kernel's stack.
    pub kernel: KernelStack,
    /// The process's registers at the call, as [`super::TaskFacts::user_registers`] names them.
    pub registers: [u64; REGISTER_COUNT],
}

/// The pieces in which a stack is copied, in bytes: one that can't be read ends the copy.
pub const STACK_PIECE: u32 = 1024;
/// The most that is copied of a stack, in bytes.
pub const MOST_COPIED: u32 = 24 * STACK_PIECE;

/// The bytes of an event with stacks, if so many bytes of the user's are copied.
pub const fn stack_event_size(copied: u32) -> u32 {
    let user = if copied == 0 { size_of::<KernelStack>() as u32 } else { copied };
    size_of::<StackEvent>() as u32 + user
}

/// The offset of a slot's entry in a thread's value.
pub const fn entry_of(slot: u32) -> u32 {
    offset_of!(ThreadValue, calls) as u32 + slot * size_of::<CallEntry>() as u32
}

/// The slot whose entry is at this offset.
pub const fn slot_of(entry: u32) -> u32 {
    entry.saturating_sub(entry_of(0)) / size_of::<CallEntry>() as u32
}

/// Which of a thread's sums its time goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    /// [`Thread::unsure`].
    Unsure,
    /// [`Thread::ready`].
    Ready,
    /// [`Thread::stopped`].
    Stopped,
    /// [`Thread::hard`].
    Hard,
    /// [`Thread::soft`].
    Soft,
    /// [`CallEntry::cpu`] of this slot.
    OnCpu(u32),
    /// [`CallEntry::blocked`] of this slot.
    Blocked(u32),
}

impl Bucket {
    /// The one at an offset in a thread's value; none where time is nobody's, or where no sum is.
    pub fn at(offset: u32) -> Option<Self> {
        let simple = [
            (offset_of!(Thread, unsure), Self::Unsure),
            (offset_of!(Thread, ready), Self::Ready),
            (offset_of!(Thread, stopped), Self::Stopped),
            (offset_of!(Thread, hard), Self::Hard),
            (offset_of!(Thread, soft), Self::Soft),
        ];
        if let Some((_, bucket)) = simple.into_iter().find(|(at, _)| *at == offset as usize) {
            return Some(bucket);
        }
        let slot = slot_of(offset);
        let part = offset.checked_sub(entry_of(slot)).filter(|_| slot < SLOTS)? as usize;
        match part {
            _ if part == offset_of!(CallEntry, cpu) => Some(Self::OnCpu(slot)),
            _ if part == offset_of!(CallEntry, blocked) => Some(Self::Blocked(slot)),
            _ => None,
        }
    }
}

/// `BPF_F_NO_PREALLOC` of `linux/bpf.h`: a value takes memory when there is a thread for it.
const NO_PREALLOC: u32 = 1;

/// For how many threads the small values' memory is taken in advance: 20 MiB of it at most.
const MOST_PREALLOCATED: u32 = 1 << 14;

/// The size of a map's key or value.
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// The maps. There is room for `threads`, and for a number of preemptors and interrupts of each.
pub(super) fn maps(threads: u32) -> Vec<MapDef> {
    let one = |name, size| MapDef::new(name, MapKind::Array, 4, size, 1);
    let hash = |name, key, size, entries| MapDef::new(name, MapKind::Hash, key, size, entries);
    // Where many entries are new at once, and the kernel can't be waited for, only memory that is there already will do.
    let small = |name, key, size| {
        let map = hash(name, key, size, threads.saturating_mul(8));
        if threads <= MOST_PREALLOCATED { map } else { map.with_flags(NO_PREALLOC) }
    };
    vec![
        hash(THREADS, 4, size::<ThreadValue>(), threads).with_flags(NO_PREALLOC),
        one(WINDOW, size::<WindowValue>()),
        one(COUNTS, size::<Counts>()),
        one(TEMPLATE, size::<ThreadValue>()),
        MapDef::new(LOG, MapKind::PercpuArray, 4, size::<Log>(), 1),
        small(PREEMPTORS, size::<PreemptorKey>(), size::<u64>()),
        small(INTERRUPTS, size::<InterruptKey>(), size::<Tally>()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each sum is found at its offset, and nothing else is a bucket.
    #[test]
    fn a_bucket_is_one_of_the_sums() {
        let cpu = |slot| entry_of(slot) + offset_of!(CallEntry, cpu) as u32;
        assert_eq!(Bucket::at(offset_of!(Thread, soft) as u32), Some(Bucket::Soft));
        assert_eq!(
            [0, SLOTS - 1].map(|slot| Bucket::at(cpu(slot))),
            [0, SLOTS - 1].map(|slot| Some(Bucket::OnCpu(slot)))
        );
        assert_eq!(Bucket::at(cpu(3) + 8), Some(Bucket::Blocked(3)));
        for nothing in [0, 1, cpu(3) - 8, cpu(3) + 1, cpu(SLOTS), offset_of!(Thread, nobody) as u32, u32::MAX] {
            assert_eq!(Bucket::at(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn another_size_is_an_error_that_names_its_place() {
        assert_eq!(read_key::<u32>(THREADS, &7_u32.to_ne_bytes()), Ok(7));
        let error = read_value::<WindowValue>(WINDOW, &[0; 39]).unwrap_err().to_string();
        assert!(error.starts_with("a value of the map window has 39 bytes, and 40 were expected"), "{error}");
        assert!(read_value::<u64>(UPCALLS, &[]).is_err());
    }
}
