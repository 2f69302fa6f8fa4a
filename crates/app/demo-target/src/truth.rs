//! The truth about a run, which tests compare with the recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::DemoError;
use crate::inject::{GapTruth, InjectionTruth};

/// Version of the document's format.
pub(crate) const VERSION: u32 = 2;

/// Document about a complete run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Version of this format: 2.
    pub version: u32,
    /// Process id.
    pub pid: u32,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Measured ticks per second.
    pub tsc_rate: u64,
    /// Path of the trace file, if there was one.
    pub trace_file: Option<String>,
    /// Reason for the end.
    pub ended: End,
    /// Start of the run, in ticks.
    pub first_tsc: u64,
    /// End of the run, in ticks.
    pub last_tsc: u64,
    /// Requests started.
    pub requests_started: u64,
    /// Requests completed.
    pub requests_completed: u64,
    /// Mean cost of a hit in nanoseconds, if it was measured.
    pub nanos_per_hit: Option<f64>,
    /// Number of hits of each probe (`provider:name`) and each function.
    pub hits: BTreeMap<String, u64>,
    /// Version of SPDK that its memory imitates.
    pub era: String,
    /// Objects in its memory from the beginning to the end.
    pub objects: Vec<ObjectTruth>,
    /// Connections, reactor after reactor, in the order of their start.
    pub qpairs: Vec<QpairTruth>,
    /// Delays of `--inject`, reactor after reactor, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<InjectionTruth>,
    /// Gaps with `--inject`: times of 20 us or longer without a poll although nothing was injected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapTruth>,
}

/// Reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// End of its time.
    Time,
    /// End of its requests, connections or hits.
    Requests,
    /// Signal.
    Signal,
}

/// Object in memory that lives as long as the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectTruth {
    /// Kind: `target`, `subsystem`, `namespace`, `poll_group`, `bdev`, `thread`, `poller`,
    /// `timed_poller`, `reactor` or `nvme_ctrlr`.
    pub kind: String,
    /// Address.
    pub pointer: u64,
    /// Names and numbers, as text.
    pub values: BTreeMap<String, String>,
}

/// Connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpairTruth {
    /// Pointer; later connections may have the same.
    pub pointer: u64,
    /// Id of the SPDK thread that polls it.
    pub thread: u64,
    /// Lcore that records for it.
    pub lcore: u32,
    /// Number within the controller: 0 for the admin queue.
    pub qid: u16,
    /// Pointer of the controller.
    pub ctrlr: u64,
    /// Number of the controller within its subsystem.
    pub cntlid: u16,
    /// Pointer of the poll group.
    pub group: u64,
    /// Transport: `tcp` or `rdma`.
    pub transport: String,
    /// Owner id in the trace file (TCP), or 0.
    pub owner: u16,
    /// NQN of the subsystem.
    pub subnqn: String,
    /// NQN of the host.
    pub hostnqn: String,
    /// TSC passed to `nvmf_poll_group_add_qpair`.
    pub added: u64,
    /// TSC passed to `nvmf_ctrlr_add_qpair`.
    pub named: u64,
    /// TSC passed to `nvmf_poll_group_remove_qpair`; `None` if it lived to the end.
    pub removed: Option<u64>,
}

impl Truth {
    /// Writes the document. It appears under its name only when it is complete.
    pub(crate) fn write(&self, path: &Path) -> Result<(), DemoError> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".part");
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            fs::write(&unfinished, text)?;
            fs::rename(&unfinished, path)
        };
        write().map_err(|source| DemoError::Truth {
            path: path.to_owned(),
            source,
        })
    }
}
