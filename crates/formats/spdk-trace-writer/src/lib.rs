//! Writes SPDK trace files of every era, into memory or into a file that is read meanwhile.
//!
//! The writer knows nothing of the reader crate: it follows SPDK's recorder (`lib/trace/trace.c`,
//! read at the tags named in [`era`]), so that a test reads back an independently written layout.
//! The caller states what the traced application did, and gets the file that SPDK would have left
//! in `/dev/shm`:
//!
//! ```
//! use spdk_trace_writer::{Era, Record, TraceBuilder, Tpoint};
//!
//! let mut t = TraceBuilder::new(Era::F).tsc_rate(2_600_000_000).slots(256);
//! t.owner_type(0x30, b't').object_type(0x80, b'r');
//! t.tpoint(Tpoint::new(320, "TCP_REQ_NEW").owner_type(0x30).object_type(0x80).new_object().int("qd", 4));
//! t.owner(256, 0x30, 5, "127.0.0.1:57992 nqn.2016-06.io.spdk:cnode2");
//! t.lcore(0).thread_name("reactor_0");
//! t.record(0, Record::new(320, 1000).owner(256).object(0x1000).int(1));
//! let bytes = t.build();
//! assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), bytes.len() as u64);
//! ```
//!
//! [`TraceFile`] is such a file with its layout, [`LiveTrace`] records into a file while it is
//! read, and [`nvmf`] has the tracepoints of an NVMe-oF target.
#![forbid(unsafe_code)]

pub mod era;
pub mod nvmf;

mod builder;
mod image;
mod layout;
mod live;
mod record;
mod rng;
mod tpoint;
mod trace_file;

pub use builder::{LcoreBuilder, Step, TraceBuilder};
pub use era::{Era, EraSpec, HeaderFields, HistoryFields, SLOT_SIZE};
pub use image::{Image, SlotRange};
pub use layout::{Layout, Section};
pub use live::LiveTrace;
pub use record::{Arg, Record};
pub use rng::Rng;
pub use tpoint::{ArgKind, ArgSpec, Relation, Tpoint};
pub use trace_file::TraceFile;
