//! Messages of the ring, and the events of the timeline that they are.

use bpf_program::wire::{WrongSize, read_event};
use scene::{BootNanos, Cpu, EventKind, KernelEvent, LeaveReason, Tid, Waker};
use sched_programs::SchedError;
use zerocopy::FromBytes;

use crate::layout::{Event, Head, LossRecord, LostEvent, RUNS, kind, leaves};
use crate::wakers;

/// Thread and its name, if an event has one.
pub(crate) type Name = Option<(Tid, [u8; 16])>;

/// Recorded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedEvent {
    /// Event of the timeline.
    pub event: KernelEvent,
    /// Thread named by the event (the one that comes, that wakes another, or that has the CPU for
    /// which another waited) and its name: at most 15 bytes, which end with the first 0. Untrusted
    /// text.
    pub name: Name,
    /// True for the wake-up with which a thread begins its life. The thread that is named by the
    /// event started it, and its name is the new thread's, too.
    pub starts: bool,
}

impl RecordedEvent {
    /// Returns the thread of the event, if only a thread of our processes can have an event of this
    /// kind: all but switches, which have other threads, too.
    pub fn own_thread(&self) -> Option<Tid> {
        match self.event.kind {
            EventKind::Wake { tid, .. }
            | EventKind::Migrate { tid, .. }
            | EventKind::Found { tid, .. }
            | EventKind::Begin { tid, .. }
            | EventKind::End { tid, .. }
            | EventKind::CallEnter { tid, .. }
            | EventKind::CallExit { tid }
            | EventKind::StopSignal { tid, .. }
            | EventKind::Unseen { tid, .. }
            | EventKind::Inside { tid, .. } => Some(tid),
            EventKind::Switch { .. } | EventKind::Lost { .. } => None,
        }
    }
}

/// Event of the ring, by its structure.
#[derive(Clone, Copy)]
pub(crate) enum Message {
    Event(Event),
    Lost(LostEvent),
}

impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, WrongSize> {
        match Head::read_from_prefix(bytes) {
            Ok((
                Head {
                    kind: kind::LOST, ..
                },
                _,
            )) => read_event(bytes).map(Self::Lost),
            _ => read_event(bytes).map(Self::Event),
        }
    }

    pub(crate) fn at(&self) -> u64 {
        match self {
            Self::Event(event) => event.head.at,
            Self::Lost(event) => event.head.at,
        }
    }

    /// Returns the number of events that it reports as lost.
    pub(crate) fn lost(&self) -> u64 {
        if let Self::Lost(event) = self {
            event.lost.count
        } else {
            0
        }
    }
}

/// Returns the loss as an event of its CPU.
pub(crate) fn lost_events(head: Head, LossRecord { count, since }: LossRecord) -> RecordedEvent {
    let kind = EventKind::Lost {
        since: BootNanos(since),
        count,
    };
    RecordedEvent {
        event: KernelEvent {
            at: BootNanos(head.at),
            cpu: Cpu(head.cpu),
            kind,
        },
        name: None,
        starts: false,
    }
}

/// Converts an event to one of the timeline; an error for a number that no kernel has.
pub(crate) fn recorded(message: &Message) -> Result<RecordedEvent, SchedError> {
    let event = match *message {
        Message::Event(event) => event,
        Message::Lost(LostEvent { head, lost }) => return Ok(lost_events(head, lost)),
    };
    let Event {
        head: Head { at, cpu, kind },
        detail,
        tid,
        other,
        comm,
    } = event;
    let (tid, number) = (Tid(tid), u32::try_from(detail).unwrap_or(u32::MAX));
    let starts = kind == kind::START;
    let (kind, name) = match kind {
        kind::SWITCH => {
            let switch = EventKind::Switch {
                prev: tid,
                leaves: leaves_of(number, kind)?,
                next: Tid(other),
            };
            (switch, Some((Tid(other), comm)))
        }
        kind::WAKE | kind::START => {
            let (on, by) = wakers::read(detail, other)?;
            let name = matches!(by, Waker::Thread(_)).then_some((Tid(other), comm));
            (EventKind::Wake { tid, on, by }, name)
        }
        kind::MIGRATE => migration(&event)?,
        kind::CALL_ENTER => (EventKind::CallEnter { tid, number }, None),
        kind::CALL_EXIT => (EventKind::CallExit { tid }, None),
        kind::STOP_SIGNAL => {
            let by = Tid(other);
            let signal = EventKind::StopSignal { tid, number, by };
            (signal, (other > 0).then_some((by, comm)))
        }
        kind::FOUND => {
            let off_cpu = (number != RUNS)
                .then(|| leaves_of(number, kind))
                .transpose()?;
            (EventKind::Found { tid, off_cpu }, None)
        }
        kind => (interrupt(kind, tid, number)?, None),
    };
    Ok(RecordedEvent {
        event: KernelEvent {
            at: BootNanos(at),
            cpu: Cpu(cpu),
            kind,
        },
        name,
        starts,
    })
}

/// Returns a migration, and the name of who has the CPU for which the thread waited.
fn migration(event: &Event) -> Result<(EventKind, Name), SchedError> {
    let (to, from_behind) = wakers::read_thread(event.detail, event.other)?;
    let kind = EventKind::Migrate {
        tid: Tid(event.tid),
        to,
        from_behind,
    };
    Ok((kind, from_behind.map(|behind| (behind, event.comm))))
}

fn leaves_of(number: u32, kind: u32) -> Result<LeaveReason, SchedError> {
    match number {
        leaves::PREEMPTED => Ok(LeaveReason::Preempted),
        leaves::BLOCKED => Ok(LeaveReason::Blocked),
        leaves::STOPPED => Ok(LeaveReason::Stopped),
        leaves::ENDED => Ok(LeaveReason::Ended),
        _ => Err(SchedError::Kind { kind }),
    }
}

fn interrupt(kind: u32, tid: Tid, number: u32) -> Result<EventKind, SchedError> {
    // The end of an interrupt has the next number.
    let interrupt = wakers::interrupt(kind & !1, number).ok_or(SchedError::Kind { kind })?;
    Ok(if kind & 1 == 0 {
        EventKind::Begin { tid, interrupt }
    } else {
        EventKind::End { tid, interrupt }
    })
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes as _;

    use super::*;

    #[test]
    fn a_loss_is_an_event_of_its_own() {
        let head = Head {
            at: 900,
            cpu: 3,
            kind: kind::LOST,
        };
        // Larger than any thread id.
        let event = LostEvent {
            head,
            lost: LossRecord {
                count: 1 << 33,
                since: 400,
            },
        };
        let message = Message::read(event.as_bytes()).unwrap();
        assert_eq!((message.at(), message.lost()), (900, 1 << 33));
        let kind = EventKind::Lost {
            since: BootNanos(400),
            count: 1 << 33,
        };
        assert_eq!(
            recorded(&message).unwrap().event,
            KernelEvent {
                at: BootNanos(900),
                cpu: Cpu(3),
                kind
            }
        );
        assert!(Message::read(&event.as_bytes()[..20]).is_err());
        // No other kind has its size.
        let head = Head {
            kind: kind::WAKE,
            ..head
        };
        assert!(Message::read(LostEvent { head, ..event }.as_bytes()).is_err());
    }
}
