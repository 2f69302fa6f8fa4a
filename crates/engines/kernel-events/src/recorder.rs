//! A running recording: programs attached, events in the order of time.

use std::time::{Duration, Instant};

use bpf_program::wire::{WrongSize, read_event};
use bpf_session::{Delivery, EventClock, Features, POLL_INTERVAL, Reorder, RingReader, Session};
use scene::{BootNanos, Cpu, EventKind, KernelEvent, LeaveReason, Tid, Waker};
use sched_programs::{Facts, NamedMap, SchedError, hooks};
use sys::clock::boot_nanos;
use zerocopy::FromBytes;

use crate::layout::{Event, Head, LOST, LossRecord, LostEvent, RING, RUNS, kind, leaves};
use crate::programs;
use crate::standing::ThreadStates;
use crate::wakers;

/// Limit on batches per call, so that a flood of events does not keep callers from the rest of
/// their work.
const BATCHES: usize = 256;
/// Interval between two looks at threads without events.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Totals of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Number of events returned.
    pub events: u64,
    /// Number of events that the ring had no room for. Each loss is itself an event, except for the
    /// last one of a CPU.
    pub lost: u64,
    /// Number of times that the kernel skipped a program because it was already running on that
    /// CPU.
    pub skipped: u64,
    /// Number of events that came too late for their order, and were returned after later ones.
    pub late: u64,
}

/// Recorded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedEvent {
    /// Event of the timeline.
    pub event: KernelEvent,
    /// Thread named by the event (the one that comes, or that wakes another) and its name: at most
    /// 15 bytes, which end with the first 0. Untrusted text.
    pub name: Option<(Tid, [u8; 16])>,
}

/// The attached programs, and the reader of their ring.
pub struct Recorder {
    session: Session,
    reader: RingReader<Result<Message, WrongSize>>,
    order: Reorder<Message>,
    start: BootNanos,
    totals: Totals,
    tgid: u32,
    standings: ThreadStates,
    looked: Instant,
}

impl Recorder {
    /// Attaches the programs for the threads of a process, with a ring of `ring_bytes` bytes: a
    /// power of two, and a multiple of the page size.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel rejects the programs, because it is too old or privileges are
    /// missing.
    pub fn start(facts: &Facts, tgid: u32, ring_bytes: u32) -> Result<Self, SchedError> {
        let cpus = host::cpus::possible().map_err(SchedError::map(LOST))?;
        let module = programs::module(
            facts,
            tgid,
            ring_bytes,
            u32::try_from(cpus).unwrap_or(u32::MAX),
        )?;
        let mut session = Session::load(&module, Features::detect()?.for_process(Some(tgid)))?;
        let read = |bytes: &[u8]| Some(Message::read(bytes));
        let reader =
            RingReader::start_every(&session, RING, POLL_INTERVAL, EventClock::Boot, read)?;
        hooks::attach(&mut session, &module, module.programs.len())?;
        let start = BootNanos(boot_nanos());
        let (order, totals, standings) =
            (Reorder::new(), Totals::default(), ThreadStates::default());
        let mut recorder = Self {
            session,
            reader,
            order,
            start,
            totals,
            tgid,
            standings,
            looked: Instant::now(),
        };
        recorder.look();
        Ok(recorder)
    }

    /// Returns the events of the next moment that have waited long enough for earlier ones, in the
    /// order of time.
    ///
    /// # Errors
    ///
    /// Returns an error for an event that no program sends.
    pub fn next(&mut self, at_most: Duration) -> Result<Vec<RecordedEvent>, SchedError> {
        let mut wait = at_most;
        // Take all waiting batches, not only the first one: a caller that seldom asks would fall
        // behind.
        for _ in 0..BATCHES {
            match self.reader.deliver(wait) {
                Delivery::Events(batch) => self.take(batch)?,
                Delivery::Idle(until) => {
                    self.order.reach(until);
                    break;
                }
            }
            wait = Duration::ZERO;
        }
        if self.looked.elapsed() >= SCAN_INTERVAL {
            self.look();
        }
        let mut events = Vec::new();
        while let Some(event) = self.order.pop() {
            events.push(recorded(&event)?);
        }
        self.totals.events += events.len() as u64;
        Ok(events)
    }

    /// Detaches the programs; returns the remaining events, including unreported losses, and the
    /// totals.
    ///
    /// # Errors
    ///
    /// Returns an error for an event that no program sends, or if the count of losses can't be
    /// read.
    pub fn finish(mut self) -> Result<(Vec<RecordedEvent>, Totals), SchedError> {
        self.look();
        self.session.detach();
        let (end, mut rest) = (boot_nanos(), Vec::new());
        self.reader.finish(|batch| rest.extend(batch));
        let (mut order, mut totals) = (self.order, self.totals);
        for event in rest.into_iter().collect::<Result<Vec<_>, _>>()? {
            totals.lost += event.lost();
            order.push(event.at(), event.at(), event);
        }
        let mut events = Vec::new();
        while let Some(event) = order.pop_any() {
            events.push(recorded(&event)?);
        }
        let last = |(cpu, lost)| {
            lost_events(
                Head {
                    at: end,
                    cpu,
                    kind: kind::LOST,
                },
                lost,
            )
        };
        let of_cpus: Vec<LossRecord> = NamedMap::find(&self.session, LOST)?.values(0)?;
        let unreported: Vec<(u32, LossRecord)> = (0..)
            .zip(of_cpus)
            .filter(|(_, lost)| lost.count > 0)
            .collect();
        totals.lost += unreported.iter().map(|(_, lost)| lost.count).sum::<u64>();
        events.extend(unreported.into_iter().map(last));
        totals.events += events.len() as u64;
        (totals.skipped, totals.late) = (self.session.misses(), order.late());
        Ok((events, totals))
    }

    fn take(&mut self, batch: Vec<Result<Message, WrongSize>>) -> Result<(), SchedError> {
        for event in batch {
            let event = event?;
            if event.lost() > 0 {
                self.standings.forget();
            }
            self.totals.lost += event.lost();
            self.order.push(event.at(), event.at(), event);
        }
        Ok(())
    }

    /// Looks up the activity of threads without events.
    fn look(&mut self) {
        self.looked = Instant::now();
        let found = self.standings.look(self.tgid);
        // An event of a thread that moved meanwhile comes before this time.
        let at = boot_nanos();
        for event in found {
            self.order.insert(
                at,
                at,
                Message::Event(Event {
                    head: Head { at, ..event.head },
                    ..event
                }),
            );
        }
    }

    /// Returns the time from which nothing is missing: all programs are attached.
    pub fn started(&self) -> BootNanos {
        self.start
    }
}

/// Event of the ring, by its structure.
#[derive(Clone, Copy)]
enum Message {
    Event(Event),
    Lost(LostEvent),
}

impl Message {
    fn read(bytes: &[u8]) -> Result<Self, WrongSize> {
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

    fn at(&self) -> u64 {
        match self {
            Self::Event(event) => event.head.at,
            Self::Lost(event) => event.head.at,
        }
    }

    /// Returns the number of events that it reports as lost.
    fn lost(&self) -> u64 {
        if let Self::Lost(event) = self {
            event.lost.count
        } else {
            0
        }
    }
}

/// Returns the loss as an event of its CPU.
fn lost_events(head: Head, LossRecord { count, since }: LossRecord) -> RecordedEvent {
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
    }
}

/// Converts an event to one of the timeline; an error for a number that no kernel has.
fn recorded(message: &Message) -> Result<RecordedEvent, SchedError> {
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
    let (kind, name) = match kind {
        kind::SWITCH => {
            let switch = EventKind::Switch {
                prev: tid,
                leaves: leaves_of(number, kind)?,
                next: Tid(other),
            };
            (switch, Some((Tid(other), comm)))
        }
        kind::WAKE => {
            let (on, by) = wakers::read(detail, other)?;
            let name = matches!(by, Waker::Thread(_)).then_some((Tid(other), comm));
            (EventKind::Wake { tid, on, by }, name)
        }
        kind::MIGRATE => (
            EventKind::Migrate {
                tid,
                to: Cpu(number),
            },
            None,
        ),
        kind::CALL_ENTER => (EventKind::CallEnter { tid, number }, None),
        kind::CALL_EXIT => (EventKind::CallExit { tid }, None),
        kind::STOP_SIGNAL => {
            let by = Tid(other);
            let signal = EventKind::StopSignal { tid, number, by };
            (signal, (other > 0).then_some((by, comm)))
        }
        kind::FOUND => {
            let off_cpu = if number == RUNS {
                None
            } else {
                Some(leaves_of(number, kind)?)
            };
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
    })
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
