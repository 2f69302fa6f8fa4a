//! `meta.json`: what machine and process a capture is of, what was captured, and once it has ended, what came of it.
//!
//! It is written when the capture begins, and replaced when it ends: one that was cut short has no `end`. Members that a reader
//! does not know are ignored; a change that makes old readers wrong gets another `format`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format of captures that this version writes.
pub const FORMAT: u32 = 1;

/// All of it. What is not known is 0, empty or missing. Texts are escaped as dptrace prints foreign text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of dptrace.
    pub dptrace: String,
    /// When it began.
    pub begin: When,
    /// The machine.
    pub machine: Machine,
    /// The process.
    pub process: Process,
    /// What is being captured.
    pub captured: Captured,
    /// Why the other parts are not: by the part's name in [`Captured`].
    pub missing: BTreeMap<String, String>,
    /// Which thread writes each ring.
    pub lcores: Vec<LcoreThread>,
    /// What came of it; missing in a capture that was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// A moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct When {
    /// In UTC, as of RFC 3339.
    pub utc: String,
    /// Nanoseconds of `CLOCK_BOOTTIME`, as events have them.
    pub boot_nanos: u64,
}

/// A machine and its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Its name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The architecture, as Rust names it.
    pub arch: String,
    /// CPUs that are online, as the kernel lists them: `0-3,8`.
    pub cpus_online: String,
    /// CPUs without load balancing (`isolcpus=`).
    pub cpus_isolated: String,
    /// CPUs without a timer tick while one task runs (`nohz_full=`).
    pub cpus_nohz_full: String,
    /// The frequency governors in use.
    pub governors: Vec<String>,
    /// The kernel's command line.
    pub kernel_command_line: String,
    /// The clock source.
    pub clock_source: String,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in clock ticks since boot: with the number this distinguishes it from others.
    pub start: u64,
    /// The path of its program.
    pub program: String,
    /// What it was started with.
    pub command_line: Vec<String>,
    /// Its threads when the capture began.
    pub threads: Vec<Thread>,
    /// The path of its trace file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_file: Option<String>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The CPUs on which it may run, as the kernel lists them.
    pub affinity: String,
    /// The scheduling policy: `SCHED_OTHER`, `SCHED_FIFO`, ...
    pub policy: String,
    /// The priority of a real-time policy; 0 otherwise.
    pub priority: u32,
}

/// Which parts a capture has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Captured {
    /// `trace.rings`.
    pub trace: bool,
    /// `kernel.events`.
    pub kernel: bool,
    /// `objects.txt`.
    pub objects: bool,
}

/// The thread that writes an lcore's ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LcoreThread {
    /// The lcore.
    pub lcore: u16,
    /// The thread's name in the trace file; empty if the file has none.
    pub name: String,
    /// Its number, if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// By what: `name` or `affinity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What came of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// When.
    pub at: When,
    /// Why it ended then.
    pub why: String,
    /// Records of the trace, with those that were in the rings when it began.
    pub records: u64,
    /// Slots of the rings that were overwritten before they were copied.
    pub slots_lost: u64,
    /// Events of the kernel that were written.
    pub events: u64,
    /// The time of the last event that was surely written, in nanoseconds since boot, if there was no room for those after it:
    /// `--max-bytes`, or a full disk. Nothing is known of what came then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_until_boot_nanos: Option<u64>,
    /// Events that were lost: each loss is an event, too.
    pub events_lost: u64,
    /// How often the kernel did not run a program, because one was running on that CPU already.
    pub events_skipped: u64,
    /// Lines of `objects.txt`.
    pub object_lines: u64,
    /// Bytes of all files but this one.
    pub bytes: u64,
    /// How far the clocks of the trace and of the kernel are apart after they were put on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinError>,
}

/// The difference between a probe's own ticks, put on the kernel's clock, and the kernel's time at the same hit, in nanoseconds
/// without its sign. The probe takes its ticks before its program runs: what lies between is part of the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinError {
    /// Hits that were measured.
    pub hits: u64,
    /// Half of them were at most so far off.
    pub p50: u64,
    /// 99 of 100 were.
    pub p99: u64,
    /// All were.
    pub max: u64,
}

impl JoinError {
    /// Of these differences.
    pub fn of(mut differences: Vec<u64>) -> Option<Self> {
        differences.sort_unstable();
        let last = differences.len().checked_sub(1)?;
        let at = |percent: usize| differences[(differences.len() * percent).div_ceil(100).clamp(1, last + 1) - 1];
        Some(Self { hits: differences.len() as u64, p50: at(50), p99: at(99), max: differences[last] })
    }
}

impl Meta {
    /// As it stands in the file.
    ///
    /// # Errors
    ///
    /// None: all of it can be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The capture's part of that name in [`Captured`] is missing, for this reason.
    pub fn miss(&mut self, part: &str, why: &str) {
        self.missing.insert(part.to_owned(), why.to_owned());
    }
}
