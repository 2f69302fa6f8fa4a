//! Requests, which pass through the stages of their transport.

use spdk_trace_writer::nvmf::{BDEVS, InFlight, Kind, Transport};

use crate::reactor::{Event, PLANNED_RATE, Reactor};

/// Number of requests that a connection has in flight.
const QUEUE_DEPTH: u64 = 4;
/// Address of TCP requests; the lcore gives the bits from 32 on.
const REQUESTS: u64 = 0x5500_0000_0000;
/// Address of RDMA requests, after TCP's: no address is a request of both.
const RDMA_REQUESTS: u64 = REQUESTS + 0x4000_0000;
/// Address of bdev I/Os.
const BDEV_IOS: u64 = 0x2000_0000_0000;
/// Size of a request, in bytes.
const REQUEST_SIZE: u64 = 0x6c0;
/// Size of a bdev I/O, in bytes.
const BDEV_IO_SIZE: u64 = 0x400;
/// Share of requests that write, per 1,000.
const WRITES_PER_MILLE: u32 = 300;

/// Returns the address of the request at this index in the lcore's queues.
fn address(transport: Transport, lcore: u32, place: usize) -> u64 {
    let first = if transport == Transport::Rdma {
        RDMA_REQUESTS
    } else {
        REQUESTS
    };
    first + (u64::from(lcore) << 32) + REQUEST_SIZE * place as u64
}

/// Slot in a connection's queue, for one request after another.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) seat: usize,
    /// Index of the connection among those of its controller.
    pub(crate) qpair: usize,
    /// Index of the next stage.
    pub(crate) stage: usize,
    /// Time at which it reached the previous stage, in ticks.
    pub(crate) reached: u64,
    pub(crate) facts: InFlight,
}

impl Reactor<'_> {
    /// Returns the mean pause of a queue slot between two requests, in ticks of planned time.
    pub(crate) fn think_time(&self) -> u64 {
        let options = self.shared.options;
        if options.flat_out {
            return 5_000;
        }
        let places = u64::from(options.connections) * QUEUE_DEPTH;
        places * PLANNED_RATE / options.rate.max(1)
    }

    /// Fills the queues of a new controller's connections.
    pub(crate) fn send_first(&mut self, seat: usize) {
        let qpairs = self.seats[seat]
            .controller
            .as_ref()
            .map_or(0, |controller| controller.qpairs.len());
        for qpair in 0..qpairs {
            for place in 0..QUEUE_DEPTH {
                self.send(seat, qpair, place);
            }
        }
    }

    /// Plans the next request of a queue slot, if its connection has one left.
    fn send(&mut self, seat: usize, qpair: usize, place: u64) {
        let at = self.place(seat, qpair, place);
        let Some(controller) = &mut self.seats[seat].controller else {
            return;
        };
        let transport = controller.transport;
        let connection = &mut controller.qpairs[qpair];
        if connection.to_send == 0 || self.budget == Some(0) {
            return;
        }
        connection.to_send -= 1;
        connection.outstanding += 1;
        let (pointer, owner) = (connection.pointer, connection.owner);
        self.budget = self.budget.map(|left| left - 1);
        self.outstanding += 1;
        let bdev = self.rng.below(BDEVS.len() as u64) as usize;
        let address = address(transport, self.lcore, at);
        let facts = &mut self.requests[at].facts;
        facts.pointer = address;
        (facts.transport, facts.qpair, facts.owner, facts.bdev) = (transport, pointer, owner, bdev);
        facts.write = self.rng.chance(WRITES_PER_MILLE);
        facts.blocks = 8 << self.rng.below(4);
        facts.offset = 8 * self.rng.below(1 << 20);
        self.requests[at].stage = 0;
        let think = self.think_time();
        let wait = 500 + self.rng.wait(think);
        self.later(wait, Event::Stage { request: at });
    }

    /// Returns the index of a queue slot, which is created if it is new.
    fn place(&mut self, seat: usize, qpair: usize, place: u64) -> usize {
        let at = (seat * 4 + qpair) * QUEUE_DEPTH as usize + place as usize;
        while self.requests.len() <= at {
            let number = self.requests.len() as u64;
            let lcore = u64::from(self.lcore) << 32;
            let facts = InFlight {
                pointer: 0,
                transport: Transport::Tcp,
                qpair: 0,
                owner: 0,
                depth: 0,
                write: false,
                bdev: 0,
                bdev_io: BDEV_IOS + lcore + BDEV_IO_SIZE * number,
                bdev_depth: 0,
                offset: 0,
                blocks: 0,
            };
            self.requests.push(Request {
                seat: 0,
                qpair: 0,
                stage: 0,
                reached: 0,
                facts,
            });
        }
        (self.requests[at].seat, self.requests[at].qpair) = (seat, qpair);
        at
    }

    /// Records the stage that the request has reached, and plans the next one.
    pub(crate) fn advance(&mut self, at: usize) {
        let shared = self.shared;
        let Request {
            seat, qpair, stage, ..
        } = self.requests[at];
        let facts = &mut self.requests[at].facts;
        let way = shared.stages.for_request(facts.transport, facts.write);
        let depth = &mut self.bdev_depth[facts.bdev];
        match way[stage].kind {
            Kind::Submit => *depth += 1,
            Kind::Complete => *depth -= 1,
            _ => {}
        }
        facts.bdev_depth = *depth;
        if let Some(controller) = &mut self.seats[seat].controller {
            let in_flight = &mut controller.qpairs[qpair].in_flight;
            *in_flight += u64::from(stage == 0);
            facts.depth = *in_flight;
        }
        if stage == 0 {
            self.hits
                .request_start(facts.pointer, facts.qpair, facts.blocks);
            self.hits.request_lazy(self.stamps.next(), facts.pointer);
        }
        let tsc = self.stamps.next();
        self.ring
            .record(&shared.stages.record(way[stage], tsc, facts));
        self.requests[at].stage += 1;
        self.requests[at].reached = tsc;
        self.notes.reached(at, tsc);
        match way.get(stage + 1) {
            Some(next) => {
                let wait = match next.kind {
                    Kind::Complete => self.rng.latency(next.wait),
                    _ => self.rng.wait(next.wait),
                };
                self.later(wait, Event::Stage { request: at });
                self.inject_if_due(at, way[stage], tsc);
            }
            None => self.complete(at),
        }
    }

    /// Completes a request. The host sends its next one from the same slot, or leaves if none of
    /// its connections has one left.
    fn complete(&mut self, at: usize) {
        let Request {
            seat,
            qpair,
            ref facts,
            ..
        } = self.requests[at];
        self.hits.request_complete(facts.pointer, facts.blocks);
        self.outstanding -= 1;
        let Some(controller) = &mut self.seats[seat].controller else {
            return;
        };
        controller.qpairs[qpair].in_flight -= 1;
        controller.qpairs[qpair].outstanding -= 1;
        if controller.is_over() {
            self.later(1_000, Event::Close { seat });
        } else {
            self.send(seat, qpair, at as u64 % QUEUE_DEPTH);
        }
    }
}
