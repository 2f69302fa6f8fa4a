//! Objects of a running process, found in its memory: by `dptrace objects -p`, `record`, `trace -p` and `latency -p`.

use std::path::PathBuf;

use objects::ObjectSpec;

pub(crate) mod command;
mod finder;
pub(crate) mod lines;
mod program;
mod session;
mod table;

pub(crate) use finder::Finder;
pub(crate) use session::{SHORT_INTERVAL, Session};

/// What one reading finds of the objects that a trace can name, as lines of a recording; nothing if none can be found.
pub(crate) fn read_once(pid: u32, specs: &[ObjectSpec]) -> String {
    let named: Vec<_> = specs.iter().filter(|spec| is_named_by_traces(spec)).cloned().collect();
    let Some(finder) = find(pid, &named, &[]) else { return String::new() };
    let lines = lines::Readings::default().lines(&finder, &finder.read(), 0);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Whether records of traces can refer to objects of this kind.
pub(crate) fn is_named_by_traces(spec: &ObjectSpec) -> bool {
    !spec.tracepoint_args.is_empty() || !spec.owner.is_empty()
}

/// What can find such objects in the process, if anything can.
pub(crate) fn find(pid: u32, specs: &[ObjectSpec], debug_dirs: &[PathBuf]) -> Option<Finder> {
    Finder::open(pid, specs, debug_dirs).ok().filter(|finder| !finder.kinds().is_empty())
}
