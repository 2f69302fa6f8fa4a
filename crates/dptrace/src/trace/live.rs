//! The objects of a trace that goes on: known before, or recorded from the process while it is followed.

use std::time::Duration;

use bpf_session::Features;
use objects::{Annotator, ObjectSpec, WantedProbe};
use spdk_trace::{Record, TpointTable};

use super::objects::annotate_quietly;
use crate::failure::note;
use crate::record::plan::Plan;
use crate::record::recorder::Recorder;
use crate::record::{RING_BYTES, tell_remarks, tell_totals};
use crate::target::{Depth, Files};

/// Where a record's objects are known from.
pub(crate) enum Objects {
    /// A recording that is there already, or nothing.
    Known(Option<Annotator>),
    /// A process, from now on.
    Live(Box<Live>),
}

/// A process's objects, as they come.
pub(crate) struct Live {
    recorder: Option<Recorder>,
    specs: Vec<ObjectSpec>,
    /// The recording so far.
    text: String,
    annotator: Annotator,
    /// Records shown that point to objects of which nothing is known.
    unknown: u64,
}

impl Objects {
    /// Records the objects of a process whose trace has these tracepoints. `text` is what is known already. What stands in
    /// the way of that (no right, no probes) is told, and the trace goes on without.
    pub(crate) fn start(pid: u32, specs: Vec<ObjectSpec>, text: String, tpoints: &TpointTable) -> Self {
        let recorder = match record(pid, &specs, tpoints) {
            Ok(recorder) => Some(recorder),
            Err(error) => {
                note(&format!("objects are not recorded, and shown by their pointers: {error:#}"));
                None
            }
        };
        let annotator = annotate_quietly(&text, specs.clone(), tpoints);
        Self::Live(Box::new(Live { recorder, specs, text, annotator, unknown: 0 }))
    }

    /// Waits for so long, and learns what comes meanwhile.
    pub(crate) fn wait(&mut self, time: Duration, tpoints: &TpointTable) {
        match self {
            Self::Live(live) if live.recorder.is_some() => live.wait(time, tpoints),
            _ => std::thread::sleep(time),
        }
    }

    /// Stops to record; what was on its way is learnt.
    pub(crate) fn finish(&mut self, tpoints: &TpointTable) {
        let Self::Live(live) = self else { return };
        if let Some(recorder) = live.recorder.take() {
            let (lines, totals) = recorder.finish();
            live.learn(&lines, tpoints);
            tell_totals("objects", &totals);
        }
    }

    /// What is known now.
    pub(crate) fn annotator(&self) -> Option<&Annotator> {
        match self {
            Self::Known(annotator) => annotator.as_ref(),
            Self::Live(live) => Some(&live.annotator),
        }
    }

    /// Whether records are to be counted with [`Self::count_unknown`].
    pub(crate) fn is_unknown(&self, record: &Record<'_>) -> bool {
        matches!(self, Self::Live(live) if live.annotator.is_unknown(record))
    }

    /// Counts records shown of which an object is not known.
    pub(crate) fn count_unknown(&mut self, more: u64) {
        if let Self::Live(live) = self {
            live.unknown += more;
        }
    }

    /// Tells how much is not known.
    pub(crate) fn tell(&self) {
        if let Self::Live(live) = self
            && live.unknown > 0
        {
            note(&format!(
                "{} of the records shown point to objects that were there before dptrace attached: shown by their pointers",
                live.unknown
            ));
        }
    }
}

impl Live {
    fn wait(&mut self, time: Duration, tpoints: &TpointTable) {
        let lines = self.recorder.as_mut().map(|recorder| recorder.next_unordered(time)).unwrap_or_default();
        self.learn(&lines, tpoints);
    }

    fn learn(&mut self, lines: &[String], tpoints: &TpointTable) {
        if lines.is_empty() {
            return;
        }
        for line in lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.annotator = annotate_quietly(&self.text, self.specs.clone(), tpoints);
    }
}

/// Attaches to the probes of those objects that the trace's records point to.
fn record(pid: u32, specs: &[ObjectSpec], tpoints: &TpointTable) -> anyhow::Result<Recorder> {
    let names = |name: &String| tpoints.all().iter().any(|tpoint| tpoint.args.iter().any(|arg| arg.name == *name));
    let referred: Vec<ObjectSpec> =
        specs.iter().filter(|spec| spec.tracepoint_args.iter().any(names)).cloned().collect();
    let wanted = WantedProbe::of(&referred)?;
    if wanted.is_empty() {
        anyhow::bail!("no tracepoint of this trace has an argument that points to an object");
    }
    let mut plan = Plan::new(&wanted, Features::of_probes()?.for_process(Some(pid)), RING_BYTES);
    let (files, place) = Files::of_process(pid)?;
    files.for_each(Depth::Notes, |file| plan.look_into(file))?;
    plan.tell_missing(&place)?;
    tell_remarks(&plan);
    Ok(Recorder::start(&plan, pid)?)
}
