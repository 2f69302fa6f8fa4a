//! Lines of JSON documents.

use std::ops::ControlFlow;

use spdk_trace::{JsonTrace, Problems};

use super::line;

/// Returns the records of a document as lines, and the damage found.
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
