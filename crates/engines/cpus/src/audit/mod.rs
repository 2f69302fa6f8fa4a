//! Who takes time of a CPU, and who waits for it: an audit of the CPUs that polling threads want for themselves.
//!
//! Programs on typed tracepoints (`tp_btf`, since Linux 5.5) keep, for each audited CPU, what it is at: a thread, and above that
//! what interrupts it. Each event gives the time since the last one to what the CPU was at: so a CPU's budget adds up to its
//! window by construction. All sums are made in the kernel, and read once at the end.
//!
//! Nothing of ours needs to run on an audited CPU. Its window begins and ends in an interrupt, which a CPU takes whatever thread
//! occupies it; the ring is never woken from there; and what waits for that CPU is known from the events of those who made it wait.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | what lies in the maps and in the ring |
//! | `programs` | the programs |
//! | `facts` | what the programs must know of this kernel |
//! | `live` | attaches them, begins and ends windows, reads the maps |
//! | `sums` | what was read, before anything has a name |
//! | `model` | whose time it was, who took it and who waited, by their names |
//! | `pollers` | which CPUs have a poller |
//! | `names`, `few_names` | names of this machine: all of the kernel's, and few for windows without end |
//! | `run` | one audit from begin to end; `text` and `json` are its report |
//! | `windows` | audits as windows that follow one another |

mod facts;
mod few_names;
mod json;
pub mod layout;
mod live;
mod model;
mod names;
mod pollers;
mod programs;
mod run;
mod sums;
mod text;
mod windows;

pub use facts::Facts;
pub use live::{Audit, Options, StuckThread};
pub use model::{CpuReport, Intruder, Names, Share, ThreadFacts, Victim, name_of, report};
pub use pollers::Pollers;
pub use run::{Found, Plan};
pub use sched_programs::SchedError;
pub use sums::{CpuSums, Sums};
pub use windows::{USUAL, Windows, is_of};
