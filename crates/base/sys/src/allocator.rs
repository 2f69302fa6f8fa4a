//! How much memory the C library's allocator keeps of what is given back to it (mallopt(3), malloc_trim(3)).

/// Blocks of this many bytes and more are mappings of their own. Without this, glibc raises the limit up to 32 MiB as blocks are freed,
/// and what lies above a block that is in use stays with the process.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 << 10;
/// Bytes at the end of the heap that are kept.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 256 << 10;
/// Heaps. glibc makes up to eight for each CPU, and each keeps what its threads gave back.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Has the allocator keep little: for a program that runs for days, before it starts threads. Large blocks cost some more time.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [(libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, KEPT), (libc::M_ARENA_MAX, HEAPS)]
    {
        // SAFETY: it takes two numbers, and changes how later requests are served. What it does not know it leaves alone.
        unsafe { libc::mallopt(option, value) };
    }
}

/// Gives back to the kernel what is not in use.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number of bytes, and touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
