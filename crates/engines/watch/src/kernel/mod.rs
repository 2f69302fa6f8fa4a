//! Last events of the kernel, in bounded memory.
//!
//! Events are read all the time, put into the order of time, and kept; the oldest are dropped. A
//! ring in the kernel that overwrites (`BPF_F_RB_OVERWRITE`, since Linux 6.19) would keep the last
//! ones, too. But each CPU's state at its beginning would be unknown, and overwritten events would
//! not be counted. Events that are dropped here still give the state of each thread.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use capture::{EventsWriter, NamedThread};
use capture_recorder::{Kernel, facts};
use kernel_events::{RecordedEvent, Recorder, Totals};
use scene::{Absence, AbsenceTracker, Activities, BootNanos, Cpu, EventKind, KernelEvent, Tid};
use timeline::source::calls_of_pollers;

/// Time between two readings of the processes' threads.
const ROSTER_INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the events that are kept: 32 MiB. A target that is busy on sockets has a million a
/// second, and a reader may be late by half of one.
const MAX_EVENTS: usize = 1 << 19;
/// Number of events that are dropped, or shared with the writer, at once.
const BLOCK: usize = 1 << 11;

type Name = [u8; 16];

/// Events of the last moments.
pub(crate) struct KernelHistory {
    recorder: Recorder,
    past: EventHistory,
    absences: Absences,
    looked: Instant,
    /// Number of events that came.
    pub(crate) events: u64,
    /// Number of events that were lost.
    pub(crate) lost: u64,
}

/// Finder of the times in which threads that write rings were away, in events as they come.
struct Absences {
    activities: Activities,
    tracker: AbsenceTracker,
}

impl Absences {
    fn take_in(&mut self, events: &[RecordedEvent]) {
        for recorded in events {
            self.activities.event(&recorded.event);
        }
        let tracker = &mut self.tracker;
        self.activities
            .settle(|tid, interval| tracker.interval(tid, &interval));
    }
}

/// Events, and the state at their beginning.
struct EventHistory {
    front: KernelState,
    blocks: VecDeque<Arc<Vec<RecordedEvent>>>,
    newest: Vec<RecordedEvent>,
    kept: usize,
    /// Names of the processes' threads.
    roster: HashMap<Tid, Name>,
}

/// State of threads and CPUs at a time.
#[derive(Clone)]
struct KernelState {
    since: BootNanos,
    activities: Activities,
    /// Name of the thread on each CPU.
    names: HashMap<Cpu, (Tid, Name)>,
}

/// Part of the past, which can be written while the past goes on.
pub(crate) struct EventSlice {
    front: KernelState,
    blocks: Vec<Arc<Vec<RecordedEvent>>>,
    roster: Vec<NamedThread>,
}

/// Numbers of events that were written, and that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    pub(crate) events: u64,
    pub(crate) lost: u64,
}

impl KernelHistory {
    pub(crate) fn new(kernel: Kernel) -> anyhow::Result<Self> {
        let since = kernel.recorder.started();
        let (past, looked) = (EventHistory::new(since), Instant::now());
        let activities = Activities::new([], since).keeping(0);
        let absences = Absences {
            activities,
            tracker: AbsenceTracker::new([], calls_of_pollers()),
        };
        let mut this = Self {
            recorder: kernel.recorder,
            past,
            absences,
            looked,
            events: 0,
            lost: 0,
        };
        this.list_threads()?;
        Ok(this)
    }

    /// Takes the next events, and drops those older than `oldest`.
    pub(crate) fn next(&mut self, at_most: Duration, oldest: BootNanos) -> anyhow::Result<()> {
        let events = self.recorder.next(at_most)?;
        self.events += events.len() as u64;
        self.lost += events.iter().map(lost).sum::<u64>();
        self.absences.take_in(&events);
        self.past.push(events, oldest);
        if self.looked.elapsed() >= ROSTER_INTERVAL {
            self.looked = Instant::now();
            self.list_threads()?;
        }
        Ok(())
    }

    /// Tracks when these threads, which write rings, are away.
    pub(crate) fn look_after(&mut self, writers: impl IntoIterator<Item = Tid>) {
        for tid in writers {
            self.absences.activities.follow(tid);
            self.absences.tracker.follow(tid);
        }
    }

    /// Returns the times away that are over since the last call.
    pub(crate) fn take_away(&mut self) -> Vec<(Tid, Absence)> {
        self.absences.tracker.take()
    }

    fn list_threads(&mut self) -> anyhow::Result<()> {
        let processes = self.recorder.processes()?;
        let threads = processes.into_iter().flat_map(facts::threads);
        self.past
            .know(threads.map(|thread| (thread.tid, thread.name)).collect());
        Ok(())
    }

    pub(crate) fn cut(&self) -> EventSlice {
        self.past.cut()
    }

    /// Returns the time from which on every event is kept.
    pub(crate) fn since(&self) -> BootNanos {
        self.past.front.since
    }

    /// Detaches the programs.
    pub(crate) fn finish(self) -> anyhow::Result<Totals> {
        Ok(self.recorder.finish()?.1)
    }
}

fn lost(recorded: &RecordedEvent) -> u64 {
    if let EventKind::Lost { count, .. } = recorded.event.kind {
        count
    } else {
        0
    }
}

impl EventHistory {
    fn new(since: BootNanos) -> Self {
        let front = KernelState {
            since,
            activities: Activities::new([], since).keeping(0),
            names: HashMap::new(),
        };
        Self {
            front,
            blocks: VecDeque::new(),
            newest: Vec::new(),
            kept: 0,
            roster: HashMap::new(),
        }
    }

    /// Sets the threads of the processes.
    fn know(&mut self, threads: HashMap<Tid, Name>) {
        self.front
            .activities
            .only(&threads.keys().copied().collect::<BTreeSet<_>>());
        for tid in threads.keys() {
            self.front.activities.follow(*tid);
        }
        self.roster = threads;
    }

    fn push(&mut self, events: Vec<RecordedEvent>, oldest: BootNanos) {
        self.kept += events.len();
        for event in events {
            self.newest.push(event);
            if self.newest.len() >= BLOCK {
                self.blocks
                    .push_back(Arc::new(std::mem::take(&mut self.newest)));
            }
        }
        let is_old = |block: &Arc<Vec<RecordedEvent>>| {
            block.last().is_none_or(|last| last.event.at < oldest)
        };
        while self
            .blocks
            .front()
            .is_some_and(|block| self.kept > MAX_EVENTS || is_old(block))
        {
            let Some(block) = self.blocks.pop_front() else {
                break;
            };
            self.kept -= block.len();
            block.iter().for_each(|recorded| self.front.pass(recorded));
        }
    }

    fn cut(&self) -> EventSlice {
        let newest = (!self.newest.is_empty()).then(|| Arc::new(self.newest.clone()));
        let blocks = self.blocks.iter().cloned().chain(newest).collect();
        let named = |(tid, name): (&Tid, &Name)| NamedThread {
            since: BootNanos(0),
            tid: *tid,
            name: *name,
        };
        EventSlice {
            front: self.front.clone(),
            blocks,
            roster: self.roster.iter().map(named).collect(),
        }
    }
}

impl KernelState {
    /// Applies an event to the state.
    fn pass(&mut self, recorded: &RecordedEvent) {
        self.since = self.since.max(recorded.event.at);
        self.activities.event(&recorded.event);
        self.activities.settle(|_, _| ());
        if let (EventKind::Switch { next, .. }, Some((tid, name))) =
            (recorded.event.kind, recorded.name)
            && tid == next
        {
            self.names.insert(recorded.event.cpu, (tid, name));
        }
    }
}

impl EventSlice {
    /// Returns the time from which on every event is there.
    pub(crate) fn since(&self) -> BootNanos {
        self.front.since
    }

    /// Returns a number of bytes that is enough for [`Self::write`].
    pub(crate) fn bytes(&self) -> u64 {
        let events: usize = self.blocks.iter().map(|block| block.len()).sum();
        (2 * events + 2 * self.roster.len() + 1_000) as u64 * capture::EVENT_BYTES
    }

    /// Writes the events from that time on, after the state at that time, as the stream of a
    /// capture.
    pub(crate) fn write<W: Write>(
        mut self,
        from: BootNanos,
        writer: &mut EventsWriter<W>,
    ) -> io::Result<EventCounts> {
        let events = self.blocks.iter().flat_map(|block| block.iter());
        for recorded in events
            .clone()
            .take_while(|recorded| recorded.event.at < from)
        {
            self.front.pass(recorded);
        }
        let begin = from.max(self.front.since);
        writer.started(begin)?;
        let named = |(tid, name): (Tid, Name)| NamedThread {
            since: begin,
            tid,
            name,
        };
        writer.roster(self.roster.iter().map(|thread| NamedThread {
            since: begin,
            ..*thread
        }))?;
        writer.names(self.front.names.values().copied().map(named))?;
        let standing = self.front.activities.standing();
        let mut written = EventCounts {
            events: standing.len() as u64,
            lost: 0,
        };
        writer.events(
            standing
                .into_iter()
                .map(|event| KernelEvent { at: begin, ..event }),
        )?;
        let within: Vec<&RecordedEvent> = events
            .skip_while(|recorded| recorded.event.at < from)
            .collect();
        let mut known: HashMap<Tid, Name> = self.front.names.values().copied().collect();
        let news = within.iter().filter_map(|recorded| {
            let (tid, name) = recorded.name?;
            (known.insert(tid, name) != Some(name)).then_some(NamedThread {
                since: recorded.event.at,
                tid,
                name,
            })
        });
        writer.names(news.collect::<Vec<_>>())?;
        written.events += within.len() as u64;
        written.lost = within.iter().map(|recorded| lost(recorded)).sum();
        writer.events(within.iter().map(|recorded| recorded.event))?;
        writer.flush()?;
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
