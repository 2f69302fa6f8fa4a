//! Shared parts of the tests of raw files: reads a trace, and prints its records as lines.

pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod live;
pub(crate) mod model;
pub(crate) mod racing;

use std::ops::ControlFlow;

pub(crate) use line::{line, problems};
use spdk_trace::{RawTrace, ReadAt};

/// Reads a trace; panics if that fails.
#[track_caller]
pub(crate) fn read<S: ReadAt + ?Sized>(source: &S) -> RawTrace {
    match RawTrace::read(source) {
        Ok(trace) => trace,
        Err(error) => panic!("not read: {error}"),
    }
}

/// Returns all records, a line each: see [`line`].
pub(crate) fn lines(trace: &RawTrace) -> Vec<String> {
    let mut lines = Vec::new();
    trace.for_each(|record| {
        lines.push(line(record));
        ControlFlow::Continue(())
    });
    lines
}
