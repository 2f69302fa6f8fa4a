//! What lies where in the maps: for the programs that write, and for us who read.

use bpf_insn::{MapDef, MapKind};

/// Threads by their number: all that is known of each, in one value ([`value`]).
pub const THREADS: &str = "threads";
/// One element, [`window`]: when time counts. Written by user space and by triggers.
pub const WINDOW: &str = "window";
/// One element, [`counts`]: what the programs count for themselves.
pub const COUNTS: &str = "counts";
/// One element: the value that a new thread starts with.
pub const TEMPLATE: &str = "template";
/// Who ran on each CPU lately: [`log`].
pub const LOG: &str = "log";
/// Who ran while a thread waited: [`rival`].
pub const RIVALS: &str = "rivals";
/// Interrupts by thread and number: [`interrupt`].
pub const INTERRUPTS: &str = "interrupts";
/// Upcalls of Open vSwitch by CPU and error: [`upcall`].
pub const UPCALLS: &str = "upcalls";

/// A thread's value. Bytes from its beginning.
pub mod value {
    /// Until when its time is accounted for.
    pub const MARK: i16 = 0;
    /// Where its time goes at present, as an offset in this value.
    pub const BUCKET: i16 = 8;
    /// The entry of the system call that it is in, as an offset in this value.
    pub const CALL: i16 = 12;
    /// One of [`super::state`].
    pub const STATE: i16 = 16;
    /// Bits: 1 in a hard interrupt, 2 in a soft interrupt, 4 in one of the processor's own.
    pub const INSIDE: i16 = 20;
    /// What the first event told of the time before it: one of [`super::first`].
    pub const FIRST: i16 = 24;
    /// The entry of the call that it was in when it was first seen, as the first system call's event told; 0 before.
    pub const RESOLVED: i16 = 28;
    /// The bucket that a hard interrupt interrupted.
    pub const SAVED_HARD: i16 = 32;
    /// The bucket that a soft interrupt interrupted.
    pub const SAVED_SOFT: i16 = 36;
    /// 1 while it is one of [`super::counts::WAITING`].
    pub const WAITS: i16 = 40;
    /// The bucket that an interrupt of the processor's own interrupted.
    pub const SAVED_VECTOR: i16 = 44;
    /// When it entered the call; 0 where that was before it was seen.
    pub const ENTERED: i16 = 48;
    /// When its state began; 0 where that was before it was seen.
    pub const SINCE: i16 = 56;
    /// When the hard interrupt began.
    pub const HARD_SINCE: i16 = 64;
    /// When the soft interrupt began.
    pub const SOFT_SINCE: i16 = 72;
    /// When its last `poll` ended.
    pub const POLL_END: i16 = 80;
    /// When it was born; 0 where that was before it was seen.
    pub const BORN: i16 = 88;
    /// When it was gone for good.
    pub const DIED: i16 = 96;
    /// Its name, 16 bytes.
    pub const COMM: i16 = 104;
    /// The bytes of a name, the last of them 0.
    pub const COMM_BYTES: usize = 16;
    /// The bucket of time whose nature the first event will tell.
    pub const UNSURE: i16 = 120;
    /// The bucket of waiting for a CPU.
    pub const READY: i16 = 128;
    /// The bucket of being stopped.
    pub const STOPPED: i16 = 136;
    /// The bucket of hard interrupts.
    pub const HARD: i16 = 144;
    /// The bucket of soft interrupts.
    pub const SOFT: i16 = 152;
    /// Runs that lie wholly in the window: a [`super::stat`].
    pub const RUNS: i16 = 160;
    /// Waits for a CPU, likewise.
    pub const WAITED: i16 = 192;
    /// Stops, likewise.
    pub const STOPS: i16 = 224;
    /// Times between two `poll` calls, likewise.
    pub const POLLS: i16 = 256;
    /// The longest wait for a CPU, cut at the window's edges: with the window's number as in [`super::stat::MAX`].
    pub const LONGEST: i16 = 288;
    /// Waits for a CPU by the logarithm of their length: [`super::HISTOGRAM`] 32-bit counts.
    pub const READY_HISTOGRAM: i16 = 296;
    /// Times blocked, likewise.
    pub const BLOCKED_HISTOGRAM: i16 = 456;
    /// When an interrupt of the processor's own began.
    pub const VECTOR_SINCE: i16 = 616;
    /// The bucket of time in which nobody had its number: after its end, until another thread runs a program and takes it.
    pub const NOBODY: i16 = 624;
    /// An entry ([`super::call`]) for each system call.
    pub const CALLS: i16 = 640;
    /// Where events are wanted: the bytes of the kernel's stack where it last blocked in its call; 0 where it did not.
    pub const BLOCKED_BYTES: i16 = CALLS + (super::SLOTS * super::call::SIZE) as i16;
    /// That stack.
    pub const BLOCKED_STACK: i16 = BLOCKED_BYTES + 8;
    /// The bytes of the whole.
    pub const SIZE: u32 = BLOCKED_STACK as u32 + super::event::DEPTH * 8;
}

/// What is kept of a system call.
pub mod call {
    /// Completed in the window.
    pub const COUNT: i16 = 0;
    /// Their time from entry to exit.
    pub const TOTAL: i16 = 8;
    /// The longest, as [`super::stat::MAX`].
    pub const MAX: i16 = 16;
    /// The bucket of time on the CPU.
    pub const CPU: i16 = 24;
    /// The bucket of time blocked.
    pub const BLOCKED: i16 = 32;
    /// The bytes of an entry.
    pub const SIZE: u32 = 40;
}

/// How many entries for calls there are.
pub const SLOTS: u32 = 512;
/// The entry for 32-bit calls: their numbers mean others.
pub const SLOT_COMPAT: u32 = 508;
/// The entry for numbers that have no entry.
pub const SLOT_OTHER: u32 = 509;
/// The entry for no call: on the CPU it is the process's own code, blocked it is a page fault.
pub const SLOT_NONE: u32 = 510;
/// The entry for what the thread was in when it was first seen, until a system call's event tells.
pub const SLOT_UNKNOWN: u32 = 511;
/// How many counts a histogram has: the last one is for 2^39 ns (nine minutes) and more.
pub const HISTOGRAM: u32 = 40;

/// A count with times.
pub mod stat {
    /// How many.
    pub const COUNT: i16 = 0;
    /// Their sum.
    pub const TOTAL: i16 = 8;
    /// The longest. Above bit 48 is the window's number, so that the first one of a new window is always greater.
    pub const MAX: i16 = 16;
    /// The shortest: as the longest, with [`super::TIME_MASK`] less the time.
    pub const MIN: i16 = 24;
}

/// The bits of a time in [`stat::MAX`]: 78 hours.
pub const TIME_MASK: u64 = (1 << WINDOW_SHIFT) - 1;
/// Where the window's number is in [`stat::MAX`].
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

/// What the first event told of the time before it.
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

/// When time counts.
pub mod window {
    /// From when on; the greatest number before that is known.
    pub const START: i16 = 0;
    /// Until when.
    pub const STOP: i16 = 8;
    /// The window's number, shifted by [`super::WINDOW_SHIFT`].
    pub const NUMBER: i16 = 16;
    /// How long a window is that a trigger starts.
    pub const DURATION: i16 = 24;
    /// One of [`super::armed`]. The last of all, and so the last that is written: a trigger whose turn it is finds the rest.
    pub const ARMED: i16 = 32;
    /// The bytes of the whole.
    pub const SIZE: u32 = 40;
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
pub mod counts {
    /// How many threads wait for a CPU: while there are none, nobody needs to know who runs.
    pub const WAITING: i16 = 0;
    /// Threads for which there was no room.
    pub const NO_THREAD: i16 = 8;
    /// Rivals for which there was no room.
    pub const NO_RIVAL: i16 = 16;
    /// Interrupts for which there was no room.
    pub const NO_INTERRUPT: i16 = 24;
    /// Events for which there was no room.
    pub const NO_EVENT: i16 = 32;
    /// Start triggers that came while a window could not start.
    pub const MISSED: i16 = 40;
    /// Upcalls for which there was no room.
    pub const NO_UPCALL: i16 = 48;
    /// The bytes of the whole.
    pub const SIZE: u32 = 56;
}

/// Who ran on a CPU lately, one element a CPU.
pub mod log {
    /// How many entries were ever written.
    pub const HEAD: i16 = 0;
    /// The first entry.
    pub const ENTRIES: i16 = 8;
    /// How many entries there are: a power of two. More make long waits known better, and loading slower: the verifier walks
    /// them all, 10 ms for each hundred.
    pub const LENGTH: u32 = 128;
    /// The shift that is an entry's size.
    pub const ENTRY_SHIFT: i32 = 5;
    /// In an entry: until when it ran.
    pub const END: i16 = 0;
    /// In an entry: its number.
    pub const TID: i16 = 8;
    /// In an entry: its name, 16 bytes.
    pub const COMM: i16 = 16;
    /// The bytes of the whole.
    pub const SIZE: u32 = 8 + (LENGTH << ENTRY_SHIFT);
}

/// The key of who ran while a thread waited; the value is nanoseconds.
pub mod rival {
    /// The thread that waited, 4 bytes and 4 of zero.
    pub const WAITER: i16 = 0;
    /// The name of the one that ran, 16 bytes.
    pub const COMM: i16 = 8;
    /// The bytes of the key.
    pub const KEY_SIZE: u32 = 24;
    /// The bytes of the value.
    pub const VALUE_SIZE: u32 = 8;
}

/// The key of an interrupt: the thread's number, and the interrupt's with [`interrupt::SOFT`] for soft ones. The value is
/// a [`stat`] without a shortest.
pub mod interrupt {
    /// The bytes of the key.
    pub const KEY_SIZE: u32 = 8;
    /// The bytes of the value.
    pub const VALUE_SIZE: u32 = 24;
    /// The bit that makes a soft interrupt's number of it.
    pub const SOFT: u32 = 1 << 30;
}

/// The key of upcalls; the value is how many there were.
pub mod upcall {
    /// The CPU.
    pub const CPU: i16 = 0;
    /// The error, as a positive number; 0 for none.
    pub const ERROR: i16 = 4;
    /// The bytes of the key.
    pub const KEY_SIZE: u32 = 8;
    /// The bytes of the value.
    pub const VALUE_SIZE: u32 = 8;
}

/// An event in the ring.
pub mod event {
    /// When it was entered.
    pub const ENTRY: i16 = 0;
    /// When it was left.
    pub const EXIT: i16 = 8;
    /// The thread.
    pub const TID: i16 = 16;
    /// The call's entry, as an offset in the thread's value.
    pub const CALL: i16 = 20;
    /// The thread's name, 16 bytes.
    pub const COMM: i16 = 24;
    /// The bytes of the kernel's stack, or an error.
    pub const KERNEL_BYTES: i16 = 40;
    /// The bytes of the user's stack, or an error.
    pub const USER_BYTES: i16 = 48;
    /// The call's number.
    pub const NUMBER: i16 = 56;
    /// The kernel's stack, innermost first.
    pub const KERNEL: i16 = 64;
    /// How many addresses of a stack are kept.
    pub const DEPTH: u32 = 64;
    /// The process's registers at the call, as [`super::super::TaskFacts::user_registers`] names them.
    pub const REGISTERS: i16 = KERNEL + (DEPTH * 8) as i16;
    /// How many registers.
    pub const REGISTER_COUNT: u8 = 4;
    /// The user's stack: a copy of its bytes from the stack pointer on, or addresses where none is made.
    pub const USER: i16 = REGISTERS + 8 * REGISTER_COUNT as i16;
    /// The pieces in which a stack is copied: one that can't be read ends the copy.
    pub const PIECE: u32 = 1024;
    /// The most that is copied of a stack.
    pub const MOST_COPIED: u32 = 24 * PIECE;
    /// The bytes of an event with stacks, and so many bytes of the user's copied.
    pub const fn size(copied: u32) -> u32 {
        USER as u32 + if copied == 0 { DEPTH * 8 } else { copied }
    }
    /// The bytes of one without.
    pub const SIZE_PLAIN: u32 = KERNEL as u32;
}

/// The offset of a slot's entry in a thread's value.
pub const fn entry_of(slot: u32) -> u32 {
    value::CALLS as u32 + slot * call::SIZE
}

/// The slot whose entry is at this offset.
pub const fn slot_of(entry: u32) -> u32 {
    entry.saturating_sub(value::CALLS as u32) / call::SIZE
}

/// `BPF_F_NO_PREALLOC` of `linux/bpf.h`: a value takes memory when there is a thread for it.
const NO_PREALLOC: u32 = 1;

/// For how many threads the small values' memory is taken in advance: 20 MiB of it at most.
const MOST_PREALLOCATED: u32 = 1 << 14;

/// The maps. There is room for `threads`, and for a number of rivals and interrupts of each.
pub(super) fn maps(threads: u32) -> Vec<MapDef> {
    let one = |name, size| MapDef::new(name, MapKind::Array, 4, size, 1);
    let hash = |name, key, size, entries| MapDef::new(name, MapKind::Hash, key, size, entries);
    // Where many entries are new at once, and the kernel can't be waited for, only memory that is there already will do.
    let small = |name, key, size| {
        let map = hash(name, key, size, threads.saturating_mul(8));
        if threads <= MOST_PREALLOCATED { map } else { map.with_flags(NO_PREALLOC) }
    };
    vec![
        hash(THREADS, 4, value::SIZE, threads).with_flags(NO_PREALLOC),
        one(WINDOW, window::SIZE),
        one(COUNTS, counts::SIZE),
        one(TEMPLATE, value::SIZE),
        MapDef::new(LOG, MapKind::PercpuArray, 4, log::SIZE, 1),
        small(RIVALS, rival::KEY_SIZE, rival::VALUE_SIZE),
        small(INTERRUPTS, interrupt::KEY_SIZE, interrupt::VALUE_SIZE),
    ]
}
