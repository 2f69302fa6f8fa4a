//! Distributions of values, such as the times of requests: one histogram, and one definition of a
//! quantile.
//!
//! The quantile `q` of `n` values is the smallest value that at least `q * n` of them do not exceed
//! (the nearest rank: number `ceil(q * n)` in ascending order, 1 at least). No value is interpolated
//! between two others.
//!
//! [`Histogram`] keeps a limited number of values as they are. Of more it keeps counts, by the
//! buckets of a [`Scale`], and rounds a quantile **up** to the last value of its bucket: a reported
//! quantile is never exceeded by more values than it says. The maximum, the sum and the mean stay
//! exact.
//!
//! Counts that others keep between wide bounds, as programs in the kernel and Prometheus do, would be
//! rounded by up to half of a value. [`estimate`] takes the values of the bucket to be spread evenly
//! instead, as Prometheus' `histogram_quantile` does.
#![forbid(unsafe_code)]

mod counts;
mod histogram;
mod interval;
mod quantile;
mod scale;

pub use counts::Counts;
pub use histogram::{Bucket, Histogram};
pub use interval::{BATCHES, Batch, Interval, mean_interval, quantile_interval};
pub use quantile::{WideBucket, estimate, rank, sorted_quantile};
pub use scale::Scale;
