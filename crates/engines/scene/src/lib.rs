//! One scene from several sources: observations of a trace, the kernel and probes, on one clock.
//!
//! Traces of SPDK and DPDK count ticks of the processor's counter, the kernel counts nanoseconds.
//! [`Clock`] puts both on one line, and states how far it may be off; a [`ClockCheck`] measures
//! that. [`Activities`] turns the kernel's events into the activity of each thread at each time,
//! and [`blame`] finds how much of a request's stage that cost. A [`Scene`] joins records and
//! events while they come, and hands finished requests, intervals and events to a [`Consumer`]. In
//! an earlier pass a [`Survey`] learns usual lengths, and [`Foresight`] notes what later events
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
pub use away::{Away, AwayTimes, AwayTracker, MIN_AWAY, ThreadAway};
pub use blame::{Ends, Reckoning, Share, Stage, blame, reckon, unknown};
pub use check::{Checked, ClockCheck};
pub use clock::{Anchor, BootNanos, Clock, ClockError, parts_per_million};
pub use disorder::Disorder;
pub use foresight::{Foreseen, Foresight};
pub use kernel::{Cpu, EventKind, Inside, Interrupt, KernelEvent, Leaves, Tid};
pub use request::{Consumer, Mark, Request, StageOfRequest};
pub use scene::{LeftOut, Scene, Setting};
pub use silences::{Silence, Silences};
pub use usual::{Experience, StageKind, Survey, Usual};
