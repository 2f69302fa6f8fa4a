//! The truth about a run, which tests compare with the recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::DemoError;
use crate::inject::{GapTruth, InjectionTruth};

/// Version of the document's shape.
pub(crate) const VERSION: u32 = 2;

/// One document: a run, complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Version of this shape: 2.
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// What decided all that was left to chance.
    pub seed: u64,
    /// Ticks a second, measured.
    pub tsc_rate: u64,
    /// The trace file, if there was one.
    pub trace_file: Option<String>,
    /// Why the run ended.
    pub ended: End,
    /// When the run began, in ticks.
    pub first_tsc: u64,
    /// When it had ended, in ticks.
    pub last_tsc: u64,
    /// Requests that were started.
    pub requests_started: u64,
    /// Those of them that completed.
    pub requests_completed: u64,
    /// What a hit cost in the mean, in nanoseconds, where that was measured.
    pub nanos_per_hit: Option<f64>,
    /// How often each probe (`provider:name`) and each function was hit.
    pub hits: BTreeMap<String, u64>,
    /// The version of SPDK that its memory looks like.
    pub era: String,
    /// What lies in its memory from the beginning to the end.
    pub objects: Vec<ObjectTruth>,
    /// Every connection, reactor after reactor, in the order in which they came.
    pub qpairs: Vec<QpairTruth>,
    /// Every delay of `--inject`, reactor after reactor, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<InjectionTruth>,
    /// With `--inject`: when the reactors did not poll for 20 us or longer though nothing was injected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapTruth>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its time was over.
    Time,
    /// It had sent its requests, or hit its probe often enough.
    Requests,
    /// A signal.
    Signal,
}

/// An object in memory that lives as long as the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectTruth {
    /// `target`, `subsystem`, `namespace`, `poll_group`, `bdev`, `thread`, `poller`, `timed_poller`, `reactor` or `nvme_ctrlr`.
    pub kind: String,
    /// Its address.
    pub pointer: u64,
    /// Its names and numbers, as text.
    pub values: BTreeMap<String, String>,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpairTruth {
    /// Its pointer; later ones may have the same.
    pub pointer: u64,
    /// Id of the SPDK thread that polls it.
    pub thread: u64,
    /// The lcore that records for it.
    pub lcore: u32,
    /// Its number within the controller: 0 for the admin queue.
    pub qid: u16,
    /// The controller's pointer.
    pub ctrlr: u64,
    /// The controller's number within its subsystem.
    pub cntlid: u16,
    /// The poll group's pointer.
    pub group: u64,
    /// `tcp` or `rdma`.
    pub transport: String,
    /// Its owner id in the trace file (TCP), or 0.
    pub owner: u16,
    /// NQN of the subsystem.
    pub subnqn: String,
    /// NQN of the host.
    pub hostnqn: String,
    /// The TSC that `nvmf_poll_group_add_qpair` had.
    pub added: u64,
    /// The TSC that `nvmf_ctrlr_add_qpair` had.
    pub named: u64,
    /// The TSC that `nvmf_poll_group_remove_qpair` had; none when it lived to the end.
    pub removed: Option<u64>,
}

impl Truth {
    /// Writes the document; whoever finds the file finds all of it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), DemoError> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".part");
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            fs::write(&unfinished, text)?;
            fs::rename(&unfinished, path)
        };
        write().map_err(|source| DemoError::Truth { path: path.to_owned(), source })
    }
}
