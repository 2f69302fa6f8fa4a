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
#![forbid(unsafe_code)]

mod error;
mod facts;
pub mod layout;
mod live;
mod model;
mod programs;
mod sums;

pub use error::AuditError;
pub use facts::Facts;
pub use live::{Audit, Options, StuckThread};
pub use model::{CpuReport, Intruder, Names, Share, ThreadFacts, Victim, name_of, report};
pub use sums::{CpuSums, Sums};
