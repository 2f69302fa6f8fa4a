//! What lies in the maps and in the ring: programs take offsets from these structures, readers get the structures themselves.

use bpf_insn::{MapDef, MapKind};
pub use bpf_program::event::RING;
use sched_programs::Comm;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The beginning of a workqueue's name, as far as it is kept of a work item.
pub type QueueName = [u8; 24];

/// What may have a CPU. A kind is an index of [`State::totals`].
pub mod kind {
    /// The thread `id`; 0 is the idle one.
    pub const THREAD: u32 = 1;
    /// A kworker in the work function `id`.
    pub const WORK: u32 = 2;
    /// The device interrupt `id`, one of its handlers.
    pub const HARD: u32 = 3;
    /// The soft interrupt `id`.
    pub const SOFT: u32 = 4;
    /// The interrupt of the CPU's own timer (x86-64; on others it is a device interrupt).
    pub const TIMER_INTERRUPT: u32 = 5;
    /// Another CPU's call of functions, for several CPUs.
    pub const CALLS: u32 = 6;
    /// Another CPU's call of functions, for this one.
    pub const CALL: u32 = 7;
    /// Another CPU has a thread for this one.
    pub const RESCHEDULE: u32 = 8;
    /// Work that an interrupt left for another interrupt.
    pub const IRQ_WORK: u32 = 9;
    /// The function `id` of a timer of high resolution.
    pub const HRTIMER: u32 = 10;
    /// The function `id` of an ordinary timer.
    pub const TIMER: u32 = 11;
    /// The function `id` that another CPU called.
    pub const FUNCTION: u32 = 12;
    /// An interrupt from another CPU (aarch64), whose reason is the text at the address `id`.
    pub const IPI: u32 = 13;
    /// Interrupts that cannot be masked.
    pub const NMI: u32 = 14;

    /// In a tally's key: not what ran, but what waited to run.
    pub const WAITED: u32 = 0x100;

    /// In [`super::Key::by_kind`]: `by` is the number of a stack.
    pub const STACK: u32 = 0x200;
}

/// How many kinds there can be: a power of two.
pub const KINDS: usize = 16;
/// How many levels a CPU has: a thread, and what interrupts that. A power of two.
pub const LEVELS: usize = 8;
/// How many soft interrupts there are (`NR_SOFTIRQS` of `include/linux/interrupt.h`), rounded up to a power of two.
pub const VECTORS: usize = 16;
/// How many classes a histogram of lengths has.
pub const CLASSES: usize = 24;
/// Lengths of the first class are shorter than two to the power of this, in nanoseconds; each class is twice as long.
pub const FIRST_CLASS: u32 = 9;

/// What a CPU is at, on one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Level {
    /// One of [`kind`].
    pub kind: u32,
    /// Of which kind the cause is, or 0.
    pub by_kind: u32,
    /// Which one: by its kind.
    pub id: u64,
    /// Its cause, by `by_kind`.
    pub by: u64,
    /// Nanoseconds that it took so far, without those of what interrupted it. Always 0 in a level that is not used.
    pub own: u64,
    /// When it began, in nanoseconds of the monotonic clock.
    pub began: u64,
    /// A name, where there is one: the thread's, the interrupt's, or of the thread that caused it.
    pub name: Comm,
    /// The thread group, of a thread.
    pub tgid: u32,
    /// Of a thread, its policy and its priority; see [`detail`].
    pub detail: u32,
}

/// What is in [`Level::detail`].
pub mod detail {
    /// The bits of the priority (`task_struct.prio`) are those from here on.
    pub const PRIORITY: u32 = 8;
    /// It was switched off the CPU meanwhile and goes on: it does not count again.
    pub const RESUMED: u32 = 1 << 16;
}

/// Sums of one kind on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Total {
    /// How many there were.
    pub count: u64,
    /// Nanoseconds of all.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
    /// For whole powers of two.
    pub unused: u64,
}

/// A soft interrupt that was raised and not entered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Raised {
    /// When; 0 if it is not raised.
    pub at: u64,
    /// What the CPU was at: its id.
    pub by: u64,
    /// And its kind.
    pub by_kind: u32,
    /// For whole powers of two.
    pub unused: u32,
    /// And its name.
    pub name: Comm,
    /// For whole powers of two.
    pub unused_too: [u64; 3],
}

/// All that is known of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct State {
    /// Whether it is being audited.
    pub on: u32,
    /// The number of the level it is at.
    pub depth: u32,
    /// Until when its time is accounted for.
    pub mark: u64,
    /// When its window began.
    pub start: u64,
    /// When it ended; while it is audited, when the last turn was.
    pub stop: u64,
    /// What the maps had no room for: times that are in the totals, and not in the tallies.
    pub lost: u64,
    /// Single ones that the ring had no room for.
    pub unsent: u64,
    /// Entries beyond the last level.
    pub too_deep: u64,
    /// Ends whose begin was not seen: those of the interrupt in which the window began.
    pub unpaired: u64,
    /// What waits and is not known of, since the map had no room.
    pub unseen: u64,
    /// Who last had a thread for this CPU, and sent an interrupt for that.
    pub waker: Sender,
    /// What it is at: a thread, and what interrupted that.
    pub levels: [Level; LEVELS],
    /// Sums by kind.
    pub totals: [Total; KINDS],
    /// Soft interrupts that are raised.
    pub raised: [Raised; VECTORS],
    /// The sums when the last window ended that another one followed.
    pub turned: [Total; KINDS],
}

/// What a tally is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Key {
    /// The CPU.
    pub cpu: u32,
    /// One of [`kind`], with [`kind::WAITED`] if it waited.
    pub kind: u32,
    /// Which one.
    pub id: u64,
    /// Its cause.
    pub by: u64,
    /// Of which kind the cause is, or 0.
    pub by_kind: u32,
    /// Nothing.
    pub unused: u32,
}

/// One that is over, as it is sent with `--each` and as it is added to its tally.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Episode {
    /// What it was.
    pub key: Key,
    /// Nanoseconds that it took, without those of what interrupted it; or that it waited.
    pub own: u64,
    /// When it began.
    pub began: u64,
    /// See [`Level::name`].
    pub name: Comm,
    /// See [`Level::tgid`].
    pub tgid: u32,
    /// See [`Level::detail`].
    pub detail: u32,
}

/// Sums of those with one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Nanoseconds of all.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
    /// When the longest began.
    pub longest_at: u64,
    /// How many there were of each class of lengths.
    pub classes: [u32; CLASSES],
    /// See [`Level::name`]: that of the last one.
    pub name: Comm,
    /// See [`Level::tgid`].
    pub tgid: u32,
    /// See [`Level::detail`].
    pub detail: u32,
}

/// A thread that could run, and does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Waiting {
    /// For which CPU.
    pub cpu: u32,
    /// Its thread group.
    pub tgid: u32,
    /// Since when.
    pub since: u64,
    /// Its name.
    pub name: Comm,
}

/// A work item that is queued, and not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Queued {
    /// Since when.
    pub since: u64,
    /// Its function.
    pub function: u64,
    /// The number of the stack of who queued it; negative if there is none.
    pub stack: u64,
    /// For which CPU; -1 if for any.
    pub cpu: i32,
    /// The thread that queued it.
    pub by: u32,
    /// The workqueue's name.
    pub queue: QueueName,
}

/// What a kworker runs at present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Running {
    /// The function.
    pub function: u64,
    /// See [`Queued::stack`].
    pub stack: u64,
    /// The workqueue's name, as far as a level has room for it.
    pub queue: Comm,
}

/// Who asked another CPU to call a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sender {
    /// The thread.
    pub tid: u64,
    /// Its name.
    pub name: Comm,
}

/// How many callers a stack has.
pub const FRAMES: usize = 12;

/// By CPU: a [`State`].
pub const STATES: &str = "states";
/// By [`Key`]: a [`Tally`].
pub const TALLIES: &str = "tallies";
/// By thread: a [`Waiting`].
pub const WAITING: &str = "waiting";
/// By the address of a work item: a [`Queued`].
pub const QUEUED: &str = "queued";
/// By thread: a [`Running`].
pub const RUNNING: &str = "running";
/// By the address of what a CPU is asked to call: a [`Sender`].
pub const SENDERS: &str = "senders";
/// By number: [`FRAMES`] addresses.
pub const STACKS: &str = "stacks";

/// How many tallies there is room for: 1.5 MiB of them.
const MOST_TALLIES: u32 = 8192;
/// How many there is room for that wait, of each kind.
const MOST_WAITING: u32 = 4096;

const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// The maps, for that many CPUs and a ring of that many bytes; 0 for no ring.
pub(crate) fn maps(cpus: u32, ring_bytes: u32) -> Vec<MapDef> {
    let hash = |name, key, value, most| MapDef::new(name, MapKind::Hash, key, value, most);
    let mut maps = vec![
        MapDef::new(STATES, MapKind::Array, 4, size::<State>(), cpus),
        hash(TALLIES, size::<Key>(), size::<Tally>(), MOST_TALLIES),
        hash(WAITING, 4, size::<Waiting>(), MOST_WAITING),
        hash(QUEUED, 8, size::<Queued>(), MOST_WAITING),
        hash(RUNNING, 4, size::<Running>(), MOST_WAITING),
        hash(SENDERS, 8, size::<Sender>(), MOST_WAITING),
        MapDef::new(STACKS, MapKind::StackTrace, 4, size::<[u64; FRAMES]>(), 1024),
    ];
    if ring_bytes > 0 {
        maps.push(MapDef::ring_buffer(RING, ring_bytes));
    }
    maps
}
