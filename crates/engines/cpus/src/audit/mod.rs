//! Audit of the CPUs that polling threads want for themselves: who takes their time, and who waits
//! for them.
//!
//! Programs on typed tracepoints (`tp_btf`, since Linux 5.5) track what each audited CPU is doing:
//! a thread, and above that what interrupts it. Each event adds the time since the last one to what
//! the CPU was doing, so a CPU's budget adds up to its window by construction. All sums are made in
//! the kernel, and read once at the end.
//!
//! Nothing of ours needs to run on an audited CPU. Its window begins and ends in an interrupt,
//! which a CPU takes whichever thread occupies it. The ring is never woken from there. Waits for
//! that CPU are known from the events of those who caused them.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | layout of the maps and of the ring |
//! | `programs` | the programs |
//! | `facts` | facts of this kernel that the programs need |
//! | `live` | attaches them, begins and ends windows, reads the maps |
//! | `sums` | sums read from the maps, without names |
//! | `model` | intruders and victims, with their names |
//! | `report` | the report on each CPU: owners, intruders and victims |
//! | `pollers` | CPUs that have a poller |
//! | `names`, `few_names` | names of this machine: all, and few for endless windows |
//! | `run` | one audit from start to end; `summary`, `text` and `json` format its report |
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
mod report;
mod run;
mod summary;
mod sums;
mod text;
mod windows;

pub use facts::Facts;
pub use live::{Audit, Options, StuckThread};
pub use model::{CpuReport, Intruder, Names, Share, ThreadFacts, Victim, labelled, name_of};
pub use pollers::Pollers;
pub use report::report;
pub use run::{AuditResult, Plan, RunningAudit};
pub use sched_programs::SchedError;
pub use sums::{CpuSums, Sums};
pub use windows::{MIN_LISTED_WAIT_NANOS, Windows, is_of};
