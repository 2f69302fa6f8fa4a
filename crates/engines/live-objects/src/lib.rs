//! Objects of a running process, found in its memory and recorded from its probes.
//!
//! | module | holds |
//! |---|---|
//! | `alive` | the walk through memory, as object specs describe it: it knows no process |
//! | `finder` | reads the objects of some specs in a process, repeatedly |
//! | `layout`, `globals`, `program` | the places of a process's objects: by its types, symbols and
//!   known layouts |
//! | `pointers`, `mapped` | addresses from a trace, if no way leads from globals |
//! | `probes` | the probes of a process, recorded as lines in the order of time |
//! | `session` | both together: lines of a recording as they arrive |
//! | `following` | the objects of a trace that goes on |
//! | `annotate` | annotators from recordings, and reports of what they can name |
//! | `struct_layouts` | built-in layouts of SPDK for expressions over programs without debug information |
//! | `spec_texts` | the built-in object specs as text |
//! | `rpc` | additions from an application's JSON-RPC, if its socket is given |
#![forbid(unsafe_code)]

pub mod alive;
mod annotate;
mod finder;
mod following;
mod globals;
mod layout;
pub mod lines;
mod mapped;
mod owners;
mod pointers;
pub mod probes;
mod program;
pub mod rpc;
mod session;
mod sources;
pub mod spec_texts;
pub mod struct_layouts;
pub mod table;

use std::path::Path;

use objects::ObjectSpec;

pub use annotate::{
    annotate, annotate_quietly, report_named, report_unwitnessed, without_pointers,
};
pub use finder::{Finder, Kind, Snapshot};
pub use following::{
    LiveObjects, Objects, STARTUP_TIMEOUT, UnknownCounts, attach, last_tsc, observe_all,
    observe_captured, referred,
};
pub use layout::version_of;
use lines::Readings;
pub use owners::{know_owners, with_owners};
pub use pointers::Pointers;
pub use session::{PendingFinder, SHORT_INTERVAL, Session};
pub use sources::{ObjectSources, read_files};

/// Two readings of the objects that a trace can name, one before the trace is read and one after.
/// The trace's records lie between them, even if a ring holds less than the time that reading
/// takes.
pub struct BracketingReadings {
    finder: Finder,
    readings: Readings,
    lines: Vec<String>,
}

impl BracketingReadings {
    /// Makes the first reading; `None` if no objects can be found.
    pub fn begin(pid: u32, specs: &[ObjectSpec], trace: &Path) -> Option<Self> {
        let named: Vec<_> = specs
            .iter()
            .filter(|spec| is_named_by_traces(spec))
            .cloned()
            .collect();
        let of_trace = |specs: &[&ObjectSpec]| {
            Pointers::from_file(specs.iter().copied(), trace).unwrap_or_default()
        };
        let finder = find(pid, &named, of_trace)?;
        let mut readings = Readings::default();
        let lines = readings.lines(&finder, &finder.read(), 0);
        Some(Self {
            finder,
            readings,
            lines,
        })
    }

    /// Makes the last reading, and returns both as lines of a recording. If the process has ended
    /// meanwhile, the last one is left out.
    pub fn finish(self) -> String {
        let Self {
            finder,
            mut readings,
            mut lines,
        } = self;
        let last = finder.read();
        if last.found.iter().any(|found| !found.objects.is_empty()) {
            lines.extend(readings.lines(&finder, &last, 0));
        }
        lines.join("\n")
    }
}

/// Returns true if records of traces can refer to objects of this kind.
pub fn is_named_by_traces(spec: &ObjectSpec) -> bool {
    !spec.tracepoint_args.is_empty() || !spec.owner.is_empty()
}

/// Returns a finder for the specs' objects in the process; `None` if none can be found. `pointers`
/// returns the addresses that a trace has of them.
pub fn find(
    pid: u32,
    specs: &[ObjectSpec],
    pointers: impl Fn(&[&ObjectSpec]) -> Pointers,
) -> Option<Finder> {
    Finder::open_with(pid, specs, &[], &pointers)
        .ok()
        .filter(|finder| !finder.kinds().is_empty())
}
