//! A running recording: programs attached, events in the order of time.

use std::time::{Duration, Instant};

use bpf_program::wire::WrongSize;
use bpf_session::{Delivery, EventClock, Features, POLL_INTERVAL, Reorder, RingReader, Session};
use scene::BootNanos;
use sched_programs::{EndedProcesses, Facts, NamedMap, ProcessSet, SchedError, hooks};
use sys::clock::boot_nanos;

use crate::layout::{Event, Head, LOST, LossRecord, RING, kind};
use crate::messages::{Message, RecordedEvent, lost_events, recorded};
use crate::programs::{self, Setting};
use crate::standing::ThreadStates;

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

/// The attached programs, and the reader of their ring.
pub struct Recorder {
    session: Session,
    reader: RingReader<Result<Message, WrongSize>>,
    order: Reorder<Message>,
    start: BootNanos,
    totals: Totals,
    processes: ProcessSet,
    ended: EndedProcesses,
    standings: ThreadStates,
    looked: Instant,
}

impl Recorder {
    /// Attaches the programs for the threads of the processes, with a ring of `ring_bytes` bytes: a
    /// power of two, and a multiple of the page size.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel rejects the programs, because it is too old or privileges are
    /// missing.
    pub fn start(
        facts: &Facts,
        processes: &ProcessSet,
        ring_bytes: u32,
    ) -> Result<Self, SchedError> {
        let cpus = host::cpus::possible().map_err(SchedError::map(LOST))?;
        let features = Features::detect()?;
        let setting = Setting {
            task: facts.task,
            processes: processes.known_by(),
            // It came with the release before.
            types_current: features.exchange,
            ring_bytes,
        };
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        let module = programs::module(&setting, &facts.tracepoints, cpus)?;
        let mut session = Session::load(&module, features.for_process(Some(processes.first())))?;
        processes.enter(&session)?;
        let read = |bytes: &[u8]| Some(Message::read(bytes));
        let reader =
            RingReader::start_every(&session, RING, POLL_INTERVAL, EventClock::Boot, read)?;
        hooks::attach(&mut session, &module, module.programs.len())?;
        processes.enter_children(&session)?;
        let mut recorder = Self {
            session,
            reader,
            order: Reorder::new(),
            start: BootNanos(boot_nanos()),
            totals: Totals::default(),
            processes: processes.clone(),
            ended: EndedProcesses::default(),
            standings: ThreadStates::default(),
            looked: Instant::now(),
        };
        recorder.look()?;
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
            self.look()?;
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
        self.look()?;
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
        // A program may run for a moment after its link is closed, and lose events then.
        let last = |(cpu, lost): (u32, LossRecord)| {
            let at = end.max(lost.since);
            let kind = kind::LOST;
            lost_events(Head { at, cpu, kind }, lost)
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
    fn look(&mut self) -> Result<(), SchedError> {
        self.looked = Instant::now();
        let found = self.standings.look(&self.processes()?);
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
        self.ended.forget(&self.processes, &self.session)
    }

    /// Returns the processes whose threads are recorded, with those that they started if these
    /// belong to them. Some may have ended in the last seconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the map of several processes can't be read.
    pub fn processes(&self) -> Result<Vec<u32>, SchedError> {
        self.processes.members(&self.session)
    }

    /// Returns the time from which nothing is missing: all programs are attached.
    pub fn started(&self) -> BootNanos {
        self.start
    }
}
