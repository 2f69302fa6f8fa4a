//! A time budget for every thread of a process: where each nanosecond of a window went, and whether the kernel is to blame.
//!
//! # How time is accounted for
//!
//! The programs of [`programs`] keep one value for each thread, found by one lookup an event: until when its time
//! is accounted for (the *mark*), and where its time goes at present (the *bucket*). Each event gives the time since the
//! mark, cut to the window, to the bucket. Thus a thread's time is a chain without gaps, and its budget adds up to the
//! window by construction, not by luck. When the window is over, we give the time from the last mark to the window's end
//! to the bucket that was current: this is how a thread without any event has a whole budget.
//!
//! The *window* is two numbers in a map: its start and its stop, in the kernel's clock. A timed window is announced with
//! both of them in advance; a trigger writes them in the kernel, at the trigger. So nothing depends on when we get to run.
//!
//! Sums only grow and are never reset: a sample is the difference of two snapshots, which takes no lock and loses nothing.
//! Only longest and shortest times can't be subtracted; they carry the window's number in their upper bits, so that the
//! first time of a new window is always beyond the last one's.
//!
//! # What a thread was doing when we came
//!
//! A thread can't be observed exactly from outside: it goes on meanwhile. So threads are entered in the map as *unsure*
//! when the programs are attached already, and their first event shows what they had been doing: who is switched off a CPU
//! was on one, who is switched onto one waited for it, who is woken was blocked; the first end of a call says which
//! call it was, and the first begin of one says that there was none. Where there is no event in the whole window, the
//! thread did not change, and `/proc` may be asked at any moment in it ([`ProcFallback`]).
//!
//! # What the columns mean
//!
//! The sections that users of Open vSwitch's script know keep their meaning: only calls, runs, waits, stops and interrupts
//! that lie wholly in the window. The budget has everything, cut at the window's edges.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | what the maps and the ring hold, for the programs that write and for us who read |
//! | [`programs`] | the programs |
//! | [`live`] | what touches the kernel: attaching them, windows, the reading of maps |
//! | `snapshot` | a thread's value, as it was read |
//! | `sample` | a window's threads, from two snapshots |
//! | `budget` | where a thread's time went |
//! | `running` | the same without end, from one reading to the next |
//! | `names` | what system calls and soft interrupts are called |
//! | `preemptors` | who ran instead |
//! | `by_thread` | preemptors and interrupts, indexed by thread |
//! | `processes` | sums over the threads of each process |
//! | `percentile` | percentiles of counted times |
//! | `events` | single system calls with their stacks |
//! | `cost` | what these cost |
//! | `stacks` | those stacks, each once |
//! | `report` | the text |
//! | `columns` | its columns, for terminals of each width |
//! | `json` | the same for programs |
//! | `verdict` | a line a thread, worst first |
//! | `selection` | which threads are shown, and in which order |
//! | `upcalls` | packets that the kernel's Open vSwitch sends to user space |
//! | [`trigger`] | what starts and stops a window |
//!
//! All but [`live`] is pure: bytes and numbers in, text out. The command line, what is printed where, names of addresses and
//! the reading of the process's files are the caller's business.
#![forbid(unsafe_code)]

mod budget;
mod by_thread;
mod columns;
mod cost;
mod error;
mod events;
mod json;
pub mod layout;
pub mod live;
mod names;
mod number;
mod percentile;
mod preemptors;
mod processes;
pub mod programs;
mod report;
mod running;
mod sample;
mod selection;
mod snapshot;
mod stacks;
pub mod trigger;
mod upcalls;
mod verdict;

pub use budget::{Budget, CallTime};
pub use cost::EventCost;
pub use error::DelayError;
pub use events::{EventList, Events, Limits, split_at_list};
pub use json::json;
pub use names::{call_name, call_number, poll_numbers, soft_name};
pub use number::grouped;
pub use preemptors::{Preemptor, Relation};
pub use processes::{ProcessSum, process_sums};
pub use report::{Header, report};
pub use running::{Advance, Part, Place, Running};
pub use sample::{CallStat, Interrupt, ProcFallback, Sample, Stat, ThreadPair, ThreadSample, Window, WindowSnapshot};
pub use selection::View;
pub use snapshot::Snapshot;
pub use stacks::{CopiedStack, Stack, StackEnd, Symbols, Unwind};
pub use upcalls::Upcalls;
pub use verdict::verdict;
