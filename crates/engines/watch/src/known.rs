//! Objects of the process, known while it is watched: for the queues of requests, and for the
//! recordings of captures.

use std::time::Duration;

use capture_recorder::Objects;
use live_objects::{Session, annotate_quietly};
use objects::{Annotator, Journal, ObjectSpec};
use observer::Observer;
use spdk_trace::{Owners, TickRate, Ticks, TpointTable};

/// Number of lines after which the journal drops objects that have ended.
const PRUNE_LINES: usize = 10_000;

pub(crate) struct ObjectNamer {
    session: Option<Session>,
    specs: Vec<ObjectSpec>,
    pub(crate) annotator: Annotator,
    journal: Journal,
    /// Number of lines that were learnt since the journal dropped objects.
    lines: usize,
    /// Number of slots of the trace that were overwritten before they were read.
    lost: u64,
    observer: Observer,
}

impl ObjectNamer {
    /// Creates it for a trace with these tracepoints. Without objects only the owners are known.
    pub(crate) fn new(
        objects: Option<Objects>,
        specs: Vec<ObjectSpec>,
        tpoints: &TpointTable,
        observer: &Observer,
    ) -> Self {
        let mut annotator = annotate_quietly("", specs.clone(), tpoints);
        annotator.extend_from(Ticks(sys::clock::ticks()));
        let session = objects.map(|objects| objects.session);
        Self {
            session,
            specs,
            annotator,
            journal: Journal::default(),
            lines: 0,
            lost: 0,
            observer: observer.clone(),
        }
    }

    /// Learns the next lines. Drops objects that ended before `oldest` if there are many.
    pub(crate) fn learn(&mut self, oldest: Ticks) {
        let Some(session) = &mut self.session else {
            return;
        };
        let lines = session.next(Duration::ZERO);
        if lines.is_empty() {
            return;
        }
        self.annotator.learn(&lines);
        for line in &lines {
            self.journal.learn(&self.specs, line);
        }
        self.lines += lines.len();
        if self.lines > PRUNE_LINES {
            self.lines = 0;
            self.journal.forget(oldest.0);
        }
        self.annotator.forget_if_many(oldest);
    }

    /// Sets the number of slots lost until now: begins and ends of objects in them are not known.
    pub(crate) fn count_losses(&mut self, slots: u64) {
        if slots > self.lost {
            self.lost = slots;
            self.annotator.lose_until(Ticks(sys::clock::ticks()));
        }
    }

    pub(crate) fn know_owners(&mut self, owners: &Owners, rate: TickRate) {
        self.annotator
            .know_owners(owners.all(), owners.are_all(), rate);
    }

    /// Returns the recording of objects for a capture that begins at that time.
    pub(crate) fn recording(&mut self, oldest: Ticks) -> String {
        self.journal.forget(oldest.0);
        self.journal.text()
    }

    /// Detaches the probes.
    pub(crate) fn finish(self) {
        if let Some((_, Some(Err(error)))) = self.session.map(Session::finish) {
            self.observer.note(&format!("objects: {error}"));
        }
    }
}
