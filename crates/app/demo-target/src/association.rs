//! Hosts that connect and disconnect. Each has a controller with an admin queue and I/O queues;
//! every queue is a connection (qpair).

use std::sync::Arc;

use spdk_trace_writer::nvmf::{OWNER_TCP, Transport};

use crate::functions::demo_connect_msg;
use crate::memory::{Association, Block, NewQpair};
use crate::reactor::{Event, PLANNED_RATE, Reactor};
use crate::truth::QpairTruth;

/// Limit on the connections of one controller.
const QPAIRS_EACH: u64 = 4;
/// Share of hosts with RDMA connections, per 1,000.
const RDMA_PER_MILLE: u32 = 500;

/// Slot for one controller after another.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Number of connections of each controller here.
    size: u64,
    pub(crate) controller: Option<Controller>,
}

/// Association of one host with a subsystem.
#[derive(Debug)]
pub(crate) struct Controller {
    memory: Arc<Block>,
    cntlid: u16,
    subsystem: usize,
    host: usize,
    pub(crate) transport: Transport,
    pub(crate) qpairs: Vec<Qpair>,
}

/// Connection.
#[derive(Debug)]
pub(crate) struct Qpair {
    memory: Arc<Block>,
    pub(crate) pointer: u64,
    pub(crate) owner: u16,
    pub(crate) qid: u16,
    /// Requests still to be planned.
    pub(crate) to_send: u64,
    /// Requests planned or in flight.
    pub(crate) outstanding: u64,
    pub(crate) in_flight: u64,
    /// Index of its truth, if a truth file was requested.
    truth: Option<usize>,
}

impl Seat {
    /// Returns the seats needed for this number of simultaneous connections.
    pub(crate) fn for_connections(mut connections: u64) -> Vec<Seat> {
        let mut seats = Vec::new();
        while connections > 0 {
            let size = connections.min(QPAIRS_EACH);
            seats.push(Seat {
                size,
                controller: None,
            });
            connections -= size;
        }
        seats
    }
}

impl Controller {
    /// Returns true if every connection has sent and received back all its requests.
    pub(crate) fn is_over(&self) -> bool {
        self.qpairs
            .iter()
            .all(|qpair| qpair.to_send == 0 && qpair.outstanding == 0)
    }
}

impl Reactor<'_> {
    /// Connects a host: its admin queue first, which creates the controller, then its I/O queues.
    pub(crate) fn open(&mut self, seat: usize) {
        if self.budget == Some(0) || self.to_connect == Some(0) {
            return;
        }
        let size = self.seats[seat].size;
        self.to_connect = self.to_connect.map(|left| left.saturating_sub(size));
        let world = &self.shared.world;
        let mut controller = Controller {
            memory: self.free_ctrlrs.pop().unwrap_or_else(|| world.new_ctrlr()),
            cntlid: 0,
            subsystem: self.rng.below(self.shared.names.subsystems.len() as u64) as usize,
            host: self.rng.below(self.shared.names.hosts.len() as u64) as usize,
            transport: if self.rng.chance(RDMA_PER_MILLE) {
                Transport::Rdma
            } else {
                Transport::Tcp
            },
            qpairs: Vec::new(),
        };
        for qid in 0..size {
            let qpair = self.connect(&mut controller, qid as u16);
            controller.qpairs.push(qpair);
        }
        self.controllers += 1;
        self.seats[seat].controller = Some(controller);
        self.send_first(seat);
    }

    /// Makes one connection, from the record of its socket or RDMA queue to its name.
    fn connect(&mut self, controller: &mut Controller, qid: u16) -> Qpair {
        let world = &self.shared.world;
        let memory = self.free_qpairs.pop().unwrap_or_else(|| world.new_qpair());
        let pointer = memory.address();
        let port = 32_768 + self.rng.below(28_000) as u16;
        let owner = self.new_owner(controller, port);
        world.accept(
            &memory,
            NewQpair {
                transport: controller.transport,
                owner,
                port,
            },
        );
        self.record_connection(controller.transport, 0, pointer, owner);
        let (added, named) = self.announce(controller, &memory, qid);
        let truth = self
            .shared
            .options
            .truth
            .is_some()
            .then_some(self.qpairs.len());
        if truth.is_some() {
            let known = &self.shared.names;
            self.qpairs.push(QpairTruth {
                pointer,
                thread: self.thread(),
                lcore: self.lcore,
                qid,
                ctrlr: controller.memory.address(),
                cntlid: controller.cntlid,
                group: self.shared.world.group(self.lcore),
                transport: if controller.transport == Transport::Tcp {
                    "tcp"
                } else {
                    "rdma"
                }
                .to_owned(),
                owner,
                subnqn: known.subsystems[controller.subsystem]
                    .to_string_lossy()
                    .into_owned(),
                hostnqn: known.hosts[controller.host].to_string_lossy().into_owned(),
                added,
                named,
                removed: None,
            });
        }
        let to_send = 1 + self.rng.wait(self.shared.options.life);
        Qpair {
            memory,
            pointer,
            owner,
            qid,
            to_send,
            outstanding: 0,
            in_flight: 0,
            truth,
        }
    }

    /// Hits the probes of a new connection, in the order of SPDK's steps. Returns the times when it
    /// was added and named.
    fn announce(
        &mut self,
        controller: &mut Controller,
        qpair: &Arc<Block>,
        qid: u16,
    ) -> (u64, u64) {
        let (known, world) = (&self.shared.names, &self.shared.world);
        let (pointer, ctrlr) = (qpair.address(), controller.memory.address());
        let (subnqn, hostnqn) = (
            &known.subsystems[controller.subsystem],
            &known.hosts[controller.host],
        );
        let (number, thread) = (u64::from(qid), self.thread());
        world.join_group(self.lcore, qpair);
        let added = self.stamps.next();
        self.hits.nvmf_poll_group_add_qpair(added, pointer, thread);
        world.link_qpair(self.lcore, qpair);
        self.hits
            .nvmf_transport_poll_group_add(self.stamps.next(), pointer, number, thread);
        self.hits.msg_exec(
            self.stamps.next(),
            demo_connect_msg as *const () as u64,
            ctrlr,
        );
        demo_connect_msg(ctrlr);
        let named;
        if qid == 0 {
            let new = Association {
                ctrlr: &controller.memory,
                subsystem: controller.subsystem,
                hostnqn: hostnqn.to_bytes(),
            };
            world.create_ctrlr(self.lcore, &new, qpair);
            self.hits
                .nvmf_ctrlr_create(self.stamps.next(), ctrlr, subnqn, thread);
            self.hits
                .nvmf_subsystem_add_ctrlr(self.stamps.next(), subnqn, ctrlr, hostnqn);
            controller.cntlid = world.add_ctrlr(&new, qpair);
            named = self.stamps.next();
            self.hits
                .nvmf_ctrlr_add_qpair(named, pointer, number, subnqn, hostnqn);
        } else {
            self.hits
                .nvmf_ctrlr_add_io_qpair(self.stamps.next(), ctrlr, pointer, number, thread);
            named = self.stamps.next();
            self.hits
                .nvmf_ctrlr_add_qpair(named, pointer, number, subnqn, hostnqn);
        }
        world.name_qpair(qpair, &controller.memory, qid);
        (added, named)
    }

    /// Registers the connection as an owner, as the TCP transport does (v24.05 on). Returns 0 for
    /// RDMA, or if none is free.
    fn new_owner(&mut self, controller: &Controller, port: u16) -> u16 {
        if controller.transport == Transport::Rdma || !self.shared.stages.has_owners() {
            return 0;
        }
        let owner = self.free_owners.pop_front().unwrap_or(0);
        if owner != 0 {
            let subnqn = self.shared.names.subsystems[controller.subsystem].to_string_lossy();
            let tsc = self.stamps.next();
            self.ring
                .owner(owner, OWNER_TCP, tsc, &format!("127.0.0.1:{port} {subnqn}"));
        }
        owner
    }

    fn record_connection(&mut self, transport: Transport, which: usize, qpair: u64, owner: u16) {
        let tsc = self.stamps.next();
        let record = self
            .shared
            .stages
            .connection_record(transport, which, tsc, qpair, owner);
        self.ring.record(&record);
    }

    /// Disconnects a host, and after a while another one takes its place.
    pub(crate) fn close_and_reopen(&mut self, seat: usize) {
        self.close(seat);
        let options = self.shared.options;
        if options.churn.is_some() {
            self.later(1_000, Event::Open { seat });
            return;
        }
        // A tenth of the lifetime of a connection.
        let pause = if options.flat_out {
            20_000
        } else {
            self.think_time() * options.life / 10
        };
        let wait = self.rng.wait(pause.clamp(20_000, PLANNED_RATE / 4));
        self.later(wait, Event::Open { seat });
    }

    /// Disconnects a controller's connections, and destroys it. It is inlined where a host leaves
    /// and where the target ends, so that its probes are in two places.
    #[expect(
        clippy::inline_always,
        reason = "probes in several places are wanted in every build"
    )]
    #[inline(always)]
    pub(crate) fn close(&mut self, seat: usize) {
        let Some(controller) = self.seats[seat].controller.take() else {
            return;
        };
        for qpair in controller.qpairs.iter().rev() {
            self.disconnect(qpair, controller.transport);
        }
        let (names, pointer) = (&self.shared.names, controller.memory.address());
        let (subnqn, hostnqn) = (
            &names.subsystems[controller.subsystem],
            &names.hosts[controller.host],
        );
        self.hits
            .nvmf_subsystem_remove_ctrlr(self.stamps.next(), subnqn, pointer, hostnqn);
        self.shared
            .world
            .remove_ctrlr(controller.subsystem, &controller.memory);
        self.hits
            .nvmf_ctrlr_destruct(self.stamps.next(), pointer, self.thread());
        self.controllers -= 1;
        self.free_ctrlrs.push(controller.memory);
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn disconnect(&mut self, qpair: &Qpair, transport: Transport) {
        let thread = self.thread();
        self.hits
            .nvmf_qpair_disconnect(self.stamps.next(), qpair.pointer, thread);
        if qpair.in_flight > 0 {
            self.hits
                .nvmf_poll_group_drain_qpair(self.stamps.next(), qpair.pointer, thread);
        }
        self.hits.nvmf_transport_poll_group_remove(
            self.stamps.next(),
            qpair.pointer,
            qpair.qid.into(),
            thread,
        );
        let removed = self.stamps.next();
        self.hits
            .nvmf_poll_group_remove_qpair(removed, qpair.pointer, thread);
        self.shared.world.unlink_qpair(self.lcore, &qpair.memory);
        if let Some(truth) = qpair.truth {
            self.qpairs[truth].removed = Some(removed);
        }
        self.hits
            .nvmf_transport_qpair_fini(self.stamps.next(), qpair.pointer);
        self.record_connection(transport, 1, qpair.pointer, qpair.owner);
        self.free_qpairs.push(Arc::clone(&qpair.memory));
        if qpair.owner != 0 {
            self.free_owners.push_back(qpair.owner);
        }
    }
}
