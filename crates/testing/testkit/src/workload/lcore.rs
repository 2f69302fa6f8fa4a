//! One lcore of the workload: its connections, the requests in flight on them, and a clock that
//! runs from event to event. Lcores share nothing but the time at which they start.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use spdk_trace_writer::nvmf::{
    BDEVS, FIRST_OWNER, InFlight, Kind, OWNER_TCP, Stage, Stages, Transport, host_nqn,
};
use spdk_trace_writer::{Record, Rng};

use super::connection::Connection;
use super::{Recorder, START, Workload};

/// Start of the addresses of qpairs; the lcore adds the bits from 32 on.
const QPAIRS: u64 = 0x7f00_0000_0000;
/// Start of the addresses of requests, which follow from those of their qpairs.
const REQUESTS: u64 = 0x5500_0000_0000;
/// Start of the addresses of bdev I/Os; the lcore adds the bits from 32 on.
const BDEV_IOS: u64 = 0x2000_0000_0000;
/// Size of a qpair and of a request, in bytes.
const QPAIR_SIZE: u64 = 0x630;

/// The next event, and the index of its seat or request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Open(usize),
    Stage(usize),
}

/// A sequence of connections, one at a time.
#[derive(Debug, Clone, Default)]
struct Seat {
    /// Index of its current connection.
    connection: usize,
    /// Number of connections still to come.
    generations: u64,
    /// Number of requests that this connection still has to send.
    to_send: u64,
    in_flight: u64,
}

#[derive(Debug, Clone)]
struct Request {
    seat: usize,
    /// Pointer, reused by the next request of this position in the queue.
    pointer: u64,
    write: bool,
    stage: usize,
    bdev: usize,
    bdev_io: u64,
    offset: u64,
    blocks: u32,
}

/// One lcore's run.
pub(super) struct LcoreRun<'a> {
    workload: &'a Workload,
    stages: &'a Stages,
    recorder: &'a mut Recorder,
    lcore: u32,
    rng: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    seats: Vec<Seat>,
    requests: Vec<Request>,
    requests_each: u64,
    pub(super) connections: Vec<Connection>,
    free_qpairs: Vec<u64>,
    free_owners: VecDeque<u16>,
    free_bdev_ios: Vec<u64>,
    /// Next bdev I/O to use if none is free.
    fresh_bdev_io: u64,
    bdev_depth: [u64; BDEVS.len()],
}

impl<'a> LcoreRun<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        stages: &'a Stages,
        recorder: &'a mut Recorder,
        lcore: u32,
    ) -> Self {
        let connections = workload.share(workload.connections.max(workload.qpairs).into(), lcore);
        let seats = seats(workload.share(workload.qpairs.into(), lcore), connections);
        let mut rng = Rng::new(workload.seed ^ (u64::from(lcore) << 56));
        let events = (0..seats.len())
            .map(|seat| Reverse((START + rng.below(20_000), Event::Open(seat))))
            .collect();
        Self {
            workload,
            stages,
            recorder,
            lcore,
            rng,
            now: START,
            events,
            seats,
            requests: Vec::new(),
            requests_each: (workload.share(workload.requests, lcore) / connections).max(1),
            connections: Vec::new(),
            free_qpairs: Vec::new(),
            free_owners: owners(workload, stages, lcore),
            free_bdev_ios: Vec::new(),
            fresh_bdev_io: BDEV_IOS + (u64::from(lcore) << 32),
            bdev_depth: [0; BDEVS.len()],
        }
    }

    /// Runs until every connection has sent its requests. The last connection of a seat stays.
    pub(super) fn run(&mut self) {
        while let Some(Reverse((time, event))) = self.events.pop() {
            self.now = time.max(self.now + 1);
            match event {
                Event::Open(seat) => self.open(seat),
                Event::Stage(request) => self.advance(request),
            }
        }
    }

    fn later(&mut self, ticks: u64, event: Event) {
        self.events.push(Reverse((self.now + ticks, event)));
    }

    fn record(&mut self, record: &Record) {
        self.recorder.record(self.lcore, record);
    }

    fn open(&mut self, seat: usize) {
        let connection = self.new_connection();
        self.seats[seat].connection = self.connections.len();
        self.seats[seat].generations -= 1;
        self.seats[seat].to_send = self.requests_each;
        self.note_owner(&connection);
        self.connections.push(connection);
        self.record_connection(seat, 0);
        let depth = u64::from(self.workload.queue_depth).min(self.requests_each);
        let named = self.connections[self.seats[seat].connection].named;
        for place in 0..depth {
            let request = self.place_for(seat, place);
            let wait = named + 1 - self.now + self.rng.wait(3_000);
            self.seats[seat].to_send -= 1;
            self.seats[seat].in_flight += 1;
            self.later(wait, Event::Stage(request));
        }
    }

    /// Returns the request for this position in the seat's queue; requests of the previous
    /// connection are over.
    fn place_for(&mut self, seat: usize, place: u64) -> usize {
        let qpair = self.connections[self.seats[seat].connection].qpair;
        let first = REQUESTS + (qpair - QPAIRS) * u64::from(self.workload.queue_depth);
        let mut request = Request {
            seat,
            pointer: first + QPAIR_SIZE * place,
            write: false,
            stage: 0,
            bdev: 0,
            bdev_io: 0,
            offset: 0,
            blocks: 0,
        };
        self.renew(&mut request);
        let at = seat * self.workload.queue_depth as usize + place as usize;
        if self.requests.len() <= at {
            self.requests.resize(at + 1, request.clone());
        }
        self.requests[at] = request;
        at
    }

    fn renew(&mut self, request: &mut Request) {
        request.stage = 0;
        request.write = self.rng.chance(self.workload.writes_per_mille);
        request.bdev = self.rng.below(BDEVS.len() as u64) as usize;
        request.blocks = 8 << self.rng.below(4);
        request.offset = 8 * self.rng.below(1 << 20);
    }

    fn new_connection(&mut self) -> Connection {
        let number = self.connections.len() as u64;
        let lcore = u64::from(self.lcore);
        let fresh = QPAIRS + (lcore << 32) + QPAIR_SIZE * number;
        let transport = if self.rng.chance(self.workload.rdma_per_mille) {
            Transport::Rdma
        } else {
            Transport::Tcp
        };
        let qid = 1 + (number % 16) as u16;
        let owner = if self.stages.has_owners() {
            self.free_owners.pop_front().unwrap_or(0)
        } else {
            qid
        };
        Connection {
            qpair: self.free_qpairs.pop().unwrap_or(fresh),
            thread: lcore + 2,
            qid,
            subnqn: format!("nqn.2016-06.io.spdk:cnode{}", 1 + self.rng.below(4)),
            hostnqn: host_nqn(&mut self.rng),
            transport,
            lcore: self.lcore,
            owner,
            added: self.now,
            named: self.now + 2_000 + self.rng.wait(10_000),
            removed: None,
        }
    }

    fn note_owner(&mut self, connection: &Connection) {
        if self.stages.has_owners() && connection.owner != 0 {
            let listener = self.workload.era >= crate::Era::F;
            let description = connection.description(32_768 + self.rng.below(28_000), listener);
            self.recorder
                .image
                .owner(connection.owner, OWNER_TCP, self.now - 1, &description);
        }
    }

    /// Records that the seat's connection was created (0) or destroyed (1).
    fn record_connection(&mut self, seat: usize, which: usize) {
        let Connection {
            transport,
            qpair,
            owner,
            ..
        } = self.connections[self.seats[seat].connection];
        let record = self
            .stages
            .connection_record(transport, which, self.now, qpair, owner);
        self.record(&record);
    }

    /// Records the stage that the request is in, and waits for the next one.
    fn advance(&mut self, at: usize) {
        let request = self.requests[at].clone();
        let stages = self.stages;
        let transport = self.connections[self.seats[request.seat].connection].transport;
        let way = stages.for_request(transport, request.write);
        match way[request.stage].kind {
            Kind::Submit => self.submit(at, way[request.stage]),
            Kind::Complete => self.complete(&request, way[request.stage]),
            _ => self.record_stage(&request, way[request.stage], self.now),
        }
        self.requests[at].stage += 1;
        match way.get(request.stage + 1) {
            Some(next) if next.kind == Kind::Complete => {
                let wait = self.rng.latency(next.wait);
                self.later(wait, Event::Stage(at));
            }
            Some(next) => {
                let wait = self.rng.wait(next.wait);
                self.later(wait, Event::Stage(at));
            }
            None => self.next_request(at),
        }
    }

    fn record_stage(&mut self, request: &Request, stage: Stage, tsc: u64) {
        let seat = &self.seats[request.seat];
        let connection = &self.connections[seat.connection];
        let in_flight = InFlight {
            pointer: request.pointer,
            transport: connection.transport,
            qpair: connection.qpair,
            owner: connection.owner,
            depth: seat.in_flight,
            write: request.write,
            bdev: request.bdev,
            bdev_io: request.bdev_io,
            bdev_depth: self.bdev_depth[request.bdev],
            offset: request.offset,
            blocks: request.blocks,
        };
        let record = self.stages.record(stage, tsc, &in_flight);
        self.record(&record);
    }

    /// Submits a bdev I/O. Its record has the time of submission, which may be before that of the
    /// previous record.
    fn submit(&mut self, at: usize, stage: Stage) {
        let pointer = self.free_bdev_ios.pop().unwrap_or(self.fresh_bdev_io);
        if pointer == self.fresh_bdev_io {
            self.fresh_bdev_io += 0x400;
        }
        self.requests[at].bdev_io = pointer;
        let request = self.requests[at].clone();
        self.bdev_depth[request.bdev] += 1;
        if !self.workload.bdev {
            return;
        }
        let early = if self.rng.chance(self.workload.early_starts_per_mille) {
            1 + self.rng.below(1_500)
        } else {
            0
        };
        let tsc = (self.now - early).max(1);
        self.record_stage(&request, stage, tsc);
    }

    fn complete(&mut self, request: &Request, stage: Stage) {
        self.bdev_depth[request.bdev] -= 1;
        self.free_bdev_ios.push(request.bdev_io);
        if self.workload.bdev {
            self.record_stage(request, stage, self.now);
        }
    }

    /// Sends the next request from the same position of the queue, or ends the connection.
    fn next_request(&mut self, at: usize) {
        let mut request = self.requests[at].clone();
        let seat = request.seat;
        if self.seats[seat].to_send > 0 {
            self.seats[seat].to_send -= 1;
            self.renew(&mut request);
            self.requests[at] = request;
            let wait = 500 + self.rng.wait(5_000);
            self.later(wait, Event::Stage(at));
            return;
        }
        self.seats[seat].in_flight -= 1;
        if self.seats[seat].in_flight == 0 && self.seats[seat].generations > 0 {
            self.close(seat);
        }
    }

    fn close(&mut self, seat: usize) {
        self.now += 1;
        self.record_connection(seat, 1);
        let connection = &mut self.connections[self.seats[seat].connection];
        connection.removed = Some(self.now);
        self.free_qpairs.push(connection.qpair);
        if connection.owner != 0 {
            self.free_owners.push_back(connection.owner);
        }
        let wait = 10_000 + self.rng.wait(50_000);
        self.later(wait, Event::Open(seat));
    }
}

/// Creates the seats of one lcore, with the number of connections of each.
fn seats(count: u64, connections: u64) -> Vec<Seat> {
    let generations = |seat| connections / count + u64::from(seat < connections % count);
    (0..count)
        .map(|seat| Seat {
            generations: generations(seat),
            ..Seat::default()
        })
        .collect()
}

/// Returns the owner ids that one lcore may assign to its connections.
fn owners(workload: &Workload, stages: &Stages, lcore: u32) -> VecDeque<u16> {
    let free = if stages.has_owners() {
        FIRST_OWNER + BDEVS.len()..workload.owner_count
    } else {
        0..0
    };
    free.filter(|owner| *owner as u32 % workload.lcores == lcore)
        .map(|owner| owner as u16)
        .collect()
}
