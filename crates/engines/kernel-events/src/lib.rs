//! Records what the kernel does with the threads of a process, and with the CPUs for which they wait: switches, wake-ups,
//! interrupts and system calls, each as an event with its time.
//!
//! Programs on typed tracepoints (`tp_btf`, since Linux 5.5) leave at the first comparison if the event is of others. Where one
//! of the process's threads waits for a CPU, all switches of that CPU are recorded, so that it is known who ran instead. On the
//! CPU of a poller that nobody disturbs nothing happens, and nothing is recorded but the timer's ticks.
//!
//! What does not fit into the ring is counted for each CPU, with the time since when, and comes as an event of its own: a hole
//! is never quiet.
//!
//! What a thread without any event does, `/proc` shows: see `standing`.
//!
//! | module | holds |
//! |---|---|
//! | `layout` | what lies in the ring and in the maps |
//! | `programs` | the programs |
//! | `standing` | what threads do that have no event |
//! | `recorder` | attaches them, and hands out events in the order of time |
//! | `intervals` | what threads did, interval by interval, while a recording goes on |
#![forbid(unsafe_code)]

mod intervals;
mod layout;
mod programs;
mod recorder;
mod standing;

pub use intervals::{Found, Intervals, Keep, ThreadIntervals};
pub use recorder::{Recorded, Recorder, Totals};
pub use sched_programs::{Facts, SchedError};

/// Reads the facts of this kernel that the programs need.
///
/// # Errors
///
/// The kernel has no types, or not those of its tasks.
pub fn facts() -> Result<Facts, SchedError> {
    Facts::read(programs::tracepoints())
}
