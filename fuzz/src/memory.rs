//! How much memory a reader takes: measured exactly, since libFuzzer's own limit is on all that was ever allocated.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a reader may take besides a multiple of its input: tables whose size is fixed.
const FIXED_BYTES: usize = 2 << 20;

/// Runs `reader` over an input of `size` bytes; it may take `times` as much memory, and a little.
pub fn within<T>(size: usize, times: usize, reader: impl FnOnce() -> T) -> T {
    within_more(size, times, FIXED_BYTES, reader)
}

/// How long this thread has been on a processor, in nanoseconds (Documentation/scheduler/sched-stats.rst): other processes
/// of the machine don't count.
pub fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace()
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or(0)
}

/// The same, and `more` bytes besides.
pub fn within_more<T>(size: usize, times: usize, more: usize, reader: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = reader();
    let used = MEMORY.peak_usage().saturating_sub(before);
    assert!(
        used <= size * times + more,
        "{used} bytes taken for an input of {size} bytes"
    );
    result
}
