//! What the fuzz targets found (fuzz/README.md), one test each: the smallest file that shows it.

use std::ops::ControlFlow;

use spdk_trace::RawTrace;
use testkit::{Era, Record, Tpoint, TraceBuilder};

/// The times of a trace's records, in the order in which they are told.
fn times(trace: &RawTrace) -> Vec<u64> {
    let mut times = Vec::new();
    trace.for_each(|record| {
        times.push(record.tsc.0);
        ControlFlow::Continue(())
    });
    times
}

/// Late records that have continuations: each stretch to be sorted reaches back over them to the one before.
#[test]
fn late_records_with_continuations_are_sorted() {
    let mut trace = TraceBuilder::new(Era::C).slots(16);
    trace.tpoint(Tpoint::new(1, "SHORT")).tpoint(Tpoint::new(2, "LONG").str("s", 40));
    trace.record(0, Record::new(1, 1_000)).record(0, Record::new(1, 1_080));
    trace.record(0, Record::new(2, 1_060).str("a")).record(0, Record::new(2, 1_070).str("b"));
    trace.record(0, Record::new(1, 1_090));
    let trace = RawTrace::read(&trace.build()).unwrap();
    assert_eq!(times(&trace), [1_000, 1_060, 1_070, 1_080, 1_090]);
}
