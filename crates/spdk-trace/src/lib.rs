//! SPDK trace files of every era, and the JSON that `spdk_trace -j` makes of them: bytes in, records out.
//!
//! An SPDK application records into rings in shared memory, one an lcore, without locks (`/dev/shm/<app>_trace.*`).
//! [`RawTrace`] copies such a file, also while it is written to, checks each slot, and gives the records of all lcores
//! in the order of time; [`JsonTrace`] gives the same records of a JSON document. Nothing here opens a file or knows a
//! clock, no input makes it panic, and what can't be read is counted in [`Problems`].
#![forbid(unsafe_code)]

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
mod tail;
mod text;
mod tpoint;
mod trace;
mod units;

pub use era::Era;
pub use error::Error;
pub use follow::{Follower, Loss};
pub use header::TpointTable;
pub use json::JsonTrace;
pub use owners::{Owner, Owners};
pub use problems::{Finding, Problem, Problems};
pub use raw::{RawTrace, RingSummary};
pub use record::{ArgIter, ArgValue, Args, NoObjectName, Object, ObjectName, OwnerLabel, Poller, Record, Related};
pub use source::ReadAt;
pub use tail::{Copied, Look, Tail};
pub use tpoint::{ArgKind, ArgSpec, Relation, Tpoint};
pub use trace::Trace;
pub use units::{FileOffset, Lcore, Nanos, TickRate, Ticks};
