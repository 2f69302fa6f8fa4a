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
use lines::Readings;
pub(crate) use pointers::Pointers;
pub(crate) use session::{Opening, SHORT_INTERVAL, Session};

/// Readings of the objects that a trace can name, one before the trace is read and one after that: its records lie between them, also
/// where a ring holds less than the time that reading takes.
pub(crate) struct AroundTrace {
    finder: Finder,
    readings: Readings,
    lines: Vec<String>,
}

impl AroundTrace {
    /// Makes the first reading; none if no objects can be found.
    pub(crate) fn begin(pid: u32, specs: &[ObjectSpec], trace: &Path) -> Option<Self> {
        let named: Vec<_> = specs.iter().filter(|spec| is_named_by_traces(spec)).cloned().collect();
        let of_trace = |specs: &[&ObjectSpec]| Pointers::of_file(specs.iter().copied(), trace).unwrap_or_default();
        let finder = find(pid, &named, of_trace)?;
        let mut readings = Readings::default();
        let lines = readings.lines(&finder, &finder.read(), 0);
        Some(Self { finder, readings, lines })
    }

    /// Makes the last reading, and returns both as lines of a recording. Of a process that has ended meanwhile there is none.
    pub(crate) fn finish(self) -> String {
        let Self { finder, mut readings, mut lines } = self;
        let last = finder.read();
        if last.found.iter().any(|found| !found.objects.is_empty()) {
            lines.extend(readings.lines(&finder, &last, 0));
        }
        lines.join("\n")
    }
}

/// Whether records of traces can refer to objects of this kind.
pub(crate) fn is_named_by_traces(spec: &ObjectSpec) -> bool {
    !spec.tracepoint_args.is_empty() || !spec.owner.is_empty()
}

/// What can find such objects in the process, if anything can. `pointers` are what a trace has of the objects of specs.
pub(crate) fn find(pid: u32, specs: &[ObjectSpec], pointers: impl Fn(&[&ObjectSpec]) -> Pointers) -> Option<Finder> {
    Finder::open_with(pid, specs, &[], &pointers).ok().filter(|finder| !finder.kinds().is_empty())
}
