//! Metrics of a program that runs for months, for a monitoring system: times counted in histograms,
//! sets of series that stay small, and the text in which they are exposed.
//!
//! | module | holds |
//! |---|---|
//! | [`bounds`] | the bounds of all histograms: written here and nowhere else |
//! | [`Histogram`] | counts of times between these bounds, mergeable |
//! | [`RecentTimes`] | the same for the last minute |
//! | [`CoarseHistogram`] | the few buckets that go to Prometheus |
//! | [`Places`] | the choice of series to list, if there are too many |
//! | [`text`] | OpenMetrics and Prometheus's older text format |
//!
//! It opens no socket, reads no clock, and knows no SPDK.
#![forbid(unsafe_code)]

pub mod bounds;
mod coarse;
mod histogram;
mod places;
mod recent;
pub mod text;

pub use coarse::{CoarseHistogram, LE};
pub use histogram::Histogram;
pub use places::{Changes, Places};
pub use recent::{RecentTimes, TURNS};
