//! Time budget for every thread of a process: where each nanosecond of a window went, and whether
//! the kernel is to blame.
//!
//! # How time is accounted for
//!
//! The programs of [`programs`] keep one value for each thread, found by one lookup an event: the
//! time until which the thread is accounted for (the *mark*), and the current destination of its
//! time (the *bucket*). Each event adds the time since the mark, cut to the window, to the bucket.
//! Thus a thread's time is a chain without gaps, and its budget adds up to the window by
//! construction, not by luck. When the window is over, we add the time from the last mark to the
//! window's end to the bucket that was current: so even a thread without any event has a whole
//! budget.
//!
//! The *window* is two numbers in a map: its start and its stop, in the kernel's clock. A timed
//! window is announced with both of them in advance; a trigger writes them in the kernel, at the
//! trigger. So nothing depends on when dptrace gets to run.
//!
//! Sums only grow and are never reset: a sample is the difference of two snapshots, which takes no
//! lock and loses nothing. Only longest and shortest times can't be subtracted; they carry the
//! window's number in their upper bits, so that the first time of a new window is always greater
//! than the last one's.
//!
//! # The state of a thread before its first event
//!
//! A thread can't be observed exactly from outside: it goes on meanwhile. So threads are entered in
//! the map as *unsure* when the programs are already attached, and their first event shows their
//! state before it. A thread that is switched off a CPU was on one, a thread that is switched onto
//! one waited for it, and a thread that is woken was blocked. The first end of a call shows which
//! call it was, and the first start of one shows that there was none. If there is no event in the
//! whole window, the thread did not change, and `/proc` may be read at any moment in it
//! ([`ProcFallback`]).
//!
//! # What the columns mean
//!
//! The sections that users of Open vSwitch's script know keep their meaning: only calls, runs,
//! waits, stops and interrupts that lie wholly in the window. The budget has everything, cut at the
//! window's edges.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | contents of the maps and the ring, for programs and readers |
//! | [`programs`] | the programs |
//! | [`live`] | access to the kernel: attaching programs, opening windows, reading maps |
//! | `snapshot` | a thread's value, as read |
//! | `sample` | a window's threads, from two snapshots |
//! | `budget` | division of a thread's time |
//! | `running` | budgets without end, from one reading to the next |
//! | `names` | names of system calls and soft interrupts |
//! | `preemptors` | tasks that ran instead |
//! | `by_thread` | preemptors and interrupts, indexed by thread |
//! | `processes` | sums over the threads of each process |
//! | `percentile` | percentiles of counted times |
//! | `events` | single system calls with their stacks |
//! | `cost` | cost of these events |
//! | `stacks` | their stacks, each once |
//! | `report` | the text |
//! | `columns` | its columns, for terminals of each width |
//! | `json` | samples as JSON |
//! | `verdict` | a line for each thread, worst first |
//! | `selection` | choice and order of the threads shown |
//! | `upcalls` | packets that the kernel's Open vSwitch sends to user space |
//! | [`trigger`] | triggers that start and stop a window |
//! | [`lines`] | lines of the text as wide as the terminal |
//! | `subject` | processes whose threads are accounted for |
//! | `places` | places of triggers in the processes' files |
//! | `walkers` | walkers of copied stacks |
//! | `function_names` | names of the addresses of stacks |
//! | `around` | circumstances of a window: limits of control groups, the hypervisor |
//! | `children` | CPU time of unmeasured children |
//! | `busiest` | the busiest processes of the machine |
//! | `stamp` | times of day |
//! | `sampling` | successive samples |
//!
//! [`live`] and the modules below [`lines`] in the table read the machine; all others are pure:
//! bytes and numbers in, text out. The caller handles the command line and the output.
#![forbid(unsafe_code)]

mod around;
mod budget;
mod busiest;
mod by_thread;
mod children;
mod columns;
mod cost;
mod error;
mod events;
mod function_names;
mod interrupt_times;
mod json;
pub mod layout;
pub mod lines;
pub mod live;
mod names;
mod next_step;
mod percentile;
mod places;
mod preemptors;
mod processes;
pub mod programs;
mod report;
mod running;
mod sample;
mod sampling;
mod selection;
mod snapshot;
mod stacks;
mod stamp;
mod subject;
pub mod trigger;
mod upcalls;
mod verdict;
mod walkers;

pub use around::{WindowBaseline, WindowContext};
pub use budget::{Budget, CallTime};
pub use busiest::busiest_table;
pub use children::{Children, ChildrenUsage};
pub use cost::EventCost;
pub use error::DelayError;
pub use events::{EventList, Events, Limits, split_at_list};
pub use function_names::FunctionNames;
pub use json::json;
pub use names::{call_name, call_number, poll_numbers, soft_name};
pub use next_step::next_step;
pub use places::trigger_places;
pub use preemptors::{Preemptor, Relation};
pub use processes::{ProcessSum, process_sums, process_table};
pub use report::{Header, report};
pub use running::{Advance, Part, ThreadAccounts, TimeState};
pub use sample::{
    CallStat, Interrupt, ProcFallback, Sample, Stat, ThreadPair, ThreadSample, Window,
    WindowSnapshot,
};
pub use sampling::{SampleSink, Sampler, SamplingOptions, WindowSample};
pub use selection::View;
pub use snapshot::Snapshot;
pub use stacks::{CopiedStack, Stack, StackEnd, Symbols, Unwind};
pub use stamp::{stamp, started};
pub use subject::{Subject, check_namespace};
pub use upcalls::Upcalls;
pub use verdict::verdict;
pub use walkers::StackWalkers;
