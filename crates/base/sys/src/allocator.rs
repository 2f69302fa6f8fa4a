//! Limits on the freed memory that the C library's allocator keeps (mallopt(3), malloc_trim(3)).

/// Minimum size of blocks with separate mappings, in bytes. Without this, glibc raises the limit up
/// to 32 MiB as blocks are freed, and free memory above a block in use stays with the process.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD_BYTES: libc::c_int = 128 << 10;
/// Bytes kept at the end of the heap.
#[cfg(target_env = "gnu")]
const TRIM_THRESHOLD_BYTES: libc::c_int = 256 << 10;
/// Limit on heaps. glibc makes up to eight for each CPU, and each keeps the memory freed by its
/// threads.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes the allocator keep little freed memory. For a program that runs for days, before it starts
/// threads. Large blocks cost some more time.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        (libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES),
        (libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES),
        (libc::M_ARENA_MAX, HEAPS),
    ] {
        // SAFETY: the call takes two numbers, and changes how later requests are served. It ignores
        // unknown options.
        unsafe { libc::mallopt(option, value) };
    }
}

/// Returns unused memory to the kernel.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number of bytes, and touches no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
