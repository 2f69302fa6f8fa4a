//! Senders of the signals that stop threads.

use super::{Activities, Activity, Thread};
use crate::BootNanos;
use crate::activity::thread::State;
use crate::kernel::Tid;

/// Longest time in nanoseconds from a signal to the stop that it makes. A process can catch `SIGTSTP`,
/// and `SIGCONT` can take back a signal: a debugger's stop long after it has nothing to do with it.
const MAX_DELAY: u64 = 1_000_000_000;

impl Activities {
    /// Handles a signal that stops the process. One that comes while a thread is stopped changes
    /// nothing for it.
    pub(super) fn stop_signal(&mut self, by: Tid) {
        for thread in self.threads.values_mut() {
            if thread.state != State::Stopped {
                (thread.stopper, thread.signalled) = (Some(by), self.last);
            }
        }
    }
}

impl Thread {
    /// Forgets the signal at the beginning of a stop if it is too old.
    pub(super) fn begins_stop(&mut self, now: BootNanos) {
        if now.0.saturating_sub(self.signalled.0) > MAX_DELAY {
            self.stopper = None;
        }
    }

    /// Ends its stop, if it is stopped: the next one has another signal.
    pub(super) fn continues(&mut self) {
        if self.state == State::Stopped {
            self.stopper = None;
        }
    }

    /// Forgets who stopped it since then, and who is about to stop it.
    pub(super) fn doubt_stopper(&mut self, since: BootNanos, now: BootNanos) {
        let is_stopped = self.state == State::Stopped;
        if is_stopped {
            self.close(now, None);
        }
        let first = self.done.partition_point(|interval| interval.from < since);
        let later = self.done.get_mut(first.max(self.given)..);
        for interval in later.into_iter().flatten() {
            if let Activity::Stopped(by) = &mut interval.activity {
                *by = None;
            }
        }
        let is_before = self.done.last().is_some_and(|last| last.from < since);
        if !is_stopped || !is_before {
            self.stopper = None;
        }
    }
}
