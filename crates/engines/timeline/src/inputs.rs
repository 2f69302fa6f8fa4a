//! Inputs of a timeline: the opened source, and the fields to read of each request.

use std::cell::OnceCell;
use std::path::Path;

use anyhow::Context as _;
use capture::Reader;
use host::user_file;
use live_objects::{ObjectSources, annotate_quietly, know_owners, with_owners};
use objects::{Annotator, ObjectSpec, built_in};
use observer::{Observer, Progress};
use records::{Context, Field};
use requests::{Queues, field, sockets};
use scene::{Consumer, KernelEvent, Setting};
use spdk_trace::{TickRate, Trace};
use trace_source::{Place, beside, captures};

use super::open;
use super::pass::{Fields, PassStats, RequestLabels, pass};
use super::source::Source;

/// Field that requests are grouped by unless the user names others.
const SUBSYSTEM: &str = "owner.subnqn";

/// Capture or trace, its objects, and the requested fields.
pub struct Inputs {
    /// Trace and kernel events.
    pub source: Source,
    /// Fields that requests are grouped by, as typed.
    pub by: Vec<String>,
    by_fields: Vec<Vec<Field>>,
    owner: [Field; 2],
    queues: Queues,
    /// Names of objects, if they are known.
    pub annotator: Option<Annotator>,
    rate: TickRate,
    /// Facts about earlier times from later events; read when first needed.
    foreseen: OnceCell<Vec<KernelEvent>>,
    /// Observer of all passes.
    pub observer: Observer,
}

impl Inputs {
    /// Opens a capture or a trace, and reports what is missing.
    pub fn open(
        path: &Path,
        objects: &ObjectSources,
        by: &[String],
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let source = open::source(path, observer)?;
        let objects = objects.for_place(&Place::File(path.to_owned()));
        let specs = objects.specs()?;
        let annotator = match &source.trace {
            Some(trace) => {
                let annotator = objects.annotator(
                    specs.clone(),
                    trace.tpoints(),
                    "",
                    || beside::span(trace),
                    observer,
                )?;
                with_owners(annotator, trace, false, observer)
            }
            None => None,
        };
        let by = fields_to_group_by(by, &source, annotator.is_some());
        Self::new(source, annotator, &specs, by, observer)
    }

    /// Opens the same with these fields to group by; each is a list of names, the first of which
    /// with a value counts.
    pub fn open_for(
        path: &Path,
        objects: &ObjectSources,
        fields: &[&[&str]],
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let by: Vec<String> = fields
            .iter()
            .filter_map(|names| names.first())
            .map(|name| (*name).to_owned())
            .collect();
        let mut inputs = Self::open(path, objects, &by, observer)?;
        let specs = objects.specs()?;
        let parse = |names: &&[&str]| {
            names
                .iter()
                .map(|name| field::parse(name, &specs))
                .collect()
        };
        inputs.by_fields = fields.iter().map(parse).collect::<anyhow::Result<_>>()?;
        Ok(inputs)
    }

    /// Drops the fields to group by, so that all requests of a kind are one group.
    #[must_use]
    pub fn without_groups(self) -> Self {
        Self {
            by: Vec::new(),
            by_fields: Vec::new(),
            ..self
        }
    }

    /// Opens a capture, without groups, and without a report on its objects.
    pub fn open_quietly(dir: &Path, observer: &Observer) -> anyhow::Result<Self> {
        let source = open::source(dir, observer)?;
        Self::quietly(source, &recording(dir)?, observer)
    }

    /// Wraps a trace alone, with the text of a recording, without groups.
    pub fn from_trace(trace: Trace, recording: &str, observer: &Observer) -> anyhow::Result<Self> {
        let rate = trace.tick_rate();
        Self::quietly(Source::from_trace(trace, rate), recording, observer)
    }

    /// Opens a capture that has just been written, grouped by subsystem, without any report.
    pub fn open_to_judge(
        dir: &Path,
        specs: &[ObjectSpec],
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let by = vec![SUBSYSTEM.to_owned()];
        let source = open::captured_quietly(dir)?;
        Self::with_recording(source, &recording(dir)?, specs, by, observer)
    }

    /// Opens a capture in memory in the same way, without groups.
    pub fn open_to_learn(
        reader: Reader,
        specs: &[ObjectSpec],
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        Self::with_recording(open::captured(reader)?, "", specs, Vec::new(), observer)
    }

    fn quietly(source: Source, recording: &str, observer: &Observer) -> anyhow::Result<Self> {
        Self::with_recording(source, recording, &built_in()?, Vec::new(), observer)
    }

    fn with_recording(
        source: Source,
        recording: &str,
        specs: &[ObjectSpec],
        by: Vec<String>,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let annotator = source.trace.as_ref().map(|trace| {
            let mut annotator = annotate_quietly(recording, specs.to_vec(), trace.tpoints());
            know_owners(&mut annotator, trace, false);
            annotator
        });
        Self::new(source, annotator, specs, by, observer)
    }

    fn new(
        source: Source,
        annotator: Option<Annotator>,
        specs: &[ObjectSpec],
        by: Vec<String>,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let parse = |field: &String| alternatives(field, specs);
        let by_fields = by.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
        let owner = [field::parse("qpair", specs)?, Field::Owner];
        let rate = source
            .trace
            .as_ref()
            .map_or(TickRate::ticks_as_micros(), Trace::tick_rate);
        let queues = Queues::new(specs)?;
        Ok(Self {
            source,
            by,
            by_fields,
            owner,
            queues,
            annotator,
            rate,
            foreseen: OnceCell::new(),
            observer: observer.clone(),
        })
    }

    /// Hands all records and events to a consumer in time order, and shows progress under the name
    /// `what`.
    pub fn pass<C: Consumer<RequestLabels>>(
        &self,
        what: &'static str,
        setting: Setting,
        consumer: &mut C,
    ) -> PassStats {
        self.pass_with(Progress::new(&self.observer), what, setting, consumer)
    }

    /// Does the same for a consumer that prints.
    pub fn pass_with<C: Consumer<RequestLabels>>(
        &self,
        progress: Progress,
        what: &'static str,
        setting: Setting,
        consumer: &mut C,
    ) -> PassStats {
        let context = Context {
            rate: self.rate,
            annotator: self.annotator.as_ref(),
        };
        let fields = Fields {
            by: &self.by_fields,
            owner: &self.owner,
            context,
        };
        let foreseen = self
            .foreseen
            .get_or_init(|| self.source.foresee(&self.observer));
        pass(
            &self.source,
            self.source.reading(progress, what),
            setting,
            foreseen,
            &fields,
            self.queues.clone(),
            consumer,
        )
    }
}

/// Returns the text of a capture's recording; empty if it has none.
fn recording(dir: &Path) -> anyhow::Result<String> {
    let Some(path) = captures::objects(dir) else {
        return Ok(String::new());
    };
    let bytes = user_file::read_member(&path, user_file::RECORDING)
        .context("reading the capture's recording")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the fields to group by. By default that is the operation of requests at sockets, or the
/// subsystem, if the trace knows subsystems.
fn fields_to_group_by(by: &[String], source: &Source, has_objects: bool) -> Vec<String> {
    let knows = source
        .trace
        .as_ref()
        .is_some_and(|trace| has_objects || trace.has_owners());
    if by.is_empty() && sockets::are_in(source.tpoints()) {
        vec![sockets::OPERATION_FIELD.to_owned()]
    } else if by.is_empty() && knows {
        vec![SUBSYSTEM.to_owned()]
    } else {
        by.to_vec()
    }
}

/// Returns a field with its substitute. Owners know their subsystems; RDMA's records have no
/// owners, but a recording may know the subsystem.
fn alternatives(field: &str, specs: &[ObjectSpec]) -> anyhow::Result<Vec<Field>> {
    let other = (field == SUBSYSTEM).then_some("qpair.subnqn");
    std::iter::once(field)
        .chain(other)
        .map(|name| field::parse(name, specs))
        .collect()
}
