//! Takes the events of a window out of the ring, and keeps a bounded part of them.

use std::sync::{Arc, Mutex, PoisonError};

use bpf_codegen::event::RING;
use bpf_session::{Drain, Session};
use kernel_delay::{Events, Limits};

use super::symbols::Names;
use super::unwind::StackWalker;

/// How many events are kept of a window: 6 MiB of them, and more than anyone reads.
const EVENTS: usize = 1 << 16;

/// The thread that takes them out, and what it keeps.
pub(super) struct Collector {
    drain: Drain<()>,
    events: Arc<Mutex<Events>>,
    /// What the process had mapped when it began.
    names: Names,
}

impl Collector {
    /// Starts it. There is room for so many different stacks; copied ones are walked as they come.
    pub(super) fn start(
        session: &Session,
        stacks: usize,
        mut walker: Option<StackWalker>,
        names: Names,
    ) -> anyhow::Result<Self> {
        let events = Arc::new(Mutex::new(Events::new(Limits { events: EVENTS, stacks })));
        let into = Arc::clone(&events);
        // Kept where they are read: nothing waits in a queue, which would be one more thing to bound.
        let keep = move |bytes: &[u8]| -> Option<()> {
            crate::interrupt::step();
            let mut events = into.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut walker {
                Some(walker) => events.add(bytes, Some(&mut |stack| walker.walk(stack))),
                None => events.add(bytes, None),
            }
            None
        };
        Ok(Self { drain: Drain::start(session, RING, keep)?, events, names })
    }

    /// Takes the rest: after the window's end the kernel sends no more, so that there is one. And what the addresses in
    /// them are called.
    pub(super) fn finish(self) -> (Events, Names) {
        self.names.renew();
        self.drain.finish(drop);
        let none = Events::new(Limits { events: 0, stacks: 0 });
        (std::mem::replace(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner), none), self.names)
    }
}
