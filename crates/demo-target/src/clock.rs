//! The machine's tick counter, for the times of probes and records.

use std::time::{Duration, Instant};

/// How long its rate is measured.
const MEASURE: Duration = Duration::from_millis(20);

/// The counter now: what `spdk_get_ticks` reads.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the intrinsic is declared so")]
pub(crate) fn ticks() -> u64 {
    // SAFETY: RDTSC is in every x86-64 processor; Linux leaves it allowed to processes (prctl(2), PR_SET_TSC).
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The counter now: what `spdk_get_ticks` reads.
#[cfg(target_arch = "aarch64")]
#[inline]
#[expect(unsafe_code, reason = "a system register is read by an instruction of its own")]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux opens to processes, and touches nothing else.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

/// Ticks a second, measured.
pub(crate) fn tick_rate() -> u64 {
    let (start, first) = (Instant::now(), ticks());
    std::thread::sleep(MEASURE);
    let (last, nanos) = (ticks(), start.elapsed().as_nanos());
    let rate = u128::from(last.saturating_sub(first)) * 1_000_000_000 / nanos.max(1);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// One thread's stamps: no two are the same, and none steps back, even where two CPUs' counters differ.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    last: u64,
}

impl Stamps {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.last = ticks().max(self.last + 1);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise() {
        let mut stamps = Stamps::default();
        let taken: Vec<u64> = (0..1000).map(|_| stamps.next()).collect();
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        stamps.last = u64::MAX - 1;
        assert_eq!(stamps.next(), u64::MAX);
    }
}
