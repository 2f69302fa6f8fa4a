//! Stages from the records of a live trace, as `dptrace latency` has them: the time between two
//! records of an object belongs to the stage between their tracepoints. Here it counts when the
//! object is over.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use objects::{Annotator, ObjectSpec};
use records::Context;
use requests::{ObjectTracker, Outcome, Queues, TrackedObject};
use spdk_trace::{Lcore, ObjectName, Record, TickRate, Ticks, Tpoint, Trace};
use text::printable;
use timeline::words::kind;

use super::groups::{FinishedRequest, GroupId, Groups, Key, Stage, StageId, WHOLE};
use super::naming::{ConnectionResolver, unknown};

/// Limit on the followed objects; beyond it, those that began longest ago are dropped.
const MAX_OPEN_OBJECTS: usize = 1 << 15;
/// Limit on the records of one object that are kept; further ones are left out.
const MAX_RECORDS_PER_OBJECT: usize = 64;

/// Data that is kept of an object.
struct OpenObject {
    first: u16,
    group: Option<GroupId>,
    size: u32,
    records: Vec<Mark>,
}

/// Data that is kept of a record: its tracepoint, its lcore and its time.
type Mark = (u16, Lcore, Ticks);

/// Object that is over.
struct FinishedObject {
    group: Option<GroupId>,
    first: u16,
    end: Ticks,
    name: ObjectName,
    size: u32,
    /// End of its stages in the list of all.
    until: usize,
}

/// Finished objects that are not counted yet.
#[derive(Default)]
struct FinishedBatch {
    objects: Vec<FinishedObject>,
    /// Tracepoints, lcore and length in ticks of each stage.
    stages: Vec<((u16, u16), Lcore, u64)>,
    excluded: u64,
    lost: u64,
}

/// Numbers that are counted beside the times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExcludedCounts {
    /// Requests that are excluded ([`requests::Excluded`]).
    pub(crate) excluded: u64,
    /// Objects in whose time slots were lost.
    pub(crate) lost: u64,
}

/// One moment in ticks and in time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub(crate) ticks: Ticks,
    /// Nanoseconds since 1970.
    pub(crate) utc: u64,
    pub(crate) rate: TickRate,
}

/// Tracker of all objects of a trace.
pub(crate) struct Stages {
    objects: ObjectTracker<OpenObject>,
    naming: ConnectionResolver,
    names: Vec<(u16, String)>,
    /// Numbers of stages, by their tracepoints.
    ids: HashMap<(u16, u16), StageId, RandomState>,
    spare: Vec<Vec<Mark>>,
    found: FinishedBatch,
}

impl Stages {
    /// Creates a tracker for a trace with these tracepoints.
    pub(crate) fn new(tpoints: &[Tpoint], naming: ConnectionResolver, queues: Queues) -> Self {
        Self {
            objects: ObjectTracker::new(tpoints, queues),
            naming,
            names: tpoints
                .iter()
                .map(|tpoint| (tpoint.id, tpoint.name.clone()))
                .collect(),
            ids: HashMap::default(),
            spare: Vec::new(),
            found: FinishedBatch::default(),
        }
    }

    /// Looks up connections again: more is known of them now.
    pub(crate) fn renew(&mut self) {
        self.naming.renew();
    }

    /// Takes the next record in the order of time.
    pub(crate) fn record(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        group: impl FnOnce(Key) -> GroupId,
    ) {
        let inherited = self
            .objects
            .related(record)
            .and_then(|object| object.data.group);
        let spare = &mut self.spare;
        let Some(step) = self.objects.record(record, context, |_| OpenObject {
            first: record.tpoint.id,
            group: None,
            size: 0,
            records: spare.pop().unwrap_or_default(),
        }) else {
            return;
        };
        let seen = &mut step.object.data;
        if seen.records.len() < MAX_RECORDS_PER_OBJECT {
            seen.records
                .push((record.tpoint.id, record.lcore, record.tsc));
        }
        seen.size = seen.size.max(record.size);
        if seen.group.is_none() {
            seen.group = self.naming.named(record, context, group).or(inherited);
        }
        while let Some(object) = self.objects.pop_ended() {
            self.over(object);
        }
    }

    /// Takes the stages of an object that is over.
    fn over(&mut self, object: TrackedObject<OpenObject>) {
        match object.outcome() {
            Outcome::Torn => self.found.lost += 1,
            Outcome::Excluded(_) => self.found.excluded += u64::from(!object.is_part),
            Outcome::Point => {}
            Outcome::Timed => self.found.add(&object),
        }
        let mut records = object.data.records;
        records.clear();
        self.spare.push(records);
    }

    /// Returns the number of objects that are over and not counted yet.
    pub(crate) fn waiting(&self) -> usize {
        self.found.objects.len()
    }

    /// Counts the finished objects.
    pub(crate) fn count(&mut self, groups: &mut Groups, now: ClockReading) -> ExcludedCounts {
        let found = std::mem::take(&mut self.found);
        let (mut begin, mut stages) = (0, Vec::new());
        for over in &found.objects {
            let transport = self.naming.transport(over.first);
            let group = over.group.unwrap_or_else(|| unknown(groups, transport));
            stages.clear();
            for (tpoints, lcore, ticks) in &found.stages[begin..over.until] {
                let id = match self.ids.get(tpoints) {
                    Some(id) => *id,
                    None => *self.ids.entry(*tpoints).or_insert(stage(
                        groups,
                        &self.names,
                        *tpoints,
                        over.first,
                    )),
                };
                stages.push(Stage {
                    id,
                    nanos: now.rate.nanos(Ticks(*ticks)).0,
                    lcore: *lcore,
                });
            }
            begin = over.until;
            let ago = now
                .rate
                .nanos(Ticks(now.ticks.0.saturating_sub(over.end.0)))
                .0;
            let utc = now.utc.saturating_sub(ago);
            groups.finish(&FinishedRequest {
                group,
                utc,
                name: over.name,
                size: over.size,
                stages: &stages,
            });
        }
        let aside = ExcludedCounts {
            excluded: found.excluded,
            lost: found.lost,
        };
        self.found = found;
        self.found.clear();
        if self.naming.has_forgotten(groups.forgotten) {
            self.naming.renew();
        }
        aside
    }

    /// Drops objects that began before that time if there are many: no end came of these.
    pub(crate) fn forget(&mut self, before: Ticks) {
        if self.objects.len() > MAX_OPEN_OBJECTS {
            self.objects.forget(before);
        }
        self.spare.truncate(1024);
    }
}

impl FinishedBatch {
    /// Adds the stages of an object that has a time.
    fn add(&mut self, object: &TrackedObject<OpenObject>) {
        let TrackedObject {
            name,
            begin,
            until: end,
            lcore,
            data: seen,
            ..
        } = object;
        let span = |from: Ticks, to: Ticks| to.0.saturating_sub(from.0);
        let pairs = seen.records.windows(2);
        self.stages.extend(pairs.map(|pair| {
            (
                (pair[0].0, pair[1].0),
                pair[1].1,
                span(pair[0].2, pair[1].2),
            )
        }));
        if !object.is_part {
            self.stages
                .push(((u16::MAX, u16::MAX), *lcore, span(*begin, *end)));
        }
        let (group, first, size) = (seen.group, seen.first, seen.size);
        let until = self.stages.len();
        self.objects.push(FinishedObject {
            group,
            first,
            end: *end,
            name: *name,
            size,
            until,
        });
    }

    fn clear(&mut self) {
        self.objects.clear();
        self.stages.clear();
        (self.excluded, self.lost) = (0, 0);
    }
}

/// Returns the number of the stage between these tracepoints, for an object that the tracepoint
/// `first` creates.
fn stage(
    groups: &mut Groups,
    names: &[(u16, String)],
    (from, to): (u16, u16),
    first: u16,
) -> StageId {
    if (from, to) == (u16::MAX, u16::MAX) {
        return WHOLE;
    }
    let name = |id| {
        names
            .iter()
            .find(|(it, _)| *it == id)
            .map_or("?", |(_, name)| name.as_str())
    };
    let [from, to, first] = [from, to, first].map(|id| printable::text(name(id).as_bytes()));
    groups.stage(&format!("{from} -> {to}"), kind(&first))
}

/// Returns the times of a trace's requests over one transport, and the slowest of them with its
/// name, as in exemplars. A test uses it to check that all commands give one answer.
#[doc(hidden)]
pub fn requests_of(
    trace: &Trace,
    annotator: &Annotator,
    specs: &[ObjectSpec],
    transport: &str,
) -> anyhow::Result<(metrics::Histogram, Option<(u64, String)>)> {
    let (tpoints, rate) = (trace.tpoints().all(), trace.tick_rate());
    let limits = super::limits::Limits {
        connections: 100,
        with_stages: 100,
        threads: 1,
        targets: 1,
        cpus: 1,
        forget: 10,
    };
    let mut groups = Groups::new(limits);
    let mut stages = Stages::new(
        tpoints,
        ConnectionResolver::new(specs, tpoints)?,
        Queues::new(specs)?,
    );
    let context = Context {
        rate,
        annotator: Some(annotator),
    };
    trace.for_each(|record| {
        stages.record(record, &context, |key| groups.id(key));
        ControlFlow::Continue(())
    });
    stages.count(
        &mut groups,
        ClockReading {
            ticks: Ticks(0),
            utc: 0,
            rate,
        },
    );
    groups.second();
    let (mut times, mut slowest) = (metrics::Histogram::default(), None);
    for group in groups
        .shown()
        .into_iter()
        .filter(|group| group.key.transport == transport)
    {
        for (_, cell) in group.cells.iter().filter(|(id, _)| *id == WHOLE) {
            times.merge(&cell.recent.all());
            slowest = slowest.max(
                cell.slowest()
                    .map(|slow| (slow.nanos, slow.name.to_string())),
            );
        }
    }
    Ok((times, slowest))
}

#[cfg(test)]
mod tests;
