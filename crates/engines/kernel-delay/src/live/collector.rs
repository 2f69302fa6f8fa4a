//! Collector that takes the events of a window out of the ring, and keeps a bounded part of them.

use std::sync::{Arc, Mutex, PoisonError};

use bpf_program::event::RING;
use bpf_session::{RingReader, Session};
use observer::Observer;

use crate::error::DelayError;
use crate::events::{Events, Limits};
use crate::layout::WrongSize;
use crate::stacks::{CopiedStack, Stack};

/// Maximum number of events kept of a window: 6 MiB, and more than anyone reads.
const EVENTS: usize = 1 << 16;

/// Function that finds the addresses of copied stacks, in the thread that takes the events out.
pub type Unwinder = Box<dyn FnMut(CopiedStack<'_>) -> Stack + Send>;

/// Events kept, and the first error.
struct CollectedEvents {
    events: Events,
    /// First malformed event.
    wrong: Option<WrongSize>,
}

/// Thread that takes the events out, and the events kept.
pub struct Collector {
    reader: RingReader<()>,
    kept: Arc<Mutex<CollectedEvents>>,
}

impl Collector {
    /// Starts the thread, with room for `stacks` different stacks; copied ones are walked as they
    /// come.
    pub(super) fn start(
        session: &Session,
        stacks: usize,
        mut unwinder: Option<Unwinder>,
        observer: Observer,
    ) -> Result<Self, DelayError> {
        let kept = CollectedEvents {
            events: Events::new(Limits {
                events: EVENTS,
                stacks,
            }),
            wrong: None,
        };
        let kept = Arc::new(Mutex::new(kept));
        let into = Arc::clone(&kept);
        // Kept where they are read: a queue would be one more thing to bound.
        let keep = move |bytes: &[u8]| -> Option<()> {
            observer.step();
            let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
            let added = match &mut unwinder {
                Some(unwinder) => kept.events.add(bytes, Some(unwinder.as_mut())),
                None => kept.events.add(bytes, None),
            };
            kept.wrong = kept.wrong.take().or(added.err());
            None
        };
        Ok(Self {
            reader: RingReader::start(session, RING, keep)?,
            kept,
        })
    }

    /// Takes the rest, which is finite: after the window's end the kernel sends no more.
    pub fn finish(self) -> Result<Events, DelayError> {
        self.reader.finish(drop);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wrong) = kept.wrong.take() {
            return Err(wrong.into());
        }
        let none = Events::new(Limits {
            events: 0,
            stacks: 0,
        });
        Ok(std::mem::replace(&mut kept.events, none))
    }
}
