//! One scene from several sources: observations of a trace, the kernel and probes, on one clock.
//!
//! Traces of SPDK and DPDK count ticks of the processor's counter, the kernel counts nanoseconds.
//! [`Clock`] puts both on one line, and states how far it may be off; a [`ClockCheck`] measures
//! that. [`Activities`] turns the kernel's events into the activity of each thread at each time,
//! and [`blame`] finds how much of a request's stage that cost. A [`Scene`] joins records and
//! events while they come, and hands finished requests, intervals and events to a [`Consumer`]. In
//! an earlier pass a [`Survey`] learns usual lengths, and [`Lookahead`] notes what later events
//! show of earlier times. The crate opens no file and reads no clock: pairs of readings are data.
#![forbid(unsafe_code)]

mod activity;
mod away;
mod blame;
mod check;
mod clock;
mod disorder;
mod foresight;
mod kernel;
mod request;
mod scene;
mod silences;
mod usual;

pub use activity::{Activities, Activity, ActivitySum, Interval};
pub use away::{Absence, AbsenceTimes, AbsenceTracker, MIN_AWAY, ThreadAbsences};
pub use blame::{Share, Stage, StageEnd, StageLosses, blame, reckon, unknown};
pub use check::{ClockCheck, ClockErrors};
pub use clock::{Anchor, BootNanos, Clock, ClockError, parts_per_million};
pub use disorder::Disorder;
pub use foresight::{Lookahead, LookaheadEvents};
pub use kernel::{Cpu, EventKind, Interrupt, KernelContext, KernelEvent, LeaveReason, Tid, Waker};
pub use request::{Consumer, Mark, Request, StageOfRequest};
pub use scene::{OmittedCounts, Scene, Setting};
pub use silences::{Silence, Silences};
pub use usual::{Experience, StageKind, Survey, UsualTimes};
