//! Objects of a running process, found in its memory: by `dptrace objects -p`, `record`, `trace -p` and `latency -p`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use objects::ObjectSpec;
use spdk_trace::{ArgValue, RawTrace};

use crate::input::FileSource;

pub(crate) mod command;
mod finder;
pub(crate) mod lines;
mod program;
mod session;
mod table;

pub(crate) use finder::Finder;
pub(crate) use session::{Opening, SHORT_INTERVAL, Session};

/// What one reading finds of the objects that a trace can name, as lines of a recording; nothing if none can be found.
pub(crate) fn read_once(pid: u32, specs: &[ObjectSpec], trace: &Path) -> String {
    let named: Vec<_> = specs.iter().filter(|spec| is_named_by_traces(spec)).cloned().collect();
    // Only where the program's globals are not known, the trace is needed: reading it takes longer than all else.
    let with_trace = || {
        let trace = RawTrace::read(&FileSource::open(trace).ok()?).ok()?;
        find(pid, &named, &pointers_of(&named, &trace))
    };
    let Some(finder) = find(pid, &named, &[]).or_else(with_trace) else { return String::new() };
    let lines = lines::Readings::default().lines(&finder, &finder.read(), 0);
    lines.join("\n")
}

/// Whether records of traces can refer to objects of this kind.
pub(crate) fn is_named_by_traces(spec: &ObjectSpec) -> bool {
    !spec.tracepoint_args.is_empty() || !spec.owner.is_empty()
}

/// What can find such objects in the process, if anything can. `pointers` are what the trace has of each of the specs' objects.
pub(crate) fn find(pid: u32, specs: &[ObjectSpec], pointers: &[Vec<u64>]) -> Option<Finder> {
    let of_spec = |spec: &ObjectSpec| {
        let at = specs.iter().position(|known| known.name == spec.name);
        at.and_then(|at| pointers.get(at)).cloned().unwrap_or_default()
    };
    Finder::open_with(pid, specs, &[], of_spec).ok().filter(|finder| !finder.kinds().is_empty())
}

/// The addresses that a trace has of the objects of each spec.
pub(crate) fn pointers_of(specs: &[ObjectSpec], trace: &RawTrace) -> Vec<Vec<u64>> {
    specs.iter().map(|spec| pointers(spec, trace)).collect()
}

/// The addresses that the records of a trace have of such objects.
fn pointers(spec: &ObjectSpec, trace: &RawTrace) -> Vec<u64> {
    let mut pointers = BTreeSet::new();
    trace.for_each(|record| {
        let named = record.args.iter().filter(|(arg, _)| spec.tracepoint_args.contains(&arg.name));
        pointers.extend(named.filter_map(|(_, value)| match value {
            ArgValue::Int(number) | ArgValue::Pointer(number) if number > 0 => Some(number),
            _ => None,
        }));
        if pointers.len() < MAX_POINTERS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    pointers.into_iter().collect()
}

/// The most addresses of a trace that are looked at.
const MAX_POINTERS: usize = 100_000;
