//! The clocks of records and events.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds of `CLOCK_MONOTONIC`, as `bpf_ktime_get_ns` does in a program.
pub fn monotonic_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Returns nanoseconds of `CLOCK_BOOTTIME`: as [`monotonic_nanos`], including suspended time.
pub fn boot_nanos() -> u64 {
    nanos(ClockId::Boottime)
}

/// Returns nanoseconds since 1970, by `CLOCK_REALTIME`.
pub fn real_nanos() -> u64 {
    nanos(ClockId::Realtime)
}

/// Returns the CPU time of this thread.
pub fn thread_ran() -> std::time::Duration {
    std::time::Duration::from_nanos(nanos(ClockId::ThreadCPUTime))
}

/// Returns the CPU time of this process, over all of its threads.
pub fn process_ran() -> std::time::Duration {
    std::time::Duration::from_nanos(nanos(ClockId::ProcessCPUTime))
}

/// The processor's counter and a kernel clock, read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Mean of the counter before and after the clock was read.
    pub ticks: u64,
    /// Value of the clock, in nanoseconds.
    pub nanos: u64,
    /// Difference between the two readings of the counter.
    pub bracket: u64,
}

impl Moment {
    /// Reads the counter and this clock. Returns the try with the smallest bracket of four: the
    /// first may have to fetch a page.
    pub fn now(read: fn() -> u64) -> Self {
        let tries = [(); 4].map(|()| {
            let before = ticks();
            let nanos = read();
            let bracket = ticks().saturating_sub(before);
            Self {
                ticks: before + bracket / 2,
                nanos,
                bracket,
            }
        });
        tries
            .into_iter()
            .reduce(|best, next| {
                if next.bracket < best.bracket {
                    next
                } else {
                    best
                }
            })
            .unwrap_or(tries[0])
    }
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// Returns the processor's own counter, as SPDK reads it (`spdk_get_ticks`): `rdtsc` on x86-64,
/// `cntvct_el0` on aarch64.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the processor's own counter, as SPDK reads it (`spdk_get_ticks`): `rdtsc` on x86-64,
/// `cntvct_el0` on aarch64.
#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user programs read this register, and the instruction touches no memory.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    };
    ticks
}
