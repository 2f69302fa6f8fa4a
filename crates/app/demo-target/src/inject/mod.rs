//! Delays with a known cause, and the truth about them.
//!
//! Each reactor delays itself, or is delayed by another thread, when one of its requests has
//! reached a stage. Two of three times the reactor's own work ends that stage; the third time the
//! device does. While one reactor is being delayed, no other delay starts.

mod cause;
mod injector;
mod interrupts;
mod notes;
mod packets;
mod preemptor;
mod schedule;
mod stages;
mod stopper;
mod tools;
mod truth;
mod watch;

pub use cause::{Cause, EndedBy};
pub(crate) use injector::{Injector, InjectorState};
pub(crate) use notes::{Notes, merged};
pub(crate) use schedule::Thread;
pub(crate) use stages::StageTable;
pub use truth::{Culprit, DelayedRequest, GapTruth, InjectionTruth, Moment};
