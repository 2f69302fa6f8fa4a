//! The files of a capture: the activity of a trace's rings, the kernel and a process over some
//! time.
//!
//! A capture is a folder. Its `trace.rings` has the rings of a live trace, copied continuously,
//! `kernel.events` the kernel's events, and `meta.json` the description of machine and process.
//! `docs/capture.md` describes each byte. Both streams are sequences of chunks and are only ever
//! appended to, so a capture that was cut short is readable up to the cut.
//!
//! | module | holds |
//! |---|---|
//! | `chunk` | the framing that both streams share, written and read |
//! | `rings` | the trace's stream, written |
//! | `around` | the parts of a live trace's file around its rings |
//! | `past` | the latest part of a trace, in bounded memory, to be written as a stream on demand |
//! | `polls` | the trace's stream, read |
//! | `events` | the kernel's stream, written and read |
//! | `meta` | `meta.json` |
//! | `reader` | a whole capture, read |
//!
//! The crate opens no file and reads no clock: bytes come through [`spdk_trace::ReadAt`] and go to
//! a [`std::io::Write`]. No input makes it panic, or use more memory than a small multiple of its
//! largest single read.
#![forbid(unsafe_code)]

mod around;
mod chunk;
mod error;
mod events;
mod layout;
mod meta;
mod meta_lists;
mod past;
mod polls;
mod reader;
mod rings;
mod words;

pub use around::OwnerSnapshot;
pub use chunk::{CHUNK_HEAD, MAX_PAYLOAD, StreamWriter};
pub use error::CaptureError;
pub use events::{EVENT_BYTES, Events, EventsWriter, KernelEvents, NamedThread};
pub use meta::{
    CaptureSummary, CapturedParts, ClockOff, FORMAT, FastestHits, JoinError, LcoreThread, MAX_META,
    MAX_PARTS, Machine, Meta, Process, SOCKETS, SocketSummary, Thread, Timestamp, expected_records,
};
pub use past::{RingHistory, RingSlice};
pub use reader::{Names, Reader, Source};
pub use rings::{Rings, RingsWriter};
pub use words::{clock, join};
