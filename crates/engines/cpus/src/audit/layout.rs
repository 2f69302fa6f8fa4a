//! Layout of the maps and of the ring: programs take offsets from these structures, readers get the
//! structures themselves.

use bpf_insn::{MapDef, MapKind};
pub use bpf_program::event::RING;
use sched_programs::Comm;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Start of a workqueue's name, as far as a work item keeps it.
pub type QueueName = [u8; 24];

/// Kinds of things that may have a CPU; a kind is an index of [`State::totals`].
pub mod kind {
    /// Thread `id`; 0 is the idle thread.
    pub const THREAD: u32 = 1;
    /// Kworker that runs the work function `id`.
    pub const WORK: u32 = 2;
    /// One of the handlers of the device interrupt `id`.
    pub const HARD: u32 = 3;
    /// Soft interrupt `id`.
    pub const SOFT: u32 = 4;
    /// Interrupt of the CPU's own timer (x86-64; elsewhere it is a device interrupt).
    pub const TIMER_INTERRUPT: u32 = 5;
    /// Call interrupt from another CPU, for several CPUs.
    pub const CALLS: u32 = 6;
    /// Call interrupt from another CPU, for this one only.
    pub const CALL: u32 = 7;
    /// Reschedule interrupt: another CPU has a thread for this one.
    pub const RESCHEDULE: u32 = 8;
    /// Work that an interrupt left for another interrupt.
    pub const IRQ_WORK: u32 = 9;
    /// Function `id` of a high-resolution timer.
    pub const HRTIMER: u32 = 10;
    /// Function `id` of an ordinary timer.
    pub const TIMER: u32 = 11;
    /// Function `id` that another CPU called.
    pub const FUNCTION: u32 = 12;
    /// Interrupt from another CPU (aarch64); its reason is the text at the address `id`.
    pub const IPI: u32 = 13;
    /// Non-maskable interrupts.
    pub const NMI: u32 = 14;

    /// Flag in the kind of a tally's key: the time of waiting to run, not of running.
    pub const WAITED: u32 = 0x100;

    /// Value of [`super::Key::by_kind`] if `by` is the number of a stack.
    pub const STACK: u32 = 0x200;
}

/// Number of slots for kinds, a power of two.
pub const KINDS: usize = 16;
/// Number of levels of a CPU (a thread, and what interrupts it), a power of two.
pub const LEVELS: usize = 8;
/// Number of soft interrupts (`NR_SOFTIRQS` of `include/linux/interrupt.h`), rounded up to a power
/// of two.
pub const VECTORS: usize = 16;
/// Number of classes in a histogram of lengths.
pub const CLASSES: usize = 24;
/// Binary logarithm of the upper bound of the first class of lengths, in nanoseconds; each class
/// ends at twice the bound of the one before.
pub const FIRST_CLASS: u32 = 9;

/// State of a CPU on one level.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Level {
    /// One of [`kind`].
    pub kind: u32,
    /// Kind of the cause, or 0.
    pub by_kind: u32,
    /// Id within the kind.
    pub id: u64,
    /// Cause, by `by_kind`.
    pub by: u64,
    /// Nanoseconds taken so far, without those of what interrupted it. Always 0 in an unused level.
    pub own: u64,
    /// Start, in nanoseconds of the monotonic clock.
    pub began: u64,
    /// Name, if there is one: of the thread, of the interrupt, or of the thread that caused it.
    pub name: Comm,
    /// Thread group, for a thread.
    pub tgid: u32,
    /// Policy and priority, for a thread; see [`detail`].
    pub detail: u32,
}

/// Bits of [`Level::detail`]; the lowest eight are the policy.
pub mod detail {
    /// First bit of the priority (`task_struct.prio`).
    pub const PRIORITY: u32 = 8;
    /// Flag of a level that was counted already: its work was switched off the CPU and goes on, or
    /// a window turned.
    pub const RESUMED: u32 = 1 << 16;
}

/// Sums of one kind on one CPU.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Total {
    /// Number of episodes.
    pub count: u64,
    /// Nanoseconds of all episodes.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
    /// Padding to a power of two.
    pub unused: u64,
}

/// Soft interrupt that was raised and not entered yet.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RaisedSoftirq {
    /// Time of raising; 0 if it is not raised.
    pub at: u64,
    /// Id of the raiser: the current level of the CPU then.
    pub by: u64,
    /// Kind of the raiser.
    pub by_kind: u32,
    /// Padding to a power of two.
    pub unused: u32,
    /// Name of the raiser.
    pub name: Comm,
    /// Padding to a power of two.
    pub unused_too: [u64; 3],
}

/// State of a CPU, with all its sums.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct State {
    /// 1 while the CPU is audited, else 0.
    pub on: u32,
    /// Number of the current level.
    pub depth: u32,
    /// Time up to which the CPU's time is accounted for.
    pub mark: u64,
    /// Start of the window.
    pub start: u64,
    /// End of the window; time of the last turn while the CPU is audited.
    pub stop: u64,
    /// Episodes that the tallies had no room for; the totals have their times.
    pub lost: u64,
    /// Individual intrusions that the ring had no room for.
    pub unsent: u64,
    /// Entries beyond the last level.
    pub too_deep: u64,
    /// Ends without a start, such as that of the interrupt in which the window began.
    pub unpaired: u64,
    /// Waits that are unknown because the map had no room.
    pub unseen: u64,
    /// Thread that last sent this CPU an interrupt to hand it a thread.
    pub waker: Sender,
    /// Current levels: a thread, and what interrupts it.
    pub levels: [Level; LEVELS],
    /// Sums by kind.
    pub totals: [Total; KINDS],
    /// Raised soft interrupts, by vector.
    pub raised: [RaisedSoftirq; VECTORS],
    /// Sums by kind at the last turn.
    pub turned: [Total; KINDS],
}

/// Key of a tally.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Key {
    /// CPU number.
    pub cpu: u32,
    /// One of [`kind`], with [`kind::WAITED`] if it waited.
    pub kind: u32,
    /// Id within the kind.
    pub id: u64,
    /// Cause, by `by_kind`.
    pub by: u64,
    /// Kind of the cause, or 0.
    pub by_kind: u32,
    /// Padding; 0.
    pub unused: u32,
}

/// Finished episode, as sent with `--each` and as added to its tally.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Episode {
    /// Key of its tally.
    pub key: Key,
    /// Nanoseconds it took, without those of what interrupted it; or nanoseconds it waited.
    pub own: u64,
    /// Start, in nanoseconds of the monotonic clock.
    pub began: u64,
    /// See [`Level::name`].
    pub name: Comm,
    /// See [`Level::tgid`].
    pub tgid: u32,
    /// See [`Level::detail`].
    pub detail: u32,
}

/// Sums of all episodes with one key.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Tally {
    /// Number of episodes.
    pub count: u64,
    /// Nanoseconds of all episodes.
    pub total: u64,
    /// Nanoseconds of the longest.
    pub longest: u64,
    /// Start of the longest, in nanoseconds of the monotonic clock.
    pub longest_at: u64,
    /// Number of episodes by class of length.
    pub classes: [u32; CLASSES],
    /// Name of the last episode; see [`Level::name`].
    pub name: Comm,
    /// See [`Level::tgid`].
    pub tgid: u32,
    /// See [`Level::detail`].
    pub detail: u32,
}

/// Runnable thread that is not running.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct WaitingThread {
    /// CPU that it waits for.
    pub cpu: u32,
    /// Thread group.
    pub tgid: u32,
    /// Start of the wait, in nanoseconds of the monotonic clock.
    pub since: u64,
    /// Name of the thread.
    pub name: Comm,
}

/// Work item that is queued and not begun.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct QueuedWork {
    /// Time of queueing, in nanoseconds of the monotonic clock.
    pub since: u64,
    /// Address of its function.
    pub function: u64,
    /// Number of the stack that queued it; negative (as `i64`) if there is none.
    pub stack: u64,
    /// CPU that it is queued for; -1 for any CPU.
    pub cpu: i32,
    /// Thread that queued it.
    pub by: u32,
    /// Name of the workqueue.
    pub queue: QueueName,
}

/// Work item that a kworker runs at present.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RunningWork {
    /// Address of its function.
    pub function: u64,
    /// See [`QueuedWork::stack`].
    pub stack: u64,
    /// Name of the workqueue, as far as a level has room for it.
    pub queue: Comm,
}

/// Thread that asked another CPU to call a function.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Sender {
    /// Thread id.
    pub tid: u64,
    /// Name of the thread.
    pub name: Comm,
}

/// Number of callers in a stack.
pub const FRAMES: usize = 12;

/// Name of the map from CPU to [`State`].
pub const STATES: &str = "states";
/// Name of the map from [`Key`] to [`Tally`].
pub const TALLIES: &str = "tallies";
/// Name of the map from thread to [`WaitingThread`].
pub const WAITING: &str = "waiting";
/// Name of the map from the address of a work item to [`QueuedWork`].
pub const QUEUED: &str = "queued";
/// Name of the map from thread to [`RunningWork`].
pub const RUNNING: &str = "running";
/// Name of the map from the address of a call's data (`csd`) to [`Sender`].
pub const SENDERS: &str = "senders";
/// Name of the map from number to [`FRAMES`] addresses.
pub const STACKS: &str = "stacks";

/// Limit on tallies: 1.5 MiB of them.
const MAX_TALLIES: u32 = 8192;
/// Limit on entries of each map of waits, running work or senders.
const MAX_WAITING: u32 = 4096;

const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// Returns the maps for `cpus` CPUs and a ring of `ring_bytes` bytes; 0 for no ring.
pub(crate) fn maps(cpus: u32, ring_bytes: u32) -> Vec<MapDef> {
    let hash = |name, key, value, most| MapDef::new(name, MapKind::Hash, key, value, most);
    let mut maps = vec![
        MapDef::new(STATES, MapKind::Array, 4, size::<State>(), cpus),
        hash(TALLIES, size::<Key>(), size::<Tally>(), MAX_TALLIES),
        hash(WAITING, 4, size::<WaitingThread>(), MAX_WAITING),
        hash(QUEUED, 8, size::<QueuedWork>(), MAX_WAITING),
        hash(RUNNING, 4, size::<RunningWork>(), MAX_WAITING),
        hash(SENDERS, 8, size::<Sender>(), MAX_WAITING),
        MapDef::new(
            STACKS,
            MapKind::StackTrace,
            4,
            size::<[u64; FRAMES]>(),
            1024,
        ),
    ];
    if ring_bytes > 0 {
        maps.push(MapDef::ring_buffer(RING, ring_bytes));
    }
    maps
}
