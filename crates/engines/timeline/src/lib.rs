//! Every request with what the kernel did to its thread, and the causes of slow requests.
//!
//! [`inputs::Inputs`] opens a capture or a trace; each pass hands all records and events to a
//! consumer: [`first`] finds usual lengths, [`second`] the losses of each slow request. [`text`]
//! and [`json`] print the report of both, [`perfetto`] writes a trace for its viewer, and [`judge`]
//! explains one request of a capture that has just been written.
#![forbid(unsafe_code)]

mod away;
pub mod causes;
pub mod first;
pub mod inputs;
pub mod json;
pub mod judge;
pub mod missing;
mod one;
mod open;
mod overview;
pub mod pass;
pub mod perfetto;
pub mod report;
mod requests;
pub mod second;
pub mod source;
mod stalls;
mod still_open;
pub mod text;
pub mod threads;
pub mod verdict;
pub mod wakers;
pub mod words;

pub use one::{KnownDelay, explain, slowest_of};
pub use overview::Overview;
pub use requests::{Options, explanations, intervals, verdict_sentences};
