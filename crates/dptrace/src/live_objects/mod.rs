//! Objects of a running process, found in its memory: by `dptrace objects -p`, `record`, `trace -p` and `latency -p`.

use std::path::Path;

use objects::ObjectSpec;

pub(crate) mod command;
mod finder;
mod globals;
mod layout;
pub(crate) mod lines;
mod mapped;
mod pointers;
mod program;
mod rpc;
mod session;
mod table;

pub(crate) use finder::Finder;
pub(crate) use layout::version_of;
pub(crate) use pointers::Pointers;
pub(crate) use session::{Opening, SHORT_INTERVAL, Session};

/// What one reading finds of the objects that a trace can name, as lines of a recording; nothing if none can be found.
pub(crate) fn read_once(pid: u32, specs: &[ObjectSpec], trace: &Path) -> String {
    let named: Vec<_> = specs.iter().filter(|spec| is_named_by_traces(spec)).cloned().collect();
    let of_trace = |specs: &[&ObjectSpec]| Pointers::of_file(specs.iter().copied(), trace).unwrap_or_default();
    let Some(finder) = find(pid, &named, of_trace) else { return String::new() };
    let lines = lines::Readings::default().lines(&finder, &finder.read(), 0);
    lines.join("\n")
}

/// Whether records of traces can refer to objects of this kind.
pub(crate) fn is_named_by_traces(spec: &ObjectSpec) -> bool {
    !spec.tracepoint_args.is_empty() || !spec.owner.is_empty()
}

/// What can find such objects in the process, if anything can. `pointers` are what a trace has of the objects of specs.
pub(crate) fn find(pid: u32, specs: &[ObjectSpec], pointers: impl Fn(&[&ObjectSpec]) -> Pointers) -> Option<Finder> {
    Finder::open_with(pid, specs, &[], &pointers).ok().filter(|finder| !finder.kinds().is_empty())
}
