//! Parts of programs on the scheduler's tracepoints: the facts of this kernel that they need, which
//! tasks they are for, and what a switch or a wake-up shows. Each engine that has such programs
//! makes them of these parts, and keeps the sums or events that are its own.
//!
//! All programs are typed tracepoints (`tp_btf`), which read the tasks that they are given
//! without a helper. Only [`facts`] reads files of this machine.
//!
//! | module | holds |
//! |---|---|
//! | [`facts`] | offsets in the kernel's structures, and ids of tracepoints |
//! | [`hooks`] | tables of tracepoints with their programs |
//! | [`maps`] | what programs left in maps |
//! | [`members`] | processes that a command names, and those that they start |
//! | [`processes`] | the processes whose tasks programs are for |
//! | [`tasks`] | arguments of tracepoints, and the state of tasks |
#![forbid(unsafe_code)]

mod error;
pub mod facts;
pub mod hooks;
pub mod maps;
pub mod members;
pub mod processes;
pub mod tasks;

pub use error::SchedError;
pub use facts::{Comm, Facts, KernelTypes, TaskFacts, Tracepoints, member};
pub use hooks::Hook;
pub use maps::NamedMap;
pub use members::{EndedProcesses, ProcessSet};
pub use processes::{OwnTaskCheck, ProcessStack, Processes};
pub use tasks::{Reasons, Switch};
