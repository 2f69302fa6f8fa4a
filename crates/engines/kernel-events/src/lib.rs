//! Recorder of the kernel's events for the threads of processes and the CPUs for which they wait:
//! switches, wake-ups, interrupts and system calls, each with its time.
//!
//! Programs on typed tracepoints (`tp_btf`, since Linux 5.5) return at the first comparison if the
//! event belongs to other processes. Several processes, and those that they start meanwhile, are
//! looked up in a map instead. While one of their threads waits for a CPU, all
//! switches of that CPU are recorded, to show which thread ran instead. On the CPU of an
//! undisturbed poller nothing happens, and nothing is recorded but the timer's ticks.
//!
//! Events that do not fit into the ring are counted per CPU, with the time of the first one, and
//! reported as an event: no hole is silent.
//!
//! `/proc` shows the activity of threads without any event: see `standing`.
//!
//! | module | holds |
//! |---|---|
//! | `layout` | layout of the ring and of the maps |
//! | `programs` | the programs |
//! | `standing` | activity of threads without events |
//! | `messages` | events as the ring has them, and as the timeline has them |
//! | `recorder` | attaches the programs, and returns events in the order of time |
//! | `intervals` | activity of threads, interval by interval, while a recording runs |
#![forbid(unsafe_code)]

mod intervals;
mod layout;
mod messages;
mod programs;
mod recorder;
mod standing;
mod wakers;

pub use intervals::{IntervalLimits, Intervals, RecordedIntervals, ThreadIntervals};
pub use messages::RecordedEvent;
pub use recorder::{Recorder, Totals};
pub use sched_programs::{Facts, ProcessSet, SchedError};

/// Reads the facts of this kernel that the programs need.
///
/// # Errors
///
/// Returns an error if the kernel has no type information, or none of its tasks.
pub fn facts() -> Result<Facts, SchedError> {
    Facts::read(programs::tracepoints())
}
