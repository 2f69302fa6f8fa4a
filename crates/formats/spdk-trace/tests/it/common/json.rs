//! JSON documents read, as lines.

use std::ops::ControlFlow;

use spdk_trace::{JsonTrace, Problems};

use super::line;

/// The records of a document, and all that was wrong with it.
#[track_caller]
pub(crate) fn read_json(text: impl Into<Vec<u8>>) -> (Vec<String>, Problems) {
    match JsonTrace::parse(text.into()) {
        Ok(trace) => {
            let mut lines = Vec::new();
            let problems = spdk_trace::Trace::Json(trace).for_each(|record| {
                lines.push(line(record));
                ControlFlow::Continue(())
            });
            (lines, problems)
        }
        Err(error) => panic!("not read: {error}"),
    }
}
