//! The objects of a trace that goes on: known before, or recorded from the process while it is followed.

use std::time::Duration;

use bpf_session::Features;
use objects::{Annotator, ObjectSpec, WantedProbe};
use probe_recorder::{AttachPlan, Recorder};
use spdk_trace::{Owners, Record, TickRate, Ticks, TpointTable};

use super::objects::{annotate_quietly, report_owners};
use crate::failure::note;
use crate::record::{RING_BYTES, add_files, report_remarks, report_totals};
use crate::target::Files;

/// So many objects are worth remembering, whether they live or not.
const FEW: usize = 10_000;

/// Records that point to objects of which nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unknown {
    pub(crate) read: u64,
    /// Those of them that were shown.
    pub(crate) shown: u64,
}

/// Where a record's objects are known from.
pub(crate) enum Objects {
    /// A recording that is there already, or nothing.
    Known(Option<Box<Annotator>>),
    /// A process, from now on.
    Live(Box<Live>),
}

/// A process's objects, as they come.
pub(crate) struct Live {
    recorder: Option<Recorder>,
    annotator: Annotator,
    /// How many objects are known before those that have ended long ago are forgotten.
    enough: usize,
    unknown: Unknown,
}

impl Objects {
    /// Records the objects of a process whose trace has these tracepoints. `text` is what is known already. What stands in
    /// the way of that (no right, no probes) is reported, and the trace goes on without.
    pub(crate) fn start(pid: u32, specs: Vec<ObjectSpec>, text: &str, tpoints: &TpointTable, has_owners: bool) -> Self {
        let recorder = match record(pid, &specs, tpoints, has_owners) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                note(&format!("objects are not recorded, and are printed as pointers: {error:#}"));
                None
            }
        };
        let annotator = annotate_quietly(text, specs, tpoints);
        Self::Live(Box::new(Live { recorder, annotator, enough: FEW, unknown: Unknown::default() }))
    }

    /// Learns what has come meanwhile. Records from before `shown` will not be asked for any more.
    pub(crate) fn learn(&mut self, shown: Ticks) {
        if let Self::Live(live) = self {
            let lines = live.recorder.as_mut().map(|recorder| recorder.next_unordered(Duration::ZERO));
            live.learn(&lines.unwrap_or_default());
            live.forget(shown);
        }
    }

    /// Takes over the trace's owners.
    pub(crate) fn know_owners(&mut self, owners: &Owners, rate: TickRate) {
        let annotator = match self {
            Self::Known(annotator) => annotator.as_deref_mut(),
            Self::Live(live) => Some(&mut live.annotator),
        };
        if let Some(annotator) = annotator {
            annotator.know_owners(owners.all(), rate);
        }
    }

    /// Stops to record; what was on its way is learnt.
    pub(crate) fn finish(&mut self) {
        let Self::Live(live) = self else { return };
        if let Some(recorder) = live.recorder.take() {
            let (lines, totals) = recorder.finish();
            live.learn(&lines);
            match totals {
                Ok(totals) => report_totals("objects", &totals),
                Err(error) => note(&format!("objects: {error}")),
            }
        }
    }

    /// What is known now.
    pub(crate) fn annotator(&self) -> Option<&Annotator> {
        match self {
            Self::Known(annotator) => annotator.as_deref(),
            Self::Live(live) => Some(&live.annotator),
        }
    }

    /// Whether records are to be counted with [`Self::count_unknown`].
    pub(crate) fn is_unknown(&self, record: &Record<'_>) -> bool {
        matches!(self, Self::Live(live) if live.annotator.is_unknown(record))
    }

    /// Counts records of which an object is not known.
    pub(crate) fn count_unknown(&mut self, more: Unknown) {
        if let Self::Live(live) = self {
            live.unknown.read += more.read;
            live.unknown.shown += more.shown;
        }
    }

    /// Reports how much is not known.
    pub(crate) fn report(&self) {
        self.annotator().into_iter().for_each(report_owners);
        let Self::Live(live) = self else { return };
        let Unknown { read, shown } = live.unknown;
        let which = "point to objects from before dptrace attached";
        if shown > 0 {
            note(&format!("{shown} of the records shown {which}: these are printed as pointers"));
        }
        if read > shown {
            note(&format!(
                "{} of the records not shown {which}: conditions on objects are not met for them",
                read - shown
            ));
        }
    }
}

impl Live {
    fn learn(&mut self, lines: &[String]) {
        self.annotator.learn(lines);
    }

    /// Forgets those that have ended before `shown`, when there are many.
    fn forget(&mut self, shown: Ticks) {
        if self.annotator.lifetimes().all().len() > self.enough {
            self.annotator.forget(shown);
            self.enough = FEW + 2 * self.annotator.lifetimes().all().len();
        }
    }
}

/// Attaches to the probes of those objects that the trace's records point to.
fn record(pid: u32, specs: &[ObjectSpec], tpoints: &TpointTable, has_owners: bool) -> anyhow::Result<Recorder> {
    let names = |name: &String| tpoints.all().iter().any(|tpoint| tpoint.args.iter().any(|arg| arg.name == *name));
    let is_owner = |spec: &ObjectSpec| has_owners && !spec.owner.is_empty();
    let referred: Vec<ObjectSpec> =
        specs.iter().filter(|spec| spec.tracepoint_args.iter().any(names) || is_owner(spec)).cloned().collect();
    let wanted = WantedProbe::of(&referred)?;
    if wanted.is_empty() {
        anyhow::bail!("no tracepoint of this trace has an argument that points to an object");
    }
    let mut plan = AttachPlan::new(&wanted, Features::of_probes()?.for_process(Some(pid)), RING_BYTES);
    let (files, place) = Files::of_process(pid)?;
    add_files(&mut plan, &files, &place)?;
    report_remarks(&plan);
    Ok(Recorder::start(&plan, pid)?)
}
