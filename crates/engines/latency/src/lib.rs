//! Times of requests and their stages, by kind and group; the slowest requests, and what they spent
//! their time on.
//!
//! A [`stages::Tracker`] takes records and returns [`stages::Latencies`]; [`tables`], [`summary`],
//! [`plot`] and [`json`] show these, and [`figures`] are the same for a report.
#![forbid(unsafe_code)]

pub mod figures;
mod follow;
pub mod json;
mod longest;
pub mod names;
pub mod next;
pub mod plot;
mod quantiles;
pub mod remarks;
pub mod slowest;
pub mod stages;
pub mod summary;
pub mod tables;
mod tail;

pub use follow::{PassFindings, follow_objects, tables_of};
