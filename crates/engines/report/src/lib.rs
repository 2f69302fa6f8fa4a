//! The data of a report's page: the verdicts and slowest requests of `timeline`, the figures of
//! `latency`, and the data of charts; and the comparison of two captures.
#![forbid(unsafe_code)]

mod build;
mod collect;
pub mod compare;
mod facts;
mod gaps;
mod spent;
mod threads;
mod waterfall;

pub use build::build;
