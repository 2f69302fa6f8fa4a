//! `meta.json`: the machine and process of a capture, its parts, and once it has ended, its
//! results.
//!
//! It is written when the capture begins, and replaced when it ends; a capture that was cut short
//! has no `end`. Readers ignore unknown members. A change that makes old readers wrong gets another
//! `format`.

use std::collections::BTreeMap;

use scene::ClockErrors;
use serde::{Deserialize, Serialize};
use spdk_trace::Trace;
use stats::Histogram;

use crate::meta_lists::first_parts;

/// Format of captures that this version writes.
pub const FORMAT: u32 = 2;
/// Name of the source of requests that were seen at the process's sockets.
pub const SOCKETS: &str = "sockets";
/// Size limit of the file, in bytes.
pub const MAX_META: u64 = 1 << 23;
/// Limit on the threads, rings and other parts of each list that a reader keeps, and a writer
/// should write.
pub const MAX_PARTS: usize = 1 << 14;

/// Content of `meta.json`. Unknown values are 0, empty or missing. Foreign texts are escaped, as
/// dptrace prints them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Format version, [`FORMAT`].
    pub format: u32,
    /// Version of dptrace.
    pub dptrace: String,
    /// Start of the capture.
    pub begin: Timestamp,
    /// Machine.
    pub machine: Machine,
    /// Process.
    pub process: Process,
    /// Source of the requests in `trace.rings` if they are not those of the process's own trace:
    /// [`SOCKETS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// Captured parts.
    pub captured: CapturedParts,
    /// Reasons why the other parts are missing, by the part's name in [`CapturedParts`].
    pub missing: BTreeMap<String, String>,
    /// Threads that write the rings.
    #[serde(deserialize_with = "first_parts")]
    pub lcores: Vec<LcoreThread>,
    /// Threads of the dptrace that captured, which take CPU time, too.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "first_parts"
    )]
    pub recorder_threads: Vec<u32>,
    /// Results; missing in a capture that was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<CaptureSummary>,
}

/// Moment in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timestamp {
    /// UTC time in the form of RFC 3339.
    pub utc: String,
    /// Nanoseconds of `CLOCK_BOOTTIME`, the clock of events.
    pub boot_nanos: u64,
}

/// Machine and its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Host name.
    pub hostname: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture, by its name in Rust.
    pub arch: String,
    /// Online CPUs, in the kernel's list format: `0-3,8`.
    pub cpus_online: String,
    /// CPUs without load balancing (`isolcpus=`).
    pub cpus_isolated: String,
    /// CPUs without a timer tick while one task runs (`nohz_full=`).
    pub cpus_nohz_full: String,
    /// Frequency governors in use.
    #[serde(deserialize_with = "first_parts")]
    pub governors: Vec<String>,
    /// Command line of the kernel.
    pub kernel_command_line: String,
    /// Clock source.
    pub clock_source: String,
}

/// Process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Start time, in clock ticks since boot; with the id it identifies the process.
    pub start: u64,
    /// Path of its program.
    pub program: String,
    /// Command line.
    #[serde(deserialize_with = "first_parts")]
    pub command_line: Vec<String>,
    /// Threads at the start of the capture.
    #[serde(deserialize_with = "first_parts")]
    pub threads: Vec<Thread>,
    /// Path of its trace file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_file: Option<String>,
}

/// Thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Thread name.
    pub name: String,
    /// CPUs on which it may run, in the kernel's list format.
    pub affinity: String,
    /// Scheduling policy: `SCHED_OTHER`, `SCHED_FIFO`, ...
    pub policy: String,
    /// Priority of a real-time policy; 0 otherwise.
    pub priority: u32,
}

/// Presence of each part of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapturedParts {
    /// `trace.rings`.
    pub trace: bool,
    /// `kernel.events`.
    pub kernel: bool,
    /// `objects.txt`.
    pub objects: bool,
}

/// Thread that writes an lcore's ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LcoreThread {
    /// Lcore.
    pub lcore: u16,
    /// Name of the thread in the trace file; empty if the file has none.
    pub name: String,
    /// Thread id, if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Means by which it was found: `name` or `affinity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Results of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureSummary {
    /// End of the capture.
    pub at: Timestamp,
    /// Reason for the end.
    pub why: String,
    /// Records of the trace, with those that were in the rings at the start.
    pub records: u64,
    /// Slots of the rings overwritten before they were copied.
    pub slots_lost: u64,
    /// Events of the kernel written.
    pub events: u64,
    /// Time of the last event surely written, in nanoseconds since boot, if there was no room for
    /// later ones: `--max-bytes`, or a full disk. Nothing is known of the time after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_until_boot_nanos: Option<u64>,
    /// Events lost: each loss is an event, too.
    pub events_lost: u64,
    /// Runs of a program that the kernel skipped, because one was running on that CPU already.
    pub events_skipped: u64,
    /// Events that came too late for the order of time, and are placed after later ones.
    pub events_late: u64,
    /// Totals of the requests seen at sockets, if these were the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketSummary>,
    /// Lines of `objects.txt`.
    pub object_lines: u64,
    /// Size of all files except this one, in bytes.
    pub bytes: u64,
    /// Error of the clock that puts ticks and the kernel's nanoseconds on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOff>,
    /// Difference to the kernel's time at hits of probes that pass their ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinError>,
    /// Difference at the fastest hits only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_fastest: Option<FastestHits>,
}

/// Totals of the requests that were seen at sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketSummary {
    /// Requests that began.
    pub requests: u64,
    /// Connections on which they came.
    pub connections: u64,
    /// Connections given up for others, since there were too many at a time: requests on these may
    /// be seen in parts.
    pub connections_forgotten: u64,
    /// Connections that the process opened to other servers: nothing on these is a request of its
    /// own.
    pub connections_outgoing: u64,
    /// Events of sockets that were lost: requests are missing, or seem to end early.
    pub events_lost: u64,
}

/// Error of the clock at readings of both clocks between its anchors that are no part of it:
/// absolute values in nanoseconds, to less than 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockOff {
    /// Number of readings compared.
    pub readings: u64,
    /// Median error.
    pub p50: u64,
    /// 99th percentile of the error.
    pub p99: u64,
    /// Maximum error.
    pub max: u64,
}

/// Difference between a probe's own ticks, put on the kernel's clock, and the kernel's time at the
/// same hit: absolute values in nanoseconds, to less than 1 %. The probe takes its ticks before its
/// program runs, so the difference includes the trap and any interrupts of the thread there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinError {
    /// Number of hits measured.
    pub hits: u64,
    /// Median difference.
    pub p50: u64,
    /// 99th percentile of the difference.
    pub p99: u64,
    /// Maximum difference.
    pub max: u64,
}

/// Excess of the fastest hit between each two anchors, if there are at least 8 hits, over the
/// minimum of all: in nanoseconds, to less than 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FastestHits {
    /// Number of intervals measured.
    pub intervals: u64,
    /// Minimum difference, with its sign: about the cost of the trap.
    pub least: i64,
    /// Median excess.
    pub p50: u64,
    /// 99th percentile of the excess.
    pub p99: u64,
    /// Maximum excess.
    pub max: u64,
}

impl CaptureSummary {
    /// Stores the measured errors of the clock.
    pub fn state_clock(&mut self, checked: &ClockErrors) {
        let ClockErrors {
            between,
            at_hits,
            fastest,
            least,
        } = checked;
        let has = |lengths: &Histogram| lengths.count() > 0;
        let [p50, p99] = [0.5, 0.99].map(|part| move |lengths: &Histogram| lengths.quantile(part));
        self.clock = has(between).then(|| ClockOff {
            readings: between.count(),
            p50: p50(between),
            p99: p99(between),
            max: between.max(),
        });
        self.join = has(at_hits).then(|| JoinError {
            hits: at_hits.count(),
            p50: p50(at_hits),
            p99: p99(at_hits),
            max: at_hits.max(),
        });
        self.join_fastest = has(fastest).then(|| FastestHits {
            intervals: fastest.count(),
            least: *least,
            p50: p50(fastest),
            p99: p99(fastest),
            max: fastest.max(),
        });
    }
}

impl Meta {
    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// Never fails: every value can be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Notes why the part of this name in [`CapturedParts`] is missing.
    pub fn miss(&mut self, part: &str, why: &str) {
        self.missing.insert(part.to_owned(), why.to_owned());
    }
}

/// Returns the number of records that a trace will have, if it is known before they are read; the
/// trace may be a capture's.
pub fn expected_records(trace: &Trace, capture: Option<&Meta>) -> Option<u64> {
    match trace {
        Trace::Raw(raw) => Some(raw.rings().map(|ring| ring.records).sum()),
        Trace::Captured(_) => capture?.end.as_ref().map(|end| end.records),
        Trace::Json(_) => None,
    }
}
