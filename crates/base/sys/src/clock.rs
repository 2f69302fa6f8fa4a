//! The two clocks that the times of records and events come from.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: what `bpf_ktime_get_ns` gives in a program.
pub fn monotonic_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Nanoseconds of `CLOCK_BOOTTIME`: as [`monotonic_nanos`], with the time that the machine slept.
pub fn boot_nanos() -> u64 {
    nanos(ClockId::Boottime)
}

/// Nanoseconds since 1970, of `CLOCK_REALTIME`.
pub fn real_nanos() -> u64 {
    nanos(ClockId::Realtime)
}

/// How long this thread has been on CPUs.
pub fn thread_ran() -> std::time::Duration {
    std::time::Duration::from_nanos(nanos(ClockId::ThreadCPUTime))
}

/// How long this process has been on CPUs, all of its threads together.
pub fn process_ran() -> std::time::Duration {
    std::time::Duration::from_nanos(nanos(ClockId::ProcessCPUTime))
}

/// The processor's counter and a clock of the kernel, read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Halfway between the counter before the clock was read and after it.
    pub ticks: u64,
    /// The clock.
    pub nanos: u64,
    /// How far both readings of the counter are apart.
    pub bracket: u64,
}

impl Moment {
    /// Now, by the clock that this reads. Of several tries it is the one that the least came between: the first may have had
    /// to fetch a page.
    pub fn now(read: fn() -> u64) -> Self {
        let tries = [(); 4].map(|()| {
            let before = ticks();
            let nanos = read();
            let bracket = ticks().saturating_sub(before);
            Self { ticks: before + bracket / 2, nanos, bracket }
        });
        tries.into_iter().reduce(|best, next| if next.bracket < best.bracket { next } else { best }).unwrap_or(tries[0])
    }
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// The processor's own counter, as SPDK reads it (`spdk_get_ticks`): `rdtsc` on x86-64, `cntvct_el0` on aarch64.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The processor's own counter, as SPDK reads it (`spdk_get_ticks`): `rdtsc` on x86-64, `cntvct_el0` on aarch64.
#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user programs read this register, and the instruction touches no memory.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}
