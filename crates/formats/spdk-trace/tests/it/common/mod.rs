//! What the tests of raw files share: a trace read, and its records as lines.

pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod live;
pub(crate) mod model;
pub(crate) mod racing;

use std::ops::ControlFlow;

pub(crate) use line::{line, problems};
use spdk_trace::{RawTrace, ReadAt};

/// Reads a trace that must be readable.
#[track_caller]
pub(crate) fn read<S: ReadAt + ?Sized>(source: &S) -> RawTrace {
    match RawTrace::read(source) {
        Ok(trace) => trace,
        Err(error) => panic!("not read: {error}"),
    }
}

/// All records, a line each: see [`line`].
pub(crate) fn lines(trace: &RawTrace) -> Vec<String> {
    let mut lines = Vec::new();
    trace.for_each(|record| {
        lines.push(line(record));
        ControlFlow::Continue(())
    });
    lines
}
