//! Waiting for the end of a sample, of the processes, or for an interrupt.

use crate::Sampler;
use crate::live::WindowState;
use crate::sampling::POLL_INTERVAL;
use observer::Progress;
use std::time::Duration;
use sys::clock::monotonic_nanos;

/// What a wait without a fixed end is for, as the status line says.
pub(super) const FOR_TRIGGER: &str = "waiting for the trigger";
pub(super) const SAMPLING: &str = "sampling";

/// Sleeps until a moment that is very near.
pub(super) fn sleep_until(moment: u64) {
    std::thread::sleep(Duration::from_nanos(
        moment.saturating_sub(monotonic_nanos()),
    ));
}

impl Sampler {
    /// Polls until the predicate holds; returns false on a stop request or if the processes have
    /// ended. The status line says `what` the wait is for.
    pub(super) fn until(
        &self,
        what: &str,
        is_so: impl Fn(&WindowState) -> bool,
    ) -> anyhow::Result<bool> {
        let mut progress = Progress::new(&self.observer);
        loop {
            if is_so(&self.tracer.window()?) {
                return Ok(true);
            }
            progress.show(|since| format!("{what}, {} s so far (Ctrl-C ends it)", since.as_secs()));
            if self.is_over()? {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for a moment; returns false on a stop request or if the processes have ended.
    pub(super) fn wait_until(&self, moment: u64) -> anyhow::Result<bool> {
        let expected = Duration::from_nanos(moment.saturating_sub(monotonic_nanos()));
        let mut progress = Progress::expected(&self.observer, expected);
        loop {
            let left = moment.saturating_sub(monotonic_nanos());
            if left == 0 {
                return Ok(true);
            }
            progress.show(|_| format!("sampling, {:.1} s left", left as f64 / 1e9));
            if self.is_over()? {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL.min(Duration::from_nanos(left)));
        }
    }

    /// Returns true if all requested processes have ended.
    pub(super) fn have_ended(&self) -> anyhow::Result<bool> {
        for process in &self.processes {
            if !process.has_ended()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn is_over(&self) -> anyhow::Result<bool> {
        Ok(self.observer.is_stop_requested() || self.have_ended()?)
    }
}
