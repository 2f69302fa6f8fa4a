//! A realistic load for benchmarks, demos and whole-program tests: an NVMe-oF target under reads and writes.
//!
//! Hosts connect over TCP and RDMA, keep a queue of requests in flight, and leave; every request passes the stages
//! that SPDK records, on the lcore of its connection. The same seed gives the same bytes on every machine.

mod connection;
mod lcore;
#[cfg(test)]
mod tests;

use spdk_trace_writer::nvmf::{BDEVS, FIRST_OWNER, OWNER_BDEV, Stages};
use spdk_trace_writer::{Era, Image, Record, Rng, TraceBuilder, TraceFile};

use crate::survivor::{Journal, Survivor};
pub use connection::Connection;
use lcore::LcoreRun;

/// When the load begins, in ticks.
const START: u64 = 0x45a_0000_0000;
/// Tracepoint ids up to the end of the last group that the load uses, NVMe-oF over TCP.
const COMPACT_TPOINTS: usize = 6 * 64;

/// What the load is recorded into.
struct Recorder {
    image: Image,
    /// Where the truth is asked for.
    journal: Option<Journal>,
}

impl Recorder {
    fn record(&mut self, lcore: u32, record: &Record) {
        let written = self.image.record(lcore, record);
        if let Some(journal) = &mut self.journal {
            journal.note(lcore, record, written, None);
        }
    }
}

/// What load to generate. Every field may be set; [`Workload::new`] has a small one.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The era of the file.
    pub era: Era,
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Lcores, from 0 on.
    pub lcores: u32,
    /// Slots of each lcore's ring, a power of two.
    pub slots: usize,
    /// Requests in all; every connection sends at least one.
    pub requests: u64,
    /// Connections at a time.
    pub qpairs: u32,
    /// Connections in all, one after another; at least `qpairs`.
    pub connections: u32,
    /// Requests in flight on each connection.
    pub queue_depth: u32,
    /// How many connections of 1,000 use RDMA.
    pub rdma_per_mille: u32,
    /// How many requests of 1,000 are writes.
    pub writes_per_mille: u32,
    /// How many `BDEV_IO_START` records of 1,000 carry an earlier tsc than the record before them.
    pub early_starts_per_mille: u32,
    /// Ticks a second.
    pub tsc_rate: u64,
    /// Owners that the file has room for, in the eras with owners.
    pub owner_count: usize,
    /// Whether the tables of an era F file end behind what is used of them, instead of being as long as SPDK's.
    pub compact: bool,
    /// Whether the bdev layer records as well; its records take several slots, all others one.
    pub bdev: bool,
    /// Whether to keep the list of surviving records, which takes time and memory.
    pub truth: bool,
}

/// A generated load.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The trace file.
    pub file: TraceFile,
    /// What a recording of SPDK's three qpair probes holds.
    pub recording: String,
    /// Every connection, lcore after lcore, in the order in which they came.
    pub connections: Vec<Connection>,
    /// The records that are still in the rings, if [`Workload::truth`] asked for them.
    pub truth: Vec<Survivor>,
}

impl Workload {
    /// 2,000 requests on two lcores, over eight connections at a time of twelve in all; nothing wraps.
    #[must_use]
    pub fn new(era: Era) -> Self {
        Self {
            era,
            seed: 1,
            lcores: 2,
            slots: 32 * 1024,
            requests: 2_000,
            qpairs: 8,
            connections: 12,
            queue_depth: 4,
            rdma_per_mille: 250,
            writes_per_mille: 300,
            early_starts_per_mille: 20,
            tsc_rate: 2_600_000_000,
            owner_count: 16 * 1024,
            compact: false,
            bdev: true,
            truth: true,
        }
    }

    /// The load of the sample that dptrace carries for `dptrace demo`: small, and nothing wraps.
    #[must_use]
    pub fn sample() -> Self {
        Self {
            slots: 1024,
            requests: 80,
            qpairs: 6,
            connections: 8,
            rdma_per_mille: 400,
            owner_count: 288,
            early_starts_per_mille: 0,
            compact: true,
            ..Self::new(Era::F)
        }
    }

    /// Sets `requests` so that the rings are written about `percent` times of 100: 125 wraps them.
    #[must_use]
    pub fn filling(mut self, percent: u64) -> Self {
        let slots = self.slots as u64 * u64::from(self.lcores);
        self.requests = slots * percent / 50 / Stages::new(self.era).slots_of_two() as u64;
        self
    }

    /// Generates the load.
    ///
    /// # Panics
    /// If there are no lcores, fewer connections at a time than lcores, no requests in flight, or `slots` is no power
    /// of two or too few for one record.
    pub fn generate(&self) -> Generated {
        assert!(self.lcores > 0 && self.qpairs >= self.lcores, "every lcore needs a connection");
        assert!(self.queue_depth > 0, "a connection needs a request in flight");
        let stages = Stages::new(self.era);
        let trace = self.empty_trace(&stages);
        let journal = self.truth.then(|| Journal::of(&trace));
        let mut recorder = Recorder { image: trace.empty_image(), journal };
        let mut connections = Vec::new();
        for lcore in 0..self.lcores {
            let mut run = LcoreRun::new(self, &stages, &mut recorder, lcore);
            run.run();
            connections.append(&mut run.connections);
        }
        let recording = connection::recording(&connections, &mut Rng::new(!self.seed));
        let truth = recorder.journal.as_ref().map(Journal::survivors).unwrap_or_default();
        Generated { file: recorder.image.file, recording, connections, truth }
    }

    /// One lcore's share of things that all lcores share out.
    fn share(&self, all: u64, lcore: u32) -> u64 {
        let lcores = u64::from(self.lcores);
        all / lcores + u64::from(u64::from(lcore) < all % lcores)
    }

    fn empty_trace(&self, stages: &Stages) -> TraceBuilder {
        let mut trace = TraceBuilder::new(self.era).tsc_rate(self.tsc_rate).slots(self.slots);
        if self.compact && self.era == Era::F {
            trace = trace.tpoint_count(COMPACT_TPOINTS).lcore_count(self.lcores as usize);
        }
        stages.declare(&mut trace);
        if stages.has_owners() {
            trace = trace.owner_count(self.owner_count);
            for (number, bdev) in BDEVS.iter().enumerate() {
                let owner = (FIRST_OWNER + number) as u16;
                trace.owner(owner, OWNER_BDEV, START - 1_000, &format!("bdev_{bdev}"));
            }
        }
        for lcore in 0..self.lcores {
            let builder = trace.lcore(lcore);
            if self.era.spec().has_thread_names() {
                builder.thread_name(&format!("reactor_{lcore}"));
            }
        }
        trace
    }
}
