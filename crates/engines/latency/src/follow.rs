//! One pass over a trace: the times of its objects.

use std::ops::ControlFlow;

use capture::expected_records;
use objects::Annotator;
use observer::{Observer, Progress, Reading};
use records::{Context, Filter};
use requests::Queues;
use scene::{Silence, Silences};
use screen::{Screen, counted};
use spdk_trace::Ticks;
use trace_source::{LoadedTrace, nothing_read, warn_problems};

use crate::names::Names;
use crate::slowest::ListCommand;
use crate::stages::{Latencies, Query, Tracker};
use crate::tables::tables;

/// Findings of one pass over a trace.
pub struct PassFindings {
    /// Times that its objects took.
    pub latencies: Latencies,
    /// Time of the first record, from which listings count.
    pub base: Ticks,
    /// Times in which busy threads wrote nothing.
    pub silences: Vec<Silence>,
}

/// Follows the objects of a trace.
pub fn follow_objects(
    loaded: &LoadedTrace,
    annotator: Option<&Annotator>,
    mut filter: Filter,
    start: Ticks,
    (question, queues): (Query, Queues),
    observer: &Observer,
) -> anyhow::Result<PassFindings> {
    let trace = &loaded.trace;
    let context = Context {
        rate: trace.tick_rate(),
        annotator,
    };
    let mut tracker = Tracker::new(question, queues, trace.tpoints().all(), loaded.rate());
    let (mut base, mut read) = (None, 0u64);
    let mut silences = Silences::new(loaded.rate());
    let mut reading = Reading::new(
        Progress::new(observer),
        "reading",
        expected_records(trace, loaded.capture.as_deref()),
    );
    let problems = trace.for_each(|record| {
        read += 1;
        reading.count();
        tracker.observe(record);
        if record.tsc >= start {
            let base = *base.get_or_insert(record.tsc);
            if filter.reaches(record, base) {
                silences.record(record);
            }
            if filter.wants(record, base, &context) {
                tracker.record(record, &context);
            } else {
                tracker.unwanted(record);
            }
        }
        ControlFlow::Continue(())
    });
    drop(reading);
    warn_problems(&problems, observer);
    if read == 0 {
        nothing_read(loaded, &problems, observer)?;
    }
    let unseen = tracker.unseen();
    if unseen > 0 {
        let are = if unseen == 1 { "is" } else { "are" };
        let records = counted(unseen, "record");
        observer.note(&format!(
            "{records} of objects created before the trace begins {are} not counted"
        ));
    }
    let latencies = tracker.finish_all();
    if read > 0 && latencies.subjects.is_empty() {
        observer.note(&format!(
            "the filtered trace creates no object: there is nothing to measure{}",
            filter.empty_reason()
        ));
    }
    Ok(PassFindings {
        latencies,
        base: base.unwrap_or_default(),
        silences: silences.finish(loaded.rate()),
    })
}

/// Returns the tables of all records of a trace that pass the filter, as text.
///
/// # Errors
/// Fails if no record can be read.
pub fn tables_of(
    loaded: &LoadedTrace,
    annotator: Option<&Annotator>,
    filter: Filter,
    queues: Queues,
    screen: Screen,
    observer: &Observer,
) -> anyhow::Result<String> {
    let PassFindings {
        latencies, base, ..
    } = follow_objects(
        loaded,
        annotator,
        filter,
        Ticks(0),
        (Query::default(), queues),
        observer,
    )?;
    let (tpoints, rate) = (loaded.trace.tpoints(), loaded.trace.tick_rate());
    let names = Names {
        tpoints,
        rate,
        listed: rate,
        by: &[],
        screen,
        base,
        show: ListCommand::Piped,
        all: true,
    };
    Ok(tables(&latencies, &names))
}
