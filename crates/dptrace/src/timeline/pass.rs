//! One pass over all records and events, put together in the order of time.

use std::ops::ControlFlow;

use spdk_trace::{Problems, Record};
use timeline::{BootNanos, Consumer, Foreseen, KernelEvent, Scene, Setting};

use super::source::Source;
use crate::interrupt;
use crate::trace::field::{Context, Field};

/// Records after which a signal is looked for.
const PIECE: u64 = 4_096;

/// What is kept of each request.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// The values that it is grouped by.
    pub(super) group: Vec<Option<Box<str>>>,
    /// Whose it is.
    pub(super) owner: Option<Box<str>>,
}

/// What is asked of each request.
pub(super) struct Fields<'a> {
    /// Of each, the first that it has.
    pub(super) by: &'a [Vec<Field>],
    /// Whose it is: the first of these that it has.
    pub(super) owner: &'a [Field],
    pub(super) context: Context<'a>,
}

impl Fields<'_> {
    fn note(&self, record: &Record<'_>, kept: &mut Kept, related: Option<&Kept>) {
        if kept.group.len() < self.by.len() {
            kept.group.resize(self.by.len(), None);
        }
        let value = |field: &Field| field.value(record, &self.context).map(|value| value.into_owned().into_boxed_str());
        for (at, (found, fields)) in kept.group.iter_mut().zip(self.by).enumerate() {
            if found.is_none() {
                // An I/O belongs to the connection of its request.
                *found = related.and_then(|it| it.group.get(at)?.clone()).or_else(|| fields.iter().find_map(value));
            }
        }
        if kept.owner.is_none() {
            kept.owner = related.and_then(|it| it.owner.clone()).or_else(|| self.owner.iter().find_map(value));
        }
    }
}

/// What a pass found beside what it handed out.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) problems: Problems,
    /// Records of objects whose creation was not seen, and all.
    pub(super) unseen: u64,
    pub(super) records: u64,
    pub(super) events: u64,
    /// Events that were lost.
    pub(super) lost: u64,
    /// The time of the last event.
    pub(super) known: BootNanos,
    /// Why there are no more events.
    pub(super) cut: Option<String>,
    /// The time of the last record or event.
    pub(super) end: BootNanos,
    /// The time of the first record.
    pub(super) begin: BootNanos,
}

/// Hands everything to a consumer. `noted` is what later events show.
pub(super) fn pass<C: Consumer<Kept>>(
    source: &Source,
    setting: Setting,
    noted: &[KernelEvent],
    fields: &Fields<'_>,
    consumer: &mut C,
) -> Passed {
    let mut scene = Scene::new(setting, source.tpoints());
    let mut passed = Passed::default();
    let none = || Box::new(std::iter::empty()) as Box<dyn Iterator<Item = _>>;
    let events = source.kernel.as_ref().map_or_else(none, |kernel| kernel.events.events());
    let mut events = Foreseen::new(events, noted.to_vec()).peekable();
    if let Some(trace) = &source.trace {
        passed.problems = trace.for_each(|record| {
            passed.records += 1;
            if passed.records.is_multiple_of(PIECE) {
                interrupt::step();
            }
            let at = source.ticker.at(record.tsc);
            while let Some(Ok(event)) = events.next_if(|event| event.as_ref().is_ok_and(|event| event.at <= at)) {
                passed.count(&event);
                scene.event(&event, consumer);
            }
            passed.end = passed.end.max(at);
            passed.begin = if passed.records == 1 { at } else { passed.begin.min(at) };
            scene.record(record, at, consumer, |kept, related| fields.note(record, kept, related));
            ControlFlow::Continue(())
        });
    }
    for event in events {
        match event {
            Ok(event) => {
                passed.count(&event);
                scene.event(&event, consumer);
            }
            Err(cut) => passed.cut = Some(cut),
        }
    }
    passed.unseen = scene.unseen();
    let end = source.kernel.as_ref().and_then(|kernel| kernel.end).unwrap_or_default();
    passed.end = passed.end.max(end);
    scene.finish(passed.end, consumer);
    passed
}

impl Passed {
    fn count(&mut self, event: &KernelEvent) {
        self.events += 1;
        self.end = self.end.max(event.at);
        self.known = self.known.max(event.at);
        if let timeline::EventKind::Lost { count, .. } = event.kind {
            self.lost = self.lost.saturating_add(count);
        }
    }
}
