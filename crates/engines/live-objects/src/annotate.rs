//! Annotators from recordings, and reports of what they can name.

use std::collections::BTreeSet;

use objects::{Annotator, BrokenLine, Lifetimes, ObjectSpec};
use observer::Observer;
use screen::counted;
use spdk_trace::TpointTable;

/// Limit on the broken lines of a recording that are reported one by one.
const MAX_REPORTED_LINES: usize = 3;

/// An annotator from the text of a recording that is still being written, about which nothing is reported yet.
pub fn annotate_quietly(text: &str, specs: Vec<ObjectSpec>, tpoints: &TpointTable) -> Annotator {
    let (lifetimes, _) = Lifetimes::read(&specs, text);
    Annotator::new(specs, lifetimes, tpoints)
}

/// An annotator from a recording's text; errors in the text are reported, under that name.
pub fn annotate(
    text: &str,
    name: &str,
    specs: Vec<ObjectSpec>,
    tpoints: &TpointTable,
    observer: &Observer,
) -> Annotator {
    let (lifetimes, broken) = Lifetimes::read(&specs, text);
    report(name, &broken, &lifetimes, &specs, observer);
    Annotator::new(specs, lifetimes, tpoints)
}

/// Why no pointer can be named, if that is so: there are objects, and no pointer to one of them in the trace.
pub fn without_pointers(annotator: &Annotator, tpoints: &TpointTable) -> Option<String> {
    let lives = |spec: usize| annotator.lifetimes().all().iter().any(|life| life.spec == spec);
    let specs = annotator.specs().iter().enumerate().filter(|(number, _)| lives(*number));
    let args: BTreeSet<_> = specs.flat_map(|(_, s)| s.tracepoint_args.iter().map(String::as_str)).collect();
    if args.is_empty() || tpoints.all().iter().any(|t| t.args.iter().any(|a| args.contains(a.name.as_str()))) {
        return None;
    }
    let args: Vec<_> = args.into_iter().collect();
    Some(format!("no tracepoint of this trace has an argument called {}", args.join(" or ")))
}

/// Reports how many connections a recording has, or if the trace is live the process's memory; or, with [`without_pointers`], why nothing
/// is named.
pub fn report_named(
    annotator: &Annotator,
    without_pointers: Option<&str>,
    has_descriptions: bool,
    is_live: bool,
    observer: &Observer,
) {
    let (known, all) = annotator.owners_known();
    if known > 0 {
        observer.note(&named(known, all, is_live));
    } else if let Some(why) = without_pointers {
        let misfit = if all > 0 { ", and no owner fits a connection of the recording" } else { "" };
        let owners = if has_descriptions { "; the owners of records identify their connections" } else { "" };
        observer.note(&format!("{why}{misfit}, so no object of the recording is named{owners}"));
    }
}

/// Notes that names of objects found alive hold for the whole trace because nothing shows since when, if that is so.
pub fn report_unwitnessed(annotator: &Annotator, tpoints: &TpointTable, observer: &Observer) {
    let disabled = annotator.unwitnessed(tpoints);
    if !disabled.is_empty() {
        observer.note(&format!(
            "names are those of the connections found alive, for all records of their addresses: without {}, which {} not enabled, \
             the trace does not show whether an address was another connection's before",
            disabled.join(" and "),
            if disabled.len() == 1 { "is" } else { "are" }
        ));
    }
}

/// Says what a user gains by the connections that are known, and what to do for the others.
fn named(known: usize, all: usize, is_live: bool) -> String {
    let found = if is_live { "were found in the process" } else { "are in the recording" };
    let usable = "fields such as qpair.hostnqn work for them (--by, --where)";
    if known == all {
        return format!("all {all} connections of this trace {found}: {usable}");
    }
    let others =
        if is_live { "have ended, or it is not certain which they are" } else { "are not, or not for certain" };
    let advice = "To have all, start dptrace record -p PID before the connections, and give its file with -b";
    format!(
        "{known} of the {all} connections of this trace {found}: {usable}. The other {} {others}: they have only what the trace \
         says of them. {advice}",
        all - known
    )
}

fn report(name: &str, all_broken: &[BrokenLine], lifetimes: &Lifetimes, specs: &[ObjectSpec], observer: &Observer) {
    for broken in all_broken.iter().take(MAX_REPORTED_LINES) {
        observer.note(&format!("{name}, line {}: left out: {}", broken.line, broken.why));
    }
    if let Some(more) = all_broken.len().checked_sub(MAX_REPORTED_LINES).filter(|&more| more > 0) {
        observer.note(&format!("{name}: {more} more broken lines left out"));
    }
    if lifetimes.all().is_empty() {
        let begins: BTreeSet<_> =
            specs.iter().flat_map(|s| s.probes.iter().filter(|p| p.role.begins()).map(|p| p.name.as_str())).collect();
        let begins: Vec<_> = begins.into_iter().collect();
        observer.note(&format!("{name}: no object begins in this recording (it has no line of {})", begins.join(", ")));
    }
    if lifetimes.orphans > 0 {
        let hits = counted(lifetimes.orphans, "hit");
        let are = if lifetimes.orphans == 1 { "is" } else { "are" };
        observer.note(&format!("{name}: {hits} of objects from before the recording began {are} left out"));
    }
}
