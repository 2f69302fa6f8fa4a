//! The maps: their names, and what they have room for.

use bpf_insn::{MapDef, MapKind};
use uapi::bpf::NO_PREALLOC;

use super::{Counts, InterruptKey, Log, Places, PreemptorKey, Tally, ThreadValue, WindowValue};

/// Threads by their number (`u32`): all that is known of each, a [`ThreadValue`].
pub const THREADS: &str = "threads";
/// One element, a [`WindowValue`]: when time counts. Written by user space and by triggers.
pub const WINDOW: &str = "window";
/// One element, [`Counts`]: what the programs count for themselves.
pub const COUNTS: &str = "counts";
/// The [`ThreadValue`] that a new thread starts with: one for each CPU, by its number. A CPU's programs write into theirs when the
/// thread starts, before they copy it.
pub const TEMPLATE: &str = "template";
/// Who ran on each CPU lately: a `Log` for each CPU.
pub const LOG: &str = "log";
/// Nanoseconds (`u64`) that others ran while a thread waited, by [`PreemptorKey`].
pub const PREEMPTORS: &str = "preemptors";
/// The threads that wait for a CPU, by its number: its [`Places`].
pub(crate) const PLACES: &str = "places";
/// Interrupts by thread and number: a [`Tally`] by [`InterruptKey`].
pub const INTERRUPTS: &str = "interrupts";
/// Whose turn it is, where programs can't exchange a word in one step: a key that one of [`armed`](super::armed) is, of which one
/// CPU can take it out. The value means nothing.
pub(crate) const TURNS: &str = "turns";
/// How many upcalls of Open vSwitch there were (`u64`), by [`UpcallKey`](super::UpcallKey).
pub const UPCALLS: &str = "upcalls";

/// For how many threads the small values' memory is taken in advance: 40 MiB of it at most.
const MOST_PREALLOCATED: u32 = 1 << 14;

/// The size of a map's key or value.
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// The map of [`TURNS`].
pub(crate) fn turns() -> MapDef {
    MapDef::new(TURNS, MapKind::Hash, 4, 4, 4)
}

/// Returns the maps for a machine of at most `cpus` CPUs, with room for `threads` and for a number of preemptors and interrupts of each.
pub(crate) fn maps(threads: u32, cpus: u32) -> Vec<MapDef> {
    let one = |name, size| MapDef::new(name, MapKind::Array, 4, size, 1);
    let hash = |name, key, size, entries| MapDef::new(name, MapKind::Hash, key, size, entries);
    // Where many entries are new at once, and the kernel can't be waited for, only memory that is there already will do.
    let small = |name, key, size, each: u32| {
        let map = hash(name, key, size, threads.saturating_mul(each));
        if threads <= MOST_PREALLOCATED { map } else { map.with_flags(NO_PREALLOC) }
    };
    vec![
        // A value takes memory when there is a thread for it.
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
