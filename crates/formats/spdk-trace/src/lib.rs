//! Reader for SPDK trace files of every era, and for the JSON that `spdk_trace -j` writes.
//!
//! An SPDK application writes records into rings in shared memory, one ring for each lcore, without
//! locks (`/dev/shm/<app>_trace.*`). [`RawTrace`] copies such a file, also while the application
//! writes to it, checks each slot, and returns the records of all lcores in time order.
//! [`JsonTrace`] reads the same records from a JSON document, [`CapturedTrace`] from a capture of a
//! live file. This crate opens no file and reads no clock. No input makes it panic; unreadable
//! parts are counted in [`Problems`].
#![forbid(unsafe_code)]

mod captured;
mod era;
mod error;
mod fixed;
mod follow;
mod header;
mod held;
mod json;
mod numbering;
mod order;
mod owners;
mod problems;
mod raw;
mod record;
mod ring;
mod sections;
mod slot;
mod source;
mod stream;
mod tables;
mod tail;
mod text;
mod tpoint;
mod trace;
mod units;

pub use captured::{
    CapturedGap, CapturedPoll, CapturedRing, CapturedSummary, CapturedTrace, Polls, StreamEnd,
};
pub use era::Era;
pub use error::Error;
pub use follow::{Follower, Loss};
pub use header::TpointTable;
pub use json::JsonTrace;
pub use owners::{Owner, Owners};
pub use problems::{Finding, Problem, Problems};
pub use raw::{RawTrace, RingSummary};
pub use record::{
    ArgIter, ArgValue, Args, NoObjectName, Object, ObjectName, OwnerLabel, Poller, Record,
    RelatedObject,
};
pub use source::ReadAt;
pub use stream::CopiedRun;
pub use tables::Tables;
pub use tail::{CopiedSlots, Poll, Tail, Total};
pub use tpoint::{ArgKind, ArgSpec, Relation, Tpoint, TpointSet};
pub use trace::Trace;
pub use units::{FileOffset, Lcore, Nanos, TickRate, Ticks};
