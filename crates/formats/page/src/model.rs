//! What a report is made of. All times are in nanoseconds.

use crate::heat::HeatMap;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it is about: the name of a capture or a file.
    pub title: String,
    /// The program that made it, with its version.
    pub maker: String,
    /// What else is to be said of the whole, each with its name: when, where, which process.
    pub facts: Vec<(String, String)>,
    /// When charts begin, after the first record. Times in [`Report::heat`] and [`Report::lanes`] count from then on.
    pub offset: u64,
    /// From there to the end.
    pub span: u64,
    /// Whether there are events of the kernel: without them, parts are left out.
    pub has_kernel: bool,
    /// Sentences about what no chart of it shows: they come before the answer.
    pub unseen: Vec<String>,
    /// The answer, the most important first.
    pub verdicts: Vec<Verdict>,
    /// Sentences about the requests that are in no part of it.
    pub left_out: Vec<String>,
    /// Causes of the requests that the first verdict is about.
    pub spent: Spent,
    /// What is missing or not known.
    pub notes: Vec<String>,
    /// When requests ended, and how long they had taken.
    pub heat: HeatMap,
    /// What threads did over time.
    pub lanes: LaneStrip,
    /// What each thread did in all.
    pub budgets: Vec<Budget>,
    /// Threads that have no row in `budgets`.
    pub budgets_left_out: u64,
    /// Who ran instead, the one that took most first.
    pub intruders: Vec<Intruder>,
    /// Others, which took less.
    pub intruders_left_out: u64,
    /// The slowest requests, slowest first.
    pub waterfalls: Vec<Waterfall>,
    /// The figures of each kind of object.
    pub groups: Vec<Group>,
    /// The figures of each connection.
    pub connections: Vec<Connection>,
    /// Connections for which there was no room.
    pub connections_left_out: u64,
}

/// What is to be said of one group of requests.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// In one sentence.
    pub sentence: String,
    /// How much of what was slow that explains.
    pub explained: String,
}

/// Where the time of the slowest requests went.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// Group that they are of, as the verdict names it; empty if that goes without saying.
    pub of: String,
    /// How many requests these are.
    pub requests: u64,
    /// How long they took together.
    pub length: u64,
    /// What took it, the most first; of the last ones, all together.
    pub causes: Vec<Cause>,
}

/// What took a part of that time.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// Its name.
    pub name: String,
    /// What it is to the thread that serves the request; `None` if that is not known.
    pub activity: Option<Activity>,
    /// On which CPUs it took it.
    pub cpus: Vec<u32>,
    /// How much, at least and at most.
    pub took: Lost,
    /// The stage in which most of that was, by the names of its ends.
    pub stage: Option<(String, String)>,
}

/// What a thread does, as far as colours distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Its own code.
    #[default]
    Ran,
    /// A system call.
    Call,
    /// Another thread had its CPU.
    Preempted,
    /// It was woken, and did not have the CPU yet.
    Woken,
    /// An interrupt had its CPU.
    Interrupt,
    /// It waited for something.
    Blocked,
    /// It was stopped.
    Stopped,
    /// Nobody knows: a hole.
    Unknown,
}

impl Activity {
    /// All, in the order in which they are drawn.
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

    /// Its word in classes of the style and in data.
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

    /// What the head of a narrow column calls it.
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

    /// What a legend calls it.
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

/// How a set of times is spread.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How many there are.
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// What 50, 90, 99 and 99.9 % do not exceed.
    pub quantiles: [u64; 4],
    /// The largest.
    pub max: u64,
    /// The whole distribution; empty if only the figures are wanted.
    pub curve: Curve,
}

/// Quantiles at steps of a tenth of a nine: the value at `n` is what all but `10^(-n/10)` of the times do not exceed.
pub type Curve = Vec<u64>;

/// One stage and its figures.
#[derive(Clone, Debug, Default)]
pub struct StageFigures {
    /// The tracepoint that begins it.
    pub from: String,
    /// The tracepoint that ends it.
    pub to: String,
    /// How long it took.
    pub figures: Figures,
}

/// Objects that one tracepoint creates.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What they are called: `TCP_REQ`.
    pub name: String,
    /// The tracepoint.
    pub first: String,
    /// The letter that their names begin with.
    pub prefix: char,
    /// From the first record to the last.
    pub whole: Figures,
    /// Those that the trace ends in the middle of.
    pub unfinished: u64,
    /// In the order in which they follow one another.
    pub stages: Vec<StageFigures>,
}

/// What a table has beside the figures.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The stage on which the slowest hundredth spent most: where from, where to, and its part from 0 to 1.
    pub most: Option<(String, String, f64)>,
    /// Why these requests are not counted with the others, if so: they wait by design.
    pub excluded: Option<String>,
}

/// What the kernel took, at least and at most.
pub type Lost = (u64, u64);

/// One connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Its name; `None` stands for requests of which it is not known.
    pub name: Option<String>,
    /// The place of its kind in [`Report::groups`].
    pub group: usize,
    /// What its requests took.
    pub whole: Figures,
    /// Those that the trace ends in the middle of.
    pub unfinished: u64,
    /// What the slowest spent their time on.
    pub summary: Summary,
    /// What the kernel took of all its requests together, and how long these took together.
    pub lost: Option<(Lost, u64)>,
    /// Its stages; empty if only the whole is wanted.
    pub stages: Vec<StageFigures>,
}

/// What threads did over time.
#[derive(Clone, Debug, Default)]
pub struct LaneStrip {
    /// How long a column is.
    pub column: u64,
    /// One for each thread.
    pub lanes: Vec<Lane>,
    /// The longest times for which threads did not have their CPU, in the order of time.
    pub taken: Vec<Taken>,
}

/// One thread over time.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// For each column how long it did what, in the order of [`Activity::ALL`].
    pub columns: Vec<[u64; 8]>,
}

/// A time for which a thread did not have its CPU.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The place of its thread in [`LaneStrip::lanes`].
    pub lane: usize,
    /// From when on.
    pub at: u64,
    /// How long.
    pub length: u64,
    /// Why.
    pub activity: Activity,
    /// Who or what took it, in words.
    pub what: String,
}

/// What one thread did in all.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Its number.
    pub tid: u32,
    /// The CPUs that it had, as far as these are known.
    pub cpus: Vec<u32>,
    /// How long it did what, in the order of [`Activity::ALL`].
    pub sums: [u64; 8],
}

/// Who or what had a thread's CPU.
#[derive(Clone, Debug, Default)]
pub struct Intruder {
    /// Its name.
    pub name: String,
    /// What it is to the thread that waits.
    pub activity: Activity,
    /// On which CPU, if that is known.
    pub cpu: Option<u32>,
    /// Whose time it took.
    pub victims: Vec<String>,
    /// How often.
    pub times: u64,
    /// How long together.
    pub total: u64,
    /// The longest at once.
    pub longest: u64,
}

/// A time of which something is not known.
#[derive(Clone, Debug, Default)]
pub struct Hole {
    /// From when on.
    pub at: u64,
    /// How long.
    pub length: u64,
    /// Why, in words.
    pub why: String,
}

/// One request with what its threads did meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Waterfall {
    /// Its name.
    pub name: String,
    /// What it is: `TCP_REQ`.
    pub kind: String,
    /// Its connection.
    pub whose: Option<String>,
    /// Where it ran: thread and CPU.
    pub ran_on: String,
    /// When it began.
    pub at: u64,
    /// How long it took.
    pub length: u64,
    /// What the kernel took of it.
    pub lost: Option<Lost>,
    /// Who took it, with bounds, in words; the one that took most first.
    pub culprits: Vec<String>,
    /// Its stages.
    pub stages: Vec<WaterStage>,
    /// What its threads did, with their names.
    pub threads: Vec<(String, Vec<Span>)>,
    /// Shorter intervals that are left out.
    pub spans_left_out: u64,
}

/// A stage of a request.
#[derive(Clone, Debug, Default)]
pub struct WaterStage {
    /// The tracepoint that begins it.
    pub from: String,
    /// The tracepoint that ends it.
    pub to: String,
    /// From the begin of the request.
    pub at: u64,
    /// How long it took.
    pub length: u64,
    /// What the kernel took of it.
    pub lost: Lost,
    /// What ends it, in words.
    pub ends: &'static str,
}

/// What a thread did for some time.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// From the begin of the request.
    pub at: u64,
    /// How long.
    pub length: u64,
    /// What.
    pub activity: Activity,
    /// In words.
    pub what: String,
}
