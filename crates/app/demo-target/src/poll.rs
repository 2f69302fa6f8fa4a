//! A reactor in real time, like SPDK's. It is pinned to a CPU, and polls without a rest (or sleeps,
//! in interrupt mode). Late work makes everything that follows from it late, too.

use std::sync::atomic::Ordering;

use spdk_trace_writer::nvmf::{Kind, Stage};

use crate::clock::ticks;
use crate::doorbell::Doorbell;
use crate::inject::{DelayedRequest, EndedBy, GapTruth, Injector, Thread};
use crate::reactor::{Event, PLANNED_RATE, Reactor, scale};

/// Minimum length of a turn of the poll loop that is noted, in nanoseconds.
const NOTED_NANOS: u64 = 20_000;

impl Reactor<'_> {
    /// Prepares delays, if they are wanted, and starts the run together with the other reactors.
    pub(crate) fn prepare(&mut self) {
        let shared = self.shared;
        if !shared.options.is_real_time() {
            return;
        }
        if shared.options.interrupt_mode {
            // Before this thread is pinned: others ring on other CPUs.
            let installed = Doorbell::install(self.lcore, shared.tick_rate);
            let failed =
                |error: &_| eprintln!("demo-target: reactor_{} polls: {error}", self.lcore);
            self.doorbell = installed.inspect_err(failed).ok();
        }
        self.place = Thread::pin(self.lcore, shared.options);
        self.noted = scale(NOTED_NANOS, shared.tick_rate, 1_000_000_000);
        self.injector =
            Injector::prepare(shared.options, &shared.common, self.place, shared.tick_rate);
        shared.phase.wait();
        if self.lcore == 0 {
            shared.begin();
        }
        shared.phase.wait();
    }

    /// Starts polling with the requests.
    pub(crate) fn begin_polling(&mut self) {
        self.last_poll = ticks();
        if let Some(injector) = &mut self.injector {
            injector.begin();
        }
    }

    /// Returns the real time as planned time.
    pub(crate) fn real_now(&self) -> u64 {
        let since = ticks().saturating_sub(self.shared.begin.load(Ordering::Relaxed));
        scale(since, PLANNED_RATE, self.shared.tick_rate)
    }

    /// Polls, or sleeps, until these ticks, at which `event` happens. Returns false if it is time
    /// to end instead.
    pub(crate) fn poll_until(&mut self, target: u64, deadline: u64, event: Event) -> bool {
        loop {
            let now = ticks();
            if now.saturating_sub(self.last_poll) >= self.noted {
                self.note_gap(now);
            } else {
                self.last_poll = now;
            }
            if self.shared.stop.is_asked() || now >= deadline {
                return false;
            }
            if now >= target {
                return true;
            }
            match &self.doorbell {
                Some(doorbell) if !self.is_own_work(event) => {
                    doorbell.sleep_until(target);
                    // Sleeping is no gap.
                    self.last_poll = ticks();
                }
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Returns true if the event ends a stage by this reactor's own work: it does not sleep for
    /// that.
    fn is_own_work(&self, event: Event) -> bool {
        let Event::Stage { request } = event else {
            return false;
        };
        let request = &self.requests[request];
        let way = self
            .shared
            .stages
            .for_request(request.facts.transport, request.facts.write);
        let reached = request
            .stage
            .checked_sub(1)
            .and_then(|reached| way.get(reached));
        reached
            .is_some_and(|reached| self.shared.table.ended_by(reached.tpoint) == EndedBy::Reactor)
    }

    #[cold]
    fn note_gap(&mut self, now: u64) {
        let (
            Thread {
                lcore, tid, cpu, ..
            },
            begin,
        ) = (self.place, self.last_poll);
        if self.shared.options.truth.is_some() && self.notes.has_room() {
            let requests = self.all_in_flight(0..self.requests.len());
            self.notes.gap(
                GapTruth {
                    lcore,
                    tid,
                    cpu,
                    begin,
                    end: now,
                    requests: Vec::new(),
                },
                requests,
            );
        }
        // The time of this note is no gap.
        self.last_poll = ticks();
    }

    /// Delays this reactor if that is due: the request has reached a stage, and its next one is
    /// planned.
    #[inline]
    pub(crate) fn inject_if_due(&mut self, at: usize, stage: Stage, now: u64) {
        let Some(injector) = &self.injector else {
            return;
        };
        // Bytes came from the socket, but the trace has no object for them yet.
        if stage.kind == Kind::Socket {
            return;
        }
        if injector.is_due(now, self.shared.table.ended_by(stage.tpoint)) {
            self.inject(at);
        }
    }

    #[cold]
    fn inject(&mut self, at: usize) {
        let Some(injector) = &mut self.injector else {
            return;
        };
        let Some(truth) = injector.inject() else {
            return;
        };
        // The delay is noted, and is no gap. The time after it may be one.
        self.last_poll = truth.end.ticks;
        if self.shared.options.truth.is_some() {
            let others = (0..self.requests.len()).filter(|other| *other != at);
            let requests = self.all_in_flight(std::iter::once(at).chain(others));
            self.notes.injection(truth, requests);
        }
    }

    /// Returns the requests in flight among these indices, with their indices.
    fn all_in_flight(&self, places: impl Iterator<Item = usize>) -> Vec<(usize, DelayedRequest)> {
        places
            .filter_map(|at| Some((at, self.in_flight(at)?)))
            .collect()
    }

    /// Returns the request at this index, if it is in flight.
    fn in_flight(&self, at: usize) -> Option<DelayedRequest> {
        let request = &self.requests[at];
        let way = self
            .shared
            .stages
            .for_request(request.facts.transport, request.facts.write);
        let reached = way
            .get(request.stage.checked_sub(1)?)
            .filter(|reached| reached.kind != Kind::Socket)?;
        let next = way.get(request.stage)?;
        let controller = self.seats[request.seat].controller.as_ref()?;
        Some(DelayedRequest {
            object: request.facts.pointer,
            qpair: request.facts.qpair,
            qid: controller.qpairs[request.qpair].qid,
            owner: request.facts.owner,
            stage: self.shared.table.name(reached.tpoint),
            since: request.reached,
            next: self.shared.table.name(next.tpoint),
            until: None,
            ended_by: self.shared.table.ended_by(reached.tpoint),
        })
    }
}
