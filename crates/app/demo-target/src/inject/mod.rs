//! Delays with a known cause, and the truth about them.
//!
//! Each reactor delays itself, or has itself delayed, at the moment at which one of its requests has reached a stage: two of
//! three times one that ends by the reactor's own work, the third time one that ends when the device is done. While one
//! reactor is being delayed, no other one begins.

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
pub(crate) use injector::{Common, Injector};
pub(crate) use notes::{Notes, merged};
pub(crate) use schedule::Thread;
pub(crate) use stages::StageTable;
pub use truth::{Culprit, DelayedRequest, GapTruth, InjectionTruth, Moment};
