//! The data of a report. All times are in nanoseconds.

use crate::beside::PerfettoFile;
use crate::heat::HeatMap;

/// All data of a report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name of the capture or file.
    pub title: String,
    /// Name and version of the program that made the report.
    pub maker: String,
    /// Facts about the whole, as name and value: time, place, process.
    pub facts: Vec<(String, String)>,
    /// Start of the charts, after the origin of times. Times in [`Report::heat`] and [`Report::lanes`]
    /// count from it.
    pub offset: u64,
    /// Time from `offset` to the end.
    pub span: u64,
    /// True if there are kernel events; without them, some parts are omitted.
    pub has_kernel: bool,
    /// Sentence on requests that had not ended, if there are any.
    pub still_open: Option<String>,
    /// Sentences on times away, in which requests waited unread.
    pub absences: Vec<String>,
    /// Verdicts, the most important first.
    pub verdicts: Vec<Verdict>,
    /// Trace for Perfetto that was written together with the page.
    pub perfetto: Option<PerfettoFile>,
    /// Sentences about the requests excluded from the report.
    pub left_out: Vec<String>,
    /// Causes of the requests of the first verdict.
    pub spent: TimeCauses,
    /// Sentences about missing or unknown data.
    pub notes: Vec<String>,
    /// Requests by end and latency.
    pub heat: HeatMap,
    /// Activities of threads over time.
    pub lanes: LaneStrip,
    /// Total time of each thread, by activity.
    pub budgets: Vec<Budget>,
    /// Number of threads without a row in `budgets`.
    pub budgets_left_out: u64,
    /// Threads and interrupts that took CPUs, by total time, largest first.
    pub intruders: Vec<Intruder>,
    /// Number of further intruders, which took less.
    pub intruders_left_out: u64,
    /// The slowest requests, slowest first.
    pub waterfalls: Vec<Waterfall>,
    /// Figures of each kind of object.
    pub groups: Vec<Group>,
    /// Figures of each connection.
    pub connections: Vec<Connection>,
    /// Number of connections omitted for lack of room.
    pub connections_left_out: u64,
}

/// Verdict on one group of requests.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The verdict as one sentence.
    pub sentence: String,
    /// Sentence about the share of the slowness that it explains.
    pub explained: String,
}

/// Causes of the time of the slowest requests.
#[derive(Clone, Debug, Default)]
pub struct TimeCauses {
    /// Name of their group, as in the verdict; empty if obvious.
    pub of: String,
    /// Number of these requests.
    pub requests: u64,
    /// Total time of these requests.
    pub length: u64,
    /// Causes, largest first; the smallest ones are combined.
    pub causes: Vec<Cause>,
}

/// Cause of a part of that time.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// Name of the cause.
    pub name: String,
    /// Activity of the thread that serves the request; `None` if not known.
    pub activity: Option<Activity>,
    /// CPUs on which it took the time.
    pub cpus: Vec<u32>,
    /// Time taken, minimum and maximum.
    pub took: TimeBounds,
    /// Stage with the largest part of that time, by the tracepoints at its ends.
    pub stage: Option<(String, String)>,
}

/// Activity of a thread, as distinguished by colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// The thread's own code.
    #[default]
    Ran,
    /// A system call.
    Call,
    /// Another thread had the CPU.
    Preempted,
    /// The thread was woken, and waited for the CPU.
    Woken,
    /// An interrupt had the CPU.
    Interrupt,
    /// The thread waited for something.
    Blocked,
    /// The thread was stopped.
    Stopped,
    /// Not known: a hole in the data.
    Unknown,
}

impl Activity {
    /// All activities, in drawing order.
    pub const ALL: [Self; 8] = [
        Self::Ran,
        Self::Call,
        Self::Preempted,
        Self::Woken,
        Self::Interrupt,
        Self::Stopped,
        Self::Blocked,
        Self::Unknown,
    ];

    /// Returns the key used in style classes and data.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Call => "call",
            Self::Preempted => "preempted",
            Self::Woken => "woken",
            Self::Interrupt => "interrupt",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the label for the head of a narrow column.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ran => "own code",
            Self::Call => "calls",
            Self::Preempted => "preempted",
            Self::Woken => "woken",
            Self::Interrupt => "interrupts",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::Unknown => "not known",
        }
    }

    /// Returns the label for a legend.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ran => "ran its own code",
            Self::Call => "system calls",
            Self::Preempted => "preempted",
            Self::Woken => "woken, waited for a CPU",
            Self::Interrupt => "interrupts",
            Self::Blocked => "slept or blocked",
            Self::Stopped => "stopped",
            Self::Unknown => "not known",
        }
    }
}

/// Distribution of a set of times.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Number of times.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// The 50th, 90th, 99th and 99.9th percentiles.
    pub quantiles: [u64; 4],
    /// The maximum.
    pub max: u64,
    /// The whole distribution; empty if not needed.
    pub curve: Curve,
}

/// Quantiles at steps of a tenth of a nine: entry `n` is the value that all but `10^(-n/10)` of the
/// times do not exceed.
pub type Curve = Vec<u64>;

/// A stage and its figures.
#[derive(Clone, Debug, Default)]
pub struct StageFigures {
    /// Tracepoint that begins the stage.
    pub from: String,
    /// Tracepoint that ends the stage.
    pub to: String,
    /// Duration of the stage.
    pub figures: Figures,
}

/// Objects created by one tracepoint.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Name of the kind: `TCP_REQ`.
    pub name: String,
    /// Tracepoint that creates the objects.
    pub first: String,
    /// First letter of the objects' names.
    pub prefix: char,
    /// Time from the first record to the last.
    pub whole: Figures,
    /// Number of objects unfinished at the end of the trace.
    pub unfinished: u64,
    /// Stages in the order in which they follow one another.
    pub stages: Vec<StageFigures>,
}

/// Columns of a table besides the figures.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Stage on which the slowest hundredth spent most time: its start, its end, and its share from
    /// 0 to 1.
    pub most: Option<(String, String, f64)>,
    /// Reason for which these requests are counted separately, if they are: they wait by design.
    pub excluded: Option<String>,
}

/// Kernel time, minimum and maximum.
pub type TimeBounds = (u64, u64);

/// One connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Name; `None` for requests whose connection is not known.
    pub name: Option<String>,
    /// Index of its kind in [`Report::groups`].
    pub group: usize,
    /// Latency of its requests.
    pub whole: Figures,
    /// Number of requests unfinished at the end of the trace.
    pub unfinished: u64,
    /// Summary of its slowest requests.
    pub summary: Summary,
    /// Kernel time of all its requests, and their total time.
    pub lost: Option<(TimeBounds, u64)>,
    /// Stages; empty if only the whole is needed.
    pub stages: Vec<StageFigures>,
}

/// Activities of threads over time.
#[derive(Clone, Debug, Default)]
pub struct LaneStrip {
    /// Width of a column.
    pub column: u64,
    /// One lane for each thread.
    pub lanes: Vec<Lane>,
    /// The longest spans in which threads lacked their CPU, in time order.
    pub taken: Vec<AbsenceSpan>,
}

/// Activities of one thread over time.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Name of the thread.
    pub name: String,
    /// For each column the time of each activity, in the order of [`Activity::ALL`].
    pub columns: Vec<[u64; 8]>,
}

/// A span in which a thread lacked its CPU.
#[derive(Clone, Debug, Default)]
pub struct AbsenceSpan {
    /// Index of the thread in [`LaneStrip::lanes`].
    pub lane: usize,
    /// Start time.
    pub at: u64,
    /// Duration.
    pub length: u64,
    /// Reason.
    pub activity: Activity,
    /// Description of the thread or interrupt that took the CPU.
    pub what: String,
}

/// Total time of one thread, by activity.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Name of the thread.
    pub name: String,
    /// Thread id.
    pub tid: u32,
    /// CPUs that the thread ran on, as far as known.
    pub cpus: Vec<u32>,
    /// Time of each activity, in the order of [`Activity::ALL`].
    pub sums: [u64; 8],
}

/// A thread or interrupt that took the CPU of a thread.
#[derive(Clone, Debug, Default)]
pub struct Intruder {
    /// Name of the intruder.
    pub name: String,
    /// Resulting activity of the waiting thread.
    pub activity: Activity,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Names of the threads that lost time.
    pub victims: Vec<String>,
    /// Number of intrusions.
    pub times: u64,
    /// Total time of the intrusions.
    pub total: u64,
    /// Longest single intrusion.
    pub longest: u64,
}

/// A time span without data.
#[derive(Clone, Debug, Default)]
pub struct Hole {
    /// Start time.
    pub at: u64,
    /// Duration.
    pub length: u64,
    /// Description of the reason.
    pub why: String,
}

/// One request, with the activities of its threads.
#[derive(Clone, Debug, Default)]
pub struct Waterfall {
    /// Name of the request.
    pub name: String,
    /// Kind of the request: `TCP_REQ`.
    pub kind: String,
    /// Connection, if known.
    pub whose: Option<String>,
    /// Thread and CPU on which it ran.
    pub ran_on: String,
    /// Start time.
    pub at: u64,
    /// Duration.
    pub length: u64,
    /// Kernel time in it.
    pub lost: Option<TimeBounds>,
    /// Descriptions of the culprits with bounds, largest first.
    pub culprits: Vec<String>,
    /// Stages of the request.
    pub stages: Vec<WaterStage>,
    /// Names of its threads, and their activities.
    pub threads: Vec<(String, Vec<Span>)>,
    /// Number of shorter intervals omitted.
    pub spans_left_out: u64,
}

/// A stage of a request.
#[derive(Clone, Debug, Default)]
pub struct WaterStage {
    /// Tracepoint that begins the stage.
    pub from: String,
    /// Tracepoint that ends the stage.
    pub to: String,
    /// Start time, from the start of the request.
    pub at: u64,
    /// Duration.
    pub length: u64,
    /// Kernel time in it.
    pub lost: TimeBounds,
    /// Description of the event that ends it.
    pub ends: &'static str,
}

/// One activity of a thread.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Start time, from the start of the request.
    pub at: u64,
    /// Duration.
    pub length: u64,
    /// Kind of activity.
    pub activity: Activity,
    /// Description.
    pub what: String,
}
