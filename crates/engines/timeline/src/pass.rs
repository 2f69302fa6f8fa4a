//! One pass over all records and events, merged in time order.

use std::iter::Peekable;
use std::ops::ControlFlow;

use observer::Reading;
use records::{Context, Field};
use requests::Queues;
use scene::{BootNanos, Consumer, KernelEvent, LookaheadEvents, OmittedCounts, Scene, Setting};
use spdk_trace::{Problems, Record};

use super::source::{Kernel, Source};

/// Data kept of each request.
#[derive(Clone, Debug, Default)]
pub struct RequestLabels {
    /// Values of the fields to group by.
    pub group: Vec<Option<Box<str>>>,
    /// Connection or owner.
    pub owner: Option<Box<str>>,
}

/// Fields to read of each request.
pub struct Fields<'a> {
    /// Fields to group by; for each, the first with a value counts.
    pub by: &'a [Vec<Field>],
    /// Fields of the owner; the first with a value counts.
    pub owner: &'a [Field],
    /// Context in which fields are read.
    pub context: Context<'a>,
}

impl Fields<'_> {
    fn note(&self, record: &Record<'_>, data: &mut RequestLabels, related: Option<&RequestLabels>) {
        if data.group.len() < self.by.len() {
            data.group.resize(self.by.len(), None);
        }
        let value = |field: &Field| {
            field
                .value(record, &self.context)
                .map(|value| value.into_owned().into_boxed_str())
        };
        for (at, (found, fields)) in data.group.iter_mut().zip(self.by).enumerate() {
            if found.is_none() {
                // An I/O belongs to the connection of its request.
                *found = related
                    .and_then(|it| it.group.get(at)?.clone())
                    .or_else(|| fields.iter().find_map(value));
            }
        }
        if data.owner.is_none() {
            data.owner = related
                .and_then(|it| it.owner.clone())
                .or_else(|| self.owner.iter().find_map(value));
        }
    }
}

/// Statistics of a pass.
#[derive(Default)]
pub struct PassStats {
    /// Problems of the trace.
    pub problems: Problems,
    /// Number of records of objects whose creation was not seen.
    pub unseen: u64,
    /// Number of all records.
    pub records: u64,
    /// Number of events.
    pub events: u64,
    /// Objects that were left out to bound memory.
    pub left_out: OmittedCounts,
    /// Number of lost events.
    pub lost: u64,
    /// Time of the last event, if later ones are missing.
    pub events_end: Option<BootNanos>,
    /// Reason that the events end early.
    pub cut: Option<String>,
    /// Time of the last record or event.
    pub end: BootNanos,
    /// Time of the first record, or without records the start of the kernel's events.
    pub begin: BootNanos,
    /// Origin of printed times: the start of the kernel's events, because the trace's rings hold
    /// records from long before a capture; or the first record, if that is later or if there are no
    /// events.
    pub start: BootNanos,
    /// Time of the last record.
    pub last_record: BootNanos,
}

/// Hands all records and events to a consumer. `noted` are the facts about earlier times from later
/// events.
pub fn pass<C: Consumer<RequestLabels>>(
    source: &Source,
    mut reading: Reading,
    setting: Setting,
    noted: &[KernelEvent],
    fields: &Fields<'_>,
    queues: Queues,
    consumer: &mut C,
) -> PassStats {
    let kernel = source.kernel.as_ref();
    let none = || Box::new(std::iter::empty()) as Box<dyn Iterator<Item = _>>;
    let events = kernel.map_or_else(none, |kernel| kernel.events.events());
    let mut passing = PassRun {
        scene: Scene::new(setting, source.tpoints(), queues),
        events: LookaheadEvents::new(events, noted).peekable(),
        passed: PassStats {
            begin: kernel.map(|kernel| kernel.start).unwrap_or_default(),
            ..PassStats::default()
        },
        last_event: BootNanos(0),
    };
    if let Some(trace) = &source.trace {
        let problems = trace.for_each(|record| {
            reading.count();
            let at = source.ticker.at(record.tsc);
            passing.events_until(at, consumer);
            passing.count_record(at);
            let keep = |data: &mut RequestLabels, related: Option<&RequestLabels>| {
                fields.note(record, data, related);
            };
            passing
                .scene
                .record(record, &fields.context, at, consumer, keep);
            ControlFlow::Continue(())
        });
        passing.passed.problems = problems;
    }
    passing.finish(kernel, source.trace.is_none().then_some(reading), consumer)
}

/// Pass in progress.
struct PassRun<E: Iterator<Item = Result<KernelEvent, String>>> {
    scene: Scene<RequestLabels>,
    events: Peekable<E>,
    passed: PassStats,
    last_event: BootNanos,
}

impl<E: Iterator<Item = Result<KernelEvent, String>>> PassRun<E> {
    /// Hands out the events up to a time.
    fn events_until(&mut self, at: BootNanos, consumer: &mut impl Consumer<RequestLabels>) {
        while let Some(Ok(event)) = self
            .events
            .next_if(|event| event.as_ref().is_ok_and(|event| event.at <= at))
        {
            self.event(&event, consumer);
        }
    }

    fn event(&mut self, event: &KernelEvent, consumer: &mut impl Consumer<RequestLabels>) {
        self.last_event = self.last_event.max(event.at);
        self.passed.count_event(event);
        self.scene.event(event, consumer);
    }

    fn count_record(&mut self, at: BootNanos) {
        let passed = &mut self.passed;
        passed.records += 1;
        passed.end = passed.end.max(at);
        passed.last_record = passed.last_record.max(at);
        passed.begin = if passed.records == 1 {
            at
        } else {
            passed.begin.min(at)
        };
    }

    /// Hands out the remaining events; without records that is all of them, counted in `reading`.
    fn finish(
        mut self,
        kernel: Option<&Kernel>,
        mut reading: Option<Reading>,
        consumer: &mut impl Consumer<RequestLabels>,
    ) -> PassStats {
        while let Some(event) = self.events.next() {
            reading.iter_mut().for_each(Reading::count);
            match event {
                Ok(event) => self.event(&event, consumer),
                Err(cut) => self.passed.cut = Some(cut),
            }
        }
        let Self {
            scene,
            mut passed,
            last_event,
            ..
        } = self;
        passed.unseen = scene.unseen();
        passed.left_out = scene.left_out();
        passed.end = passed
            .end
            .max(kernel.and_then(|kernel| kernel.end).unwrap_or_default());
        passed.start = kernel.map_or(passed.begin, |kernel| kernel.start.max(passed.begin));
        let is_early = kernel.is_some_and(|kernel| !kernel.has_last) || passed.cut.is_some();
        passed.events_end = (is_early && passed.events > 0).then_some(last_event);
        scene.finish(passed.end, consumer);
        passed
    }
}

impl PassStats {
    fn count_event(&mut self, event: &KernelEvent) {
        self.events += 1;
        self.end = self.end.max(event.at);
        if let scene::EventKind::Lost { count, .. } = event.kind {
            self.lost = self.lost.saturating_add(count);
        }
    }

    /// Returns the nanoseconds from the origin of printed times.
    pub fn after_start(&self, at: BootNanos) -> u64 {
        at.0.saturating_sub(self.start.0)
    }
}
