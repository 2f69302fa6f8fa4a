//! Writes traces that Perfetto opens: tracks with slices, flows and counters, and what the kernel did in Perfetto's own views.
//!
//! A trace is a sequence of packets of Protocol Buffers. They are written as they come, so that memory does not grow with the
//! trace; names are sent once and then used by number. The crate knows neither SPDK's traces nor the kernel's events: who does
//! makes tracks and [`proto::Ftrace`] of them. Perfetto sorts by time itself: packets may come in any order, but the events of
//! one track at one time stay in the order in which they are written.
#![forbid(unsafe_code)]

mod lanes;
pub mod proto;
mod writer;

pub use lanes::Lanes;
pub use writer::{Key, Name, Slice, Text, Track, TrackKind, TrackSpec, Value, Writer};
