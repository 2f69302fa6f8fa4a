//! Annotators from recordings, and reports of what they can name.

use std::collections::BTreeSet;

use objects::{Annotator, BrokenLine, Lifetimes, ObjectSpec};
use observer::Observer;
use screen::{counted, plural};
use spdk_trace::TpointTable;

/// Limit on the broken lines of a recording that are reported one by one.
const MAX_REPORTED_LINES: usize = 3;

/// Makes an annotator from the text of a recording that is still being written. Reports nothing.
pub fn annotate_quietly(text: &str, specs: Vec<ObjectSpec>, tpoints: &TpointTable) -> Annotator {
    let (lifetimes, _) = Lifetimes::read(&specs, text);
    Annotator::new(specs, lifetimes, tpoints)
}

/// Makes an annotator from a recording's text, and reports errors in the text under this name.
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

/// Returns the reason why no pointer can be named, if so: there are objects, but the trace has no
/// pointer to any of them.
pub fn without_pointers(annotator: &Annotator, tpoints: &TpointTable) -> Option<String> {
    let lives = |spec: usize| {
        annotator
            .lifetimes()
            .all()
            .iter()
            .any(|life| life.spec == spec)
    };
    let specs = annotator
        .specs()
        .iter()
        .enumerate()
        .filter(|(number, _)| lives(*number));
    let args: BTreeSet<_> = specs
        .flat_map(|(_, s)| s.tracepoint_args.iter().map(String::as_str))
        .collect();
    if args.is_empty()
        || tpoints
            .all()
            .iter()
            .any(|t| t.args.iter().any(|a| args.contains(a.name.as_str())))
    {
        return None;
    }
    let args: Vec<_> = args.into_iter().collect();
    Some(format!(
        "no tracepoint of this trace has an argument called {}",
        args.join(" or ")
    ))
}

/// Reports the number of connections in the recording, or in the process's memory if the trace is
/// live. If none is named, reports the reason from [`without_pointers`].
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
        let misfit = if all > 0 {
            ", and no owner fits a connection of the recording"
        } else {
            ""
        };
        let owners = if has_descriptions {
            "; the owners of records identify their connections"
        } else {
            ""
        };
        observer.note(&format!(
            "{why}{misfit}, so the recording names no objects{owners}"
        ));
    }
}

/// Notes that names of objects found alive apply to the whole trace, if nothing shows since when
/// they hold.
pub fn report_unwitnessed(annotator: &Annotator, tpoints: &TpointTable, observer: &Observer) {
    let disabled = annotator.unwitnessed(tpoints);
    if !disabled.is_empty() {
        observer.note(&format!(
            "all records of an address have the name of the connection now found there: without \
             {}, which {} not enabled, the trace does not show whether the address belonged to \
             another connection before",
            disabled.join(" and "),
            plural(disabled.len() as u64, "is", "are")
        ));
    }
}

/// Describes the use of the known connections, and the remedy for the others.
fn named(known: usize, all: usize, is_live: bool) -> String {
    let count = known as u64;
    let found = if is_live {
        format!("{} found in the process", plural(count, "was", "were"))
    } else {
        format!("{} in the recording", plural(count, "is", "are"))
    };
    let usable = "fields such as qpair.hostnqn work for them (--by, --where)";
    if known == all {
        let connections = match all {
            1 => "the only connection".to_owned(),
            _ => format!("all {all} connections"),
        };
        return format!("{connections} of this trace {found}: {usable}");
    }
    let left = (all - known) as u64;
    let others = if is_live {
        format!(
            "{left} {} ended or can't be identified for certain",
            plural(left, "has", "have")
        )
    } else {
        format!(
            "{left} {} not, or can't be identified for certain",
            plural(left, "is", "are")
        )
    };
    let they = plural(left, "it has", "they have");
    let advice = "To name all of them, start dptrace record -p PID before they connect, and give \
                  its file with -b";
    format!(
        "{known} of the {all} connections of this trace {found}: {usable}. The other {others}: \
         {they} only the details in the trace. {advice}"
    )
}

fn report(
    name: &str,
    all_broken: &[BrokenLine],
    lifetimes: &Lifetimes,
    specs: &[ObjectSpec],
    observer: &Observer,
) {
    for broken in all_broken.iter().take(MAX_REPORTED_LINES) {
        observer.note(&format!(
            "{name}, line {}: left out: {}",
            broken.line, broken.why
        ));
    }
    if let Some(more) = all_broken
        .len()
        .checked_sub(MAX_REPORTED_LINES)
        .filter(|&more| more > 0)
    {
        let lines = counted(more as u64, "more broken line");
        observer.note(&format!("{name}: {lines} left out"));
    }
    if lifetimes.all().is_empty() {
        let begins: BTreeSet<_> = specs
            .iter()
            .flat_map(|s| {
                s.probes
                    .iter()
                    .filter(|p| p.role.begins())
                    .map(|p| p.name.as_str())
            })
            .collect();
        let begins: Vec<_> = begins.into_iter().collect();
        observer.note(&format!(
            "{name}: no object begins in this recording (it has no line of {})",
            begins.join(", ")
        ));
    }
    if lifetimes.orphans > 0 {
        let hits = counted(lifetimes.orphans, "hit");
        let are = plural(lifetimes.orphans, "is", "are");
        observer.note(&format!(
            "{name}: {hits} of objects from before the recording began {are} left out"
        ));
    }
}
