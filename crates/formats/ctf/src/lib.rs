//! Traces of DPDK programs. A program that runs with EAL's option `--trace` leaves a folder in the
//! Common Trace Format 1.8 (diamon.org/ctf): `metadata`, a text that describes the rest, and a
//! stream of events for each thread, `channel0_N`.
//!
//! ```text
//! metadata    -> Metadata: clock, layouts of the streams' heads and of each kind of event
//! channel0_N  -> Stream -+
//! channel0_M  -> Stream -+-> MergedStreams: events of all threads in the order of time -> text, JSON
//! ```
//!
//! This covers the part of the format that DPDK has written since 20.05 (its
//! `eal_common_trace_ctf.c`): one packet per file, and fields with fixed lengths. Anything beyond
//! is rejected by name and line, and not guessed. Only one event of each stream is in memory. This
//! crate opens no file, and its input is untrusted: any input leads to a result or an error.
#![forbid(unsafe_code)]

mod event;
mod input;
mod layout;
mod merged;
mod metadata;
mod parser;
mod token;
mod write;

pub use event::{Event, Head, Problem, Stream, StreamError, Value};
pub use layout::{Field, Layout};
pub use merged::MergedStreams;
pub use metadata::{Clock, EventKind, Metadata, MetadataError};
pub use write::{Form, Writer, shown};
