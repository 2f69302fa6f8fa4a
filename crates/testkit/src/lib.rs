//! Writes SPDK trace files of every era, for tests, benchmarks and the demo target.
//!
//! The writer knows nothing of the reader crate: it follows SPDK's recorder (`lib/trace/trace.c`, read at the tags
//! named in [`era`]) so that what a test reads back was laid out by somebody else. A test says what the traced
//! application did, and gets the file that SPDK would have left in `/dev/shm`:
//!
//! ```
//! use testkit::{Era, Record, TraceBuilder, Tpoint};
//!
//! let mut t = TraceBuilder::new(Era::F).tsc_rate(2_600_000_000).slots(256);
//! t.owner_type(0x30, b't').object_type(0x80, b'r');
//! t.tpoint(Tpoint::new(320, "TCP_REQ_NEW").owner_type(0x30).object_type(0x80).new_object().int("qd", 4));
//! t.owner(256, 0x30, 5, "127.0.0.1:57992 nqn.2016-06.io.spdk:cnode2");
//! t.lcore(0).thread_name("reactor_0");
//! t.record(0, Record::new(320, 1000).owner(256).object(0x1000).int(1));
//! let bytes = t.build();
//! assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), bytes.len() as u64);
//! assert_eq!(t.surviving().len(), 1);
//! ```
//!
//! [`TraceFile`] lets a test damage the result, [`LiveTrace`] records into a file while it is read, the
//! feature `strategy` has proptest draw arbitrary traces, and [`Workload`] generates a target under load (also as the program
//! `gen-trace`). [`TraceBuilder::surviving`] and [`Workload::truth`] tell what a reader must find.
#![forbid(unsafe_code)]

pub mod era;

mod builder;
mod image;
pub mod kernel;
mod layout;
mod live;
mod record;
pub mod script;
#[cfg(feature = "strategy")]
mod strategy;
mod survivor;
mod tpoint;
mod trace_file;
mod workload;

pub use builder::{LcoreBuilder, TraceBuilder};
pub use era::{Era, EraSpec, HeaderFields, HistoryFields};
pub use layout::{Layout, Section};
pub use live::LiveTrace;
pub use record::{Arg, Record};
#[cfg(feature = "strategy")]
pub use strategy::{any_trace, any_trace_of};
pub use survivor::Survivor;
pub use tpoint::{ArgKind, ArgSpec, Relation, Tpoint};
pub use trace_file::TraceFile;
pub use workload::{
    BDEVS, Connection, FIRST_OWNER, Generated, InFlight, Kind, OWNER_BDEV, OWNER_TCP, Rng, Stage, Stages, Transport,
    Workload, host_nqn,
};
