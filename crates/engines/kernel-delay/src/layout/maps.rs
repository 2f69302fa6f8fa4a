//! Names and sizes of the maps.

use bpf_insn::{MapDef, MapKind};
use uapi::bpf::NO_PREALLOC;

use super::{Counts, InterruptKey, Log, Places, PreemptorKey, Tally, ThreadValue, WindowValue};

/// Threads by number (`u32`): everything known of each, as a [`ThreadValue`].
pub const THREADS: &str = "threads";
/// Single [`WindowValue`]: when time counts. User space and triggers write it.
pub const WINDOW: &str = "window";
/// Single [`Counts`]: the counts of the programs themselves.
pub const COUNTS: &str = "counts";
/// Initial [`ThreadValue`] of a new thread: one for each CPU, by its number. A CPU's programs write
/// into theirs when the thread starts, before they copy it.
pub const TEMPLATE: &str = "template";
/// Log of the tasks that ran lately, one `Log` for each CPU.
pub const LOG: &str = "log";
/// Nanoseconds (`u64`) that others ran while a thread waited, by [`PreemptorKey`].
pub const PREEMPTORS: &str = "preemptors";
/// Threads that wait for a CPU, by its number: its [`Places`].
pub(crate) const PLACES: &str = "places";
/// Interrupts by thread and number: a [`Tally`] by [`InterruptKey`].
pub const INTERRUPTS: &str = "interrupts";
/// Turns of triggers, if programs can't exchange a word in one step: a key that is one of
/// [`armed`](super::armed), which only one CPU can take out. The value is unused.
pub(crate) const TURNS: &str = "turns";
/// Number of upcalls of Open vSwitch (`u64`), by [`UpcallKey`](super::UpcallKey).
pub const UPCALLS: &str = "upcalls";

/// Maximum number of threads for which the small values' memory is preallocated: at most 40 MiB.
const MAX_PREALLOCATED_THREADS: u32 = 1 << 14;

/// Returns the size of a map's key or value.
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// Returns the definition of [`TURNS`].
pub(crate) fn turns() -> MapDef {
    MapDef::new(TURNS, MapKind::Hash, 4, 4, 4)
}

/// Returns the maps for a machine of at most `cpus` CPUs, with room for `threads`, and for a number
/// of preemptors and interrupts of each.
pub(crate) fn maps(threads: u32, cpus: u32) -> Vec<MapDef> {
    let one = |name, size| MapDef::new(name, MapKind::Array, 4, size, 1);
    let hash = |name, key, size, entries| MapDef::new(name, MapKind::Hash, key, size, entries);
    // Many entries may be new at once, and the program can't wait for the kernel: only preallocated
    // memory will do.
    let small = |name, key, size, each: u32| {
        let map = hash(name, key, size, threads.saturating_mul(each));
        if threads <= MAX_PREALLOCATED_THREADS {
            map
        } else {
            map.with_flags(NO_PREALLOC)
        }
    };
    vec![
        // A value takes memory only if there is a thread for it.
        hash(THREADS, 4, size::<ThreadValue>(), threads).with_flags(NO_PREALLOC),
        one(WINDOW, size::<WindowValue>()),
        one(COUNTS, size::<Counts>()),
        MapDef::new(TEMPLATE, MapKind::Array, 4, size::<ThreadValue>(), cpus),
        MapDef::new(LOG, MapKind::PercpuArray, 4, size::<Log>(), 1),
        MapDef::new(PLACES, MapKind::Array, 4, size::<Places>(), cpus),
        small(PREEMPTORS, size::<PreemptorKey>(), size::<u64>(), 16),
        small(INTERRUPTS, size::<InterruptKey>(), size::<Tally>(), 12),
    ]
}
