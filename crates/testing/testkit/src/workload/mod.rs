//! A realistic load for benchmarks, demos and whole-program tests: an NVMe-oF target under reads
//! and writes.
//!
//! Hosts connect over TCP and RDMA, keep a queue of requests in flight, and leave. Every request
//! passes the stages that SPDK records, on the lcore of its connection. The same seed gives the
//! same bytes on every machine.

mod connection;
mod lcore;
#[cfg(test)]
mod tests;

use spdk_trace_writer::nvmf::{BDEVS, FIRST_OWNER, OWNER_BDEV, Stages};
use spdk_trace_writer::{Era, Image, Record, Rng, TraceBuilder, TraceFile};

use crate::survivor::{Journal, Survivor};
pub use connection::Connection;
use lcore::LcoreRun;

/// Start of the load, in ticks.
const START: u64 = 0x45a_0000_0000;
/// Number of tracepoint ids up to the end of the last group that the load uses, NVMe-oF over TCP.
const COMPACT_TPOINTS: usize = 6 * 64;

/// Target of the recording.
struct Recorder {
    image: Image,
    /// Journal, if the truth is requested.
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

/// Parameters of a load. Every field may be set; [`Workload::new`] has a small one.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The era of the file.
    pub era: Era,
    /// Seed of everything random.
    pub seed: u64,
    /// Number of lcores, which are numbered from 0.
    pub lcores: u32,
    /// Number of slots in each lcore's ring, a power of two.
    pub slots: usize,
    /// Total number of requests; every connection sends at least one.
    pub requests: u64,
    /// Number of simultaneous connections.
    pub qpairs: u32,
    /// Total number of connections, one after another; at least `qpairs`.
    pub connections: u32,
    /// Number of requests in flight on each connection.
    pub queue_depth: u32,
    /// Connections per 1,000 that use RDMA.
    pub rdma_per_mille: u32,
    /// Requests per 1,000 that are writes.
    pub writes_per_mille: u32,
    /// `BDEV_IO_START` records per 1,000 with an earlier tsc than the record before them.
    pub early_starts_per_mille: u32,
    /// Ticks per second.
    pub tsc_rate: u64,
    /// Number of owners that the file has room for, in the eras with owners.
    pub owner_count: usize,
    /// True if the tables of an era F file end after their used part, instead of having SPDK's
    /// sizes.
    pub compact: bool,
    /// True if the bdev layer records as well; its records take several slots, all others one.
    pub bdev: bool,
    /// True to keep the list of surviving records, which takes time and memory.
    pub truth: bool,
}

/// A generated load.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The trace file.
    pub file: TraceFile,
    /// Recording of SPDK's three qpair probes.
    pub recording: String,
    /// All connections, by lcore and in the order of creation.
    pub connections: Vec<Connection>,
    /// The records still in the rings, if requested by [`Workload::truth`].
    pub truth: Vec<Survivor>,
}

impl Workload {
    /// Returns 2,000 requests on two lcores, over eight simultaneous connections of twelve in all;
    /// nothing wraps.
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

    /// Returns the load of the sample in dptrace for `dptrace demo`: small, and nothing wraps.
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

    /// Sets `requests` so that about `percent` % of the slots are written: 125 wraps the rings.
    #[must_use]
    pub fn filling(mut self, percent: u64) -> Self {
        let slots = self.slots as u64 * u64::from(self.lcores);
        self.requests = slots * percent / 50 / Stages::new(self.era).slots_of_two() as u64;
        self
    }

    /// Generates the load.
    ///
    /// # Panics
    /// If there are no lcores, fewer simultaneous connections than lcores, no requests in flight,
    /// or `slots` is not a power of two or too small for one record.
    pub fn generate(&self) -> Generated {
        assert!(
            self.lcores > 0 && self.qpairs >= self.lcores,
            "every lcore needs a connection"
        );
        assert!(
            self.queue_depth > 0,
            "a connection needs a request in flight"
        );
        let stages = Stages::new(self.era);
        let trace = self.empty_trace(&stages);
        let journal = self.truth.then(|| Journal::from_trace(&trace));
        let mut recorder = Recorder {
            image: trace.empty_image(),
            journal,
        };
        let mut connections = Vec::new();
        for lcore in 0..self.lcores {
            let mut run = LcoreRun::new(self, &stages, &mut recorder, lcore);
            run.run();
            connections.append(&mut run.connections);
        }
        let recording = connection::recording(&connections, &mut Rng::new(!self.seed));
        let truth = recorder
            .journal
            .as_ref()
            .map(Journal::survivors)
            .unwrap_or_default();
        Generated {
            file: recorder.image.file,
            recording,
            connections,
            truth,
        }
    }

    /// Returns one lcore's share of a total.
    fn share(&self, all: u64, lcore: u32) -> u64 {
        let lcores = u64::from(self.lcores);
        all / lcores + u64::from(u64::from(lcore) < all % lcores)
    }

    fn empty_trace(&self, stages: &Stages) -> TraceBuilder {
        let mut trace = TraceBuilder::new(self.era)
            .tsc_rate(self.tsc_rate)
            .slots(self.slots);
        if self.compact && self.era == Era::F {
            trace = trace
                .tpoint_count(COMPACT_TPOINTS)
                .lcore_count(self.lcores as usize);
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
