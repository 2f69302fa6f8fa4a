//! Wake-ups, and their causes.

use super::{Activities, Activity, Thread};
use crate::BootNanos;
use crate::activity::thread::State;
use crate::kernel::{Cpu, Tid, Waker};

impl Activities {
    /// Handles the wake-up of a thread, which waits for this CPU from now on.
    pub(super) fn wake(&mut self, tid: Tid, on: Cpu, by: Waker) {
        let now = self.last;
        self.change(tid, |thread| {
            // A thread that runs can be woken, too: before it could sleep. An unknown thread may
            // run.
            if matches!(thread.state, State::OnCpu | State::Unknown) {
                return;
            }
            // The first wake-up ends the wait: others of a woken thread change nothing.
            if thread.state == State::Blocked {
                thread.woken_by(by, now);
            }
            thread.continues();
            (thread.state, thread.cpu) = (State::Woken, Some(on));
        });
    }
}

impl Thread {
    /// Notes who ended the wait that was closed at `now`. It is one interval that was not handed
    /// out: the last one can go on, so that it never is.
    fn woken_by(&mut self, waker: Waker, now: BootNanos) {
        if let Some(Activity::Blocked { by, .. }) = self
            .done
            .get_mut(self.given..)
            .and_then(<[_]>::last_mut)
            .filter(|interval| interval.to == now)
            .map(|interval| &mut interval.activity)
        {
            *by = waker;
        }
    }
}
