//! Annotators of complete traces: with the owners of the trace, and what its records report of
//! objects.

use objects::Annotator;
use observer::Observer;
use spdk_trace::{Ticks, Trace};

use crate::annotate::{report_named, report_unwitnessed, without_pointers};
use crate::following::{last_tsc, observe_all, observe_captured};

/// Adds to the annotator the owners of a complete trace, and the beginnings and ends of objects in
/// its records. A live trace was read after the objects were.
pub fn with_owners(
    annotator: Option<Annotator>,
    trace: &Trace,
    is_live: bool,
    observer: &Observer,
) -> Option<Annotator> {
    let mut annotator = annotator?;
    know_owners(&mut annotator, trace, is_live);
    let why = without_pointers(&annotator, trace.tpoints());
    report_named(
        &annotator,
        why.as_deref(),
        !trace.owners().is_empty(),
        is_live,
        observer,
    );
    report_unwitnessed(&annotator, trace.tpoints(), observer);
    Some(annotator)
}

/// Does the same without any report.
pub fn know_owners(annotator: &mut Annotator, trace: &Trace, is_live: bool) {
    match trace {
        Trace::Raw(raw) => {
            if annotator.needs_witness() {
                observe_all(
                    annotator,
                    raw,
                    if is_live {
                        Ticks(u64::MAX)
                    } else {
                        last_tsc(raw)
                    },
                );
            }
            annotator.know_owners(raw.owners().all(), raw.owners().are_all(), raw.tick_rate());
        }
        Trace::Captured(captured) => {
            if annotator.needs_witness() {
                observe_captured(annotator, captured);
            }
            annotator.know_owners(
                captured.owners(),
                captured.are_all_owners(),
                captured.tick_rate(),
            );
        }
        Trace::Json(_) => {}
    }
}
