//! `meta.json`: what machine and process a capture is of, what was captured, and once it has ended, what came of it.
//!
//! It is written when the capture begins, and replaced when it ends: one that was cut short has no `end`. Members that a reader
//! does not know are ignored; a change that makes old readers wrong gets another `format`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use scene::Checked;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use spdk_trace::Trace;
use stats::Histogram;

/// The format of captures that this version writes.
pub const FORMAT: u32 = 1;
/// The most bytes of the file.
pub const MAX_META: u64 = 1 << 23;
/// The most threads, rings and other parts of each list that a reader keeps, and a writer should write.
pub const MOST_PARTS: usize = 1 << 14;

/// All of it. What is not known is 0, empty or missing. Texts of others are escaped, as dptrace prints them.
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
    #[serde(deserialize_with = "first_parts")]
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
    #[serde(deserialize_with = "first_parts")]
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
    #[serde(deserialize_with = "first_parts")]
    pub command_line: Vec<String>,
    /// Its threads when the capture began.
    #[serde(deserialize_with = "first_parts")]
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
    /// Events that came too late for the order of time, and stand behind later ones.
    pub events_late: u64,
    /// Lines of `objects.txt`.
    pub object_lines: u64,
    /// Bytes of all files but this one.
    pub bytes: u64,
    /// How far the clock that puts ticks and the kernel's nanoseconds on one line is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOff>,
    /// How far it is from the kernel's time at hits of probes that pass their ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinError>,
    /// The same of the fastest hits only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_fastest: Option<FastestHits>,
}

/// How far the clock is from readings of both clocks that lie between its anchors and are no part of it, in nanoseconds without the
/// sign, to less than 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockOff {
    /// Readings that were compared.
    pub readings: u64,
    /// Half of them were at most so far off.
    pub p50: u64,
    /// 99 of 100 were.
    pub p99: u64,
    /// All were.
    pub max: u64,
}

/// The difference between a probe's own ticks, put on the kernel's clock, and the kernel's time at the same hit, in nanoseconds
/// without its sign, to less than 1 %. The probe takes its ticks before its program runs: the trap is part of the difference, and what
/// interrupts the thread there.
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

/// The fastest hit of each time between two anchors, if that has 8 hits at least: how far it is above the least of all of them, in
/// nanoseconds to less than 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FastestHits {
    /// Times that were measured.
    pub intervals: u64,
    /// The least difference, with its sign: about the cost of the trap.
    pub least: i64,
    /// Half of them were at most so far above it.
    pub p50: u64,
    /// 99 of 100 were.
    pub p99: u64,
    /// All were.
    pub max: u64,
}

impl End {
    /// States what was measured of the clock.
    pub fn state_clock(&mut self, checked: &Checked) {
        let Checked { between, at_hits, fastest, least } = checked;
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

/// A list, the first [`MOST_PARTS`] of it: what is behind these is passed over.
fn first_parts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Parts<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut parts = Vec::new();
            while parts.len() < MOST_PARTS
                && let Some(part) = list.next_element()?
            {
                parts.push(part);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(parts)
        }
    }
    deserializer.deserialize_seq(Parts(PhantomData))
}

/// How many parts of lists a reader of this text leaves out: those behind the first [`MOST_PARTS`] of each.
pub(crate) fn parts_left_out(json: &[u8]) -> Result<u64, serde_json::Error> {
    /// The lists of [`Meta`], counted.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Lists {
        lcores: List,
        machine: OfMachine,
        process: OfProcess,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct OfMachine {
        governors: List,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct OfProcess {
        command_line: List,
        threads: List,
    }
    // Each part takes two bytes at least.
    if json.len() <= 2 * MOST_PARTS {
        return Ok(0);
    }
    let Lists { lcores, machine, process } = serde_json::from_slice(json)?;
    let lists = [lcores, machine.governors, process.command_line, process.threads];
    Ok(lists.iter().map(|List(parts)| parts.saturating_sub(MOST_PARTS as u64)).sum())
}

/// The length of a list.
#[derive(Default)]
struct List(u64);

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> Visitor<'de> for Counting {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List, A::Error> {
                let mut parts = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    parts += 1;
                }
                Ok(List(parts))
            }
        }
        deserializer.deserialize_seq(Counting)
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

/// Returns the number of records that a trace will have, if it is known before they are read; the trace may be a capture's.
pub fn expected_records(trace: &Trace, capture: Option<&Meta>) -> Option<u64> {
    match trace {
        Trace::Raw(raw) => Some(raw.rings().map(|ring| ring.records).sum()),
        Trace::Captured(_) => capture?.end.as_ref().map(|end| end.records),
        Trace::Json(_) => None,
    }
}
