//! Wake-ups, and their causes; waits for another CPU.

use super::{Activities, Activity, Thread};
use crate::BootNanos;
use crate::activity::thread::State;
use crate::kernel::{Cpu, Tid, Waker};

impl Activities {
    /// Handles the wake-up of a thread, which waits for this CPU from now on.
    pub(super) fn wake(&mut self, tid: Tid, on: Cpu, by: Waker) {
        let now = self.last;
        self.forget_unseen_holder(on);
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

    /// Handles a thread that is given to the queue of another CPU. `behind` has the one that it
    /// leaves.
    pub(super) fn migrate(&mut self, tid: Tid, to: Cpu, behind: Option<Tid>) {
        let waits = self.threads.get(&tid).filter(|thread| thread.waits());
        let from = waits.and_then(|thread| thread.cpu);
        if let (Some(from), Some(behind)) = (from, behind) {
            self.was(behind, State::OnCpu, Some(from));
        }
        self.forget_unseen_holder(to);
        self.change(tid, |thread| thread.cpu = Some(to));
    }

    /// Forgets who has a CPU for which a thread begins to wait, unless another one waits for it or
    /// has it: only as long as that is so do events show its switches.
    fn forget_unseen_holder(&mut self, cpu: Cpu) {
        let has = self.current.get(&cpu).and_then(|tid| self.threads.get(tid));
        let is_seen = has.is_some_and(|thread| thread.state == State::OnCpu);
        if !is_seen && self.waiting_for(cpu).is_empty() {
            self.current.remove(&cpu);
        }
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
