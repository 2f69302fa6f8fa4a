//! Facts that later events show of earlier times, found beforehand.
//!
//! An event can change the knowledge of the time before it: the first one of a thread shows what it
//! did up to then, and a loss is reported after it happened. A single pass would have to keep
//! everything until the end. So events of a capture are read twice: the first time, [`Lookahead`]
//! notes such cases as events of their own, which then come at the right time.

use std::iter::{Copied, Peekable};
use std::slice::Iter;

use crate::BootNanos;
use crate::activity::Activities;
use crate::kernel::{KernelEvent, Tid};

/// Limit on the noted cases: beyond it, the time before an event stays unknown. They take 40 bytes
/// each.
const MAX_NOTES: usize = 1 << 20;
/// Number of events after which intervals are dropped: nobody asks for them.
const DROP_AFTER: u32 = 4096;

/// First pass over all events of a capture, in the order of time: notes facts that must be known
/// earlier.
#[derive(Clone, Debug)]
pub struct Lookahead {
    activities: Activities,
    events: u32,
}

impl Lookahead {
    /// Follows these threads, whose events are complete from that time on.
    pub fn new(threads: impl IntoIterator<Item = Tid>, start: BootNanos) -> Self {
        Self {
            activities: Activities::new(threads, start).keeping(0).noting(MAX_NOTES),
            events: 0,
        }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &KernelEvent) {
        self.activities.event(event);
        self.events += 1;
        if self.events.is_multiple_of(DROP_AFTER) {
            self.activities.settle(|_, _| ());
        }
    }

    /// Returns the notes, in the order of time.
    pub fn finish(self) -> Vec<KernelEvent> {
        let mut shown = self.activities.noted();
        shown.sort_by_key(|event| event.at);
        shown
    }

    /// Returns the notes of events that end before the capture does: from the last event on, every
    /// thread is unknown. Otherwise a thread's last activity would seem to last until the end.
    pub fn finish_early(self) -> Vec<KernelEvent> {
        let end = self.activities.all_lost();
        let mut shown = self.finish();
        shown.extend(end);
        shown
    }
}

/// Events with those that [`Lookahead`] noted between them. At an error the notes come first, then
/// the error.
#[expect(missing_debug_implementations, reason = "iterators of files have none")]
pub struct LookaheadEvents<'n, I: Iterator> {
    events: Peekable<I>,
    noted: Peekable<Copied<Iter<'n, KernelEvent>>>,
}

impl<'n, I, E> LookaheadEvents<'n, I>
where
    I: Iterator<Item = Result<KernelEvent, E>>,
{
    /// Merges events and notes, both in the order of time.
    pub fn new(events: I, noted: &'n [KernelEvent]) -> Self {
        Self {
            events: events.peekable(),
            noted: noted.iter().copied().peekable(),
        }
    }
}

impl<I, E> Iterator for LookaheadEvents<'_, I>
where
    I: Iterator<Item = Result<KernelEvent, E>>,
{
    type Item = Result<KernelEvent, E>;

    fn next(&mut self) -> Option<Self::Item> {
        // At equal times the recorded event comes first: a loss, then what is known again.
        match (self.events.peek(), self.noted.peek()) {
            (Some(Ok(event)), Some(noted)) if noted.at < event.at => self.noted.next().map(Ok),
            (None | Some(Err(_)), Some(_)) => self.noted.next().map(Ok),
            _ => self.events.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activity, Cpu, EventKind, Interrupt, LeaveReason};

    const US: Tid = Tid(10);

    fn event(at: u64, kind: EventKind) -> KernelEvent {
        KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(0),
            kind,
        }
    }

    #[test]
    fn later_events_reveal_earlier_states() {
        let events = [
            event(
                30,
                EventKind::Begin {
                    tid: US,
                    interrupt: Interrupt::Tick,
                },
            ),
            event(
                31,
                EventKind::End {
                    tid: US,
                    interrupt: Interrupt::Tick,
                },
            ),
            event(
                60,
                EventKind::Lost {
                    since: BootNanos(40),
                    count: 2,
                },
            ),
            event(
                70,
                EventKind::Switch {
                    prev: US,
                    leaves: LeaveReason::Preempted,
                    next: Tid(0),
                },
            ),
        ];
        let mut foresight = Lookahead::new([US], BootNanos(5));
        for event in &events {
            foresight.event(event);
        }
        let noted = foresight.finish();
        let mut activities = Activities::new([US], BootNanos(5));
        let mut at = Vec::new();
        for event in LookaheadEvents::new(events.into_iter().map(Ok::<_, ()>), &noted) {
            let event = event.unwrap();
            activities.event(&event);
            let now = activities
                .until(US, event.at)
                .last()
                .map(|interval| interval.activity);
            at.push((event.at.0, now));
        }
        let (runs, unknown) = (Some(Activity::Runs), Some(Activity::Unknown));
        let tick = Some(Activity::Interrupted(Interrupt::Tick));
        let expected = [
            (5, None),
            (30, runs),
            (31, tick),
            (40, runs),
            (60, unknown),
            (60, unknown),
            (70, runs),
        ];
        assert_eq!(at, expected);
    }

    #[test]
    fn nothing_is_known_after_events_that_end_early() {
        let preemptor = Tid(20);
        let events = [
            event(
                10,
                EventKind::Switch {
                    prev: US,
                    leaves: LeaveReason::Preempted,
                    next: preemptor,
                },
            ),
            event(
                30,
                EventKind::Begin {
                    tid: preemptor,
                    interrupt: Interrupt::Tick,
                },
            ),
        ];
        let mut foresight = Lookahead::new([US], BootNanos(5));
        for event in &events {
            foresight.event(event);
        }
        let noted = foresight.finish_early();
        let mut activities = Activities::new([US], BootNanos(5));
        let (mut failed, cut) = (0, std::iter::once(Err("cut")));
        for event in LookaheadEvents::new(events.into_iter().map(Ok).chain(cut), &noted) {
            match event {
                Ok(event) => activities.event(&event),
                Err(_) => failed += 1,
            }
        }
        let done = activities.finish(BootNanos(90)).remove(&US).unwrap();
        let done: Vec<_> = done
            .into_iter()
            .map(|it| (it.from.0, it.to.0, it.activity))
            .collect();
        let expected = [
            (5, 10, Activity::Runs),
            (10, 30, Activity::Waits(preemptor)),
            (30, 90, Activity::Unknown),
        ];
        assert_eq!((done.as_slice(), failed), (&expected[..], 1));
    }
}
