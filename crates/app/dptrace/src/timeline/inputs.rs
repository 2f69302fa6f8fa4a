//! All that a timeline is made from: what was opened, and what is asked of each request.

use std::cell::OnceCell;
use std::path::Path;

use ::capture::Reader;
use anyhow::Context as _;
use host::user_file;
use live_objects::{annotate_quietly, know_owners, with_owners};
use objects::{Annotator, ObjectSpec, built_in};
use observer::Progress;
use records::{Context, Field};
use requests::{Queues, field};
use scene::{Consumer, KernelEvent, Setting};
use spdk_trace::{TickRate, Trace};
use trace_source::{Place, beside, captures};

use super::open;
use super::pass::{Fields, Kept, Passed, pass};
use super::source::Source;
use crate::terminal;
use live_objects::ObjectSources;

/// What requests are grouped by if nothing was said.
const SUBSYSTEM: &str = "owner.subnqn";

/// A capture or a trace, its objects, and the fields that are asked for.
pub(crate) struct Inputs {
    pub(crate) source: Source,
    /// The fields that requests are grouped by, as typed.
    pub(crate) by: Vec<String>,
    by_fields: Vec<Vec<Field>>,
    owner: [Field; 2],
    queues: Queues,
    pub(crate) annotator: Option<Annotator>,
    rate: TickRate,
    /// What later events show of earlier times; read when it is first needed.
    foreseen: OnceCell<Vec<KernelEvent>>,
}

impl Inputs {
    /// Opens them, and reports what is missing.
    pub(crate) fn open(path: &Path, objects: &ObjectSources, by: &[String]) -> anyhow::Result<Self> {
        let source = open::source(path)?;
        let objects = objects.of(&Place::File(path.to_owned()));
        let specs = objects.specs()?;
        let annotator = match &source.trace {
            Some(trace) => {
                let annotator = objects.annotator(
                    specs.clone(),
                    trace.tpoints(),
                    "",
                    || beside::span(trace),
                    &terminal::observer(),
                )?;
                with_owners(annotator, trace, false, &terminal::observer())
            }
            None => None,
        };
        let by = fields_to_group_by(by, &source, annotator.is_some());
        Self::of(source, annotator, &specs, by)
    }

    /// The same with these fields to group by; of each, the first name that a request has a value for.
    pub(crate) fn open_for(path: &Path, objects: &ObjectSources, fields: &[&[&str]]) -> anyhow::Result<Self> {
        let by: Vec<String> = fields.iter().filter_map(|names| names.first()).map(|name| (*name).to_owned()).collect();
        let mut inputs = Self::open(path, objects, &by)?;
        let specs = objects.specs()?;
        let parse = |names: &&[&str]| names.iter().map(|name| field::parse(name, &specs)).collect();
        inputs.by_fields = fields.iter().map(parse).collect::<anyhow::Result<_>>()?;
        Ok(inputs)
    }

    /// A capture, without groups and with no report on its objects.
    pub(crate) fn open_quietly(dir: &Path) -> anyhow::Result<Self> {
        let source = open::source(dir)?;
        let recording = captures::objects(dir).map(|path| user_file::read_member(&path, user_file::RECORDING));
        let recording = recording.transpose().context("reading the capture's recording")?.unwrap_or_default();
        Self::quietly(source, &String::from_utf8_lossy(&recording))
    }

    /// A trace alone, with the text of a recording; without groups.
    pub(crate) fn of_trace(trace: Trace, recording: &str) -> anyhow::Result<Self> {
        let rate = trace.tick_rate();
        Self::quietly(Source::of_trace(trace, rate), recording)
    }

    /// A capture that has just been written, by subsystem, and with no report at all.
    pub(super) fn open_to_judge(dir: &Path, specs: &[ObjectSpec]) -> anyhow::Result<Self> {
        let recording = captures::objects(dir).map(|path| user_file::read_member(&path, user_file::RECORDING));
        let recording = recording.transpose().context("reading the capture's recording")?.unwrap_or_default();
        let by = vec![SUBSYSTEM.to_owned()];
        Self::with_recording(open::captured_quietly(dir)?, &String::from_utf8_lossy(&recording), specs, by)
    }

    /// The same of one that is in memory, without groups.
    pub(super) fn open_to_learn(reader: Reader, specs: &[ObjectSpec]) -> anyhow::Result<Self> {
        Self::with_recording(open::captured(reader)?, "", specs, Vec::new())
    }

    fn quietly(source: Source, recording: &str) -> anyhow::Result<Self> {
        Self::with_recording(source, recording, &built_in()?, Vec::new())
    }

    fn with_recording(source: Source, recording: &str, specs: &[ObjectSpec], by: Vec<String>) -> anyhow::Result<Self> {
        let annotator = source.trace.as_ref().map(|trace| {
            let mut annotator = annotate_quietly(recording, specs.to_vec(), trace.tpoints());
            know_owners(&mut annotator, trace, false);
            annotator
        });
        Self::of(source, annotator, specs, by)
    }

    fn of(source: Source, annotator: Option<Annotator>, specs: &[ObjectSpec], by: Vec<String>) -> anyhow::Result<Self> {
        let parse = |field: &String| alternatives(field, specs);
        let by_fields = by.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
        let owner = [field::parse("qpair", specs)?, Field::Owner];
        let rate = source.trace.as_ref().map_or(TickRate::ticks_as_micros(), Trace::tick_rate);
        let queues = Queues::new(specs)?;
        Ok(Self { source, by, by_fields, owner, queues, annotator, rate, foreseen: OnceCell::new() })
    }

    /// Hands all records and events to a consumer, in the order of time. `what` is shown meanwhile.
    pub(crate) fn pass<C: Consumer<Kept>>(&self, what: &'static str, setting: Setting, consumer: &mut C) -> Passed {
        self.pass_with(Progress::new(&terminal::observer()), what, setting, consumer)
    }

    /// The same for a consumer that prints.
    pub(crate) fn pass_with<C: Consumer<Kept>>(
        &self,
        progress: Progress,
        what: &'static str,
        setting: Setting,
        consumer: &mut C,
    ) -> Passed {
        let context = Context { rate: self.rate, annotator: self.annotator.as_ref() };
        let (by, owner, queues) = (&self.by_fields, &self.owner, self.queues.clone());
        let fields = Fields { by, owner, queues, context };
        let foreseen = self.foreseen.get_or_init(|| self.source.foresee());
        pass(&self.source, self.source.reading(progress, what), setting, foreseen, fields, consumer)
    }
}

/// What is grouped by: if nothing was said, by what the trace knows of a subsystem.
fn fields_to_group_by(by: &[String], source: &Source, has_objects: bool) -> Vec<String> {
    let knows = source.trace.as_ref().is_some_and(|trace| has_objects || trace.has_owners());
    if by.is_empty() && knows { vec![SUBSYSTEM.to_owned()] } else { by.to_vec() }
}

/// The field, and what stands for it where it is missing: owners know their subsystems; RDMA's records have none, but a recording
/// may.
fn alternatives(field: &str, specs: &[ObjectSpec]) -> anyhow::Result<Vec<Field>> {
    let other = (field == SUBSYSTEM).then_some("qpair.subnqn");
    std::iter::once(field).chain(other).map(|name| field::parse(name, specs)).collect()
}
