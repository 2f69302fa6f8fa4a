//! Writes traces for Perfetto: tracks with slices, flows and counters, and kernel events in
//! Perfetto's own views.
//!
//! A trace is a sequence of Protocol Buffers packets. They are written as they arrive, so that
//! memory does not grow with the trace; names are sent once and then referred to by number. The
//! crate knows neither SPDK's traces nor the kernel's events: its callers turn these into tracks
//! and [`proto::Ftrace`]. Perfetto sorts by time itself. Packets may come in any order, but events
//! of one track with the same time keep the order in which they are written.
#![forbid(unsafe_code)]

mod lanes;
pub mod proto;
mod writer;

pub use lanes::Lanes;
pub use writer::{Key, Name, Slice, Text, Track, TrackKind, TrackSpec, Value, Writer};
