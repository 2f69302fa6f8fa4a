//! Senders of the signals that stop threads.

use super::{Activities, Activity, Thread};
use crate::BootNanos;
use crate::activity::thread::State;
use crate::kernel::Tid;

impl Activities {
    /// Handles a signal that stops the process. One that comes while a thread is stopped changes
    /// nothing for it.
    pub(super) fn stop_signal(&mut self, by: Tid) {
        for thread in self.threads.values_mut() {
            if thread.state != State::Stopped {
                thread.stopper = Some(by);
            }
        }
    }
}

impl Thread {
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
