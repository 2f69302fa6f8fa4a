//! Readings of both clocks while a capture goes on, and how far they are apart on the target itself.

use std::time::{Duration, Instant};

use ::capture::JoinError;
use spdk_trace::Ticks;
use sys::clock::{Moment, boot_nanos, monotonic_nanos};
use timeline::{Anchor, BootNanos, Clock};

/// Time between two readings,
const EVERY: Duration = Duration::from_millis(100);
/// and between the first two, then twice as much: a clock needs two, and a capture may be killed soon.
const FIRST: Duration = Duration::from_millis(2);
/// Tries of each, of which the one with the narrowest bracket counts; a `Moment` tries several times itself.
const TRIES: usize = 4;

/// The readings.
pub(super) struct Clocks {
    anchors: Vec<Anchor>,
    last: Option<Instant>,
    /// The time until the next one.
    pause: Duration,
    /// What is to be added to `CLOCK_MONOTONIC` for the boot clock.
    offset: u64,
}

impl Clocks {
    pub(super) fn new() -> Self {
        Self { anchors: Vec::new(), last: None, pause: FIRST, offset: boot_offset() }
    }

    /// A reading, if it is time for one.
    pub(super) fn due(&mut self) -> Option<Anchor> {
        if self.last.is_some_and(|last| last.elapsed() < self.pause) {
            return None;
        }
        self.pause = (2 * self.pause).min(EVERY);
        Some(self.now())
    }

    /// A reading.
    pub(super) fn now(&mut self) -> Anchor {
        self.last = Some(Instant::now());
        let anchor = reading();
        self.anchors.push(anchor);
        anchor
    }

    /// How far hits of probes are apart on both clocks: of each its own ticks and the kernel's time, `CLOCK_MONOTONIC`.
    pub(super) fn join_error(&self, hits: &[(u64, u64)]) -> Option<JoinError> {
        let clock = Clock::new(self.anchors.clone()).ok()?;
        let difference = |&(ticks, nanos): &(u64, u64)| clock.nanos(Ticks(ticks)).0.abs_diff(nanos + self.offset);
        JoinError::of(hits.iter().map(difference).collect())
    }
}

fn reading() -> Anchor {
    let tries = [(); TRIES].map(|()| Moment::now(boot_nanos));
    let best = tries.into_iter().reduce(|best, next| if next.bracket < best.bracket { next } else { best });
    let Moment { ticks, nanos, bracket } = best.unwrap_or(tries[0]);
    Anchor { ticks: Ticks(ticks), nanos: BootNanos(nanos), bracket: Ticks(bracket) }
}

/// How far the boot clock is before the monotonic one: the time that the machine slept. Both count alike, so that each try narrows
/// it further down.
fn boot_offset() -> u64 {
    let (mut least, mut most) = (0, u64::MAX);
    for _ in 0..100 {
        let before = monotonic_nanos();
        let boot = boot_nanos();
        let after = monotonic_nanos();
        (least, most) = (least.max(boot.saturating_sub(after)), most.min(boot.saturating_sub(before)));
    }
    least + most.saturating_sub(least) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_of_our_own_are_hardly_apart() {
        let mut clocks = Clocks::new();
        let hit = || {
            let moment = Moment::now(monotonic_nanos);
            (moment.ticks, moment.nanos)
        };
        clocks.now();
        let mut hits = Vec::new();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(5));
            hits.push(hit());
            clocks.now();
        }
        assert!(clocks.due().is_none() || clocks.pause > FIRST);
        let join = clocks.join_error(&hits).unwrap();
        // Both readings of each are in one bracket, on a machine that may do something else meanwhile.
        assert!(join.hits == 5 && join.p50 < 1_000_000, "{join:?}");
        assert_eq!(clocks.join_error(&[]), None);
    }
}
