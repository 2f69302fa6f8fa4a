//! Takes the events of a window out of the ring, and keeps a bounded part of them.

use std::sync::{Arc, Mutex, PoisonError};

use bpf_codegen::delay::layout::WrongSize;
use bpf_codegen::event::RING;
use bpf_session::{Drain, Session};
use kernel_delay::{Events, Limits};

use super::symbols::Names;
use super::unwind::StackWalker;

/// How many events are kept of a window: 6 MiB of them, and more than anyone reads.
const EVENTS: usize = 1 << 16;

/// What is kept.
struct Kept {
    events: Events,
    /// The first event that was none.
    wrong: Option<WrongSize>,
}

/// The thread that takes them out, and what it keeps.
pub(super) struct Collector {
    drain: Drain<()>,
    kept: Arc<Mutex<Kept>>,
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
        let kept = Kept { events: Events::new(Limits { events: EVENTS, stacks }), wrong: None };
        let kept = Arc::new(Mutex::new(kept));
        let into = Arc::clone(&kept);
        // Kept where they are read: nothing waits in a queue, which would be one more thing to bound.
        let keep = move |bytes: &[u8]| -> Option<()> {
            crate::interrupt::step();
            let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
            let added = match &mut walker {
                Some(walker) => kept.events.add(bytes, Some(&mut |stack| walker.walk(stack))),
                None => kept.events.add(bytes, None),
            };
            kept.wrong = kept.wrong.take().or(added.err());
            None
        };
        Ok(Self { drain: Drain::start(session, RING, keep)?, kept, names })
    }

    /// Takes the rest: after the window's end the kernel sends no more, so that there is one. And what the addresses in
    /// them are called.
    pub(super) fn finish(self) -> anyhow::Result<(Events, Names)> {
        self.names.renew();
        self.drain.finish(drop);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wrong) = kept.wrong {
            return Err(wrong.into());
        }
        let none = Events::new(Limits { events: 0, stacks: 0 });
        let events = std::mem::replace(&mut kept.events, none);
        drop(kept);
        Ok((events, self.names))
    }
}
