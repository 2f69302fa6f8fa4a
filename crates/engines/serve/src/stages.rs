//! From the records of a trace that goes on to stages, as `dptrace latency` has them: the time between two records of an object
//! belongs to the stage between their tracepoints. Here it counts when the object is over.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use objects::{Annotator, ObjectSpec};
use records::Context;
use requests::Excluded;
use scene::{Life, Lives};
use spdk_trace::{Lcore, ObjectName, Record, TickRate, Ticks, Tpoint, Trace};
use text::printable;
use timeline::words::kind;

use super::groups::{Finished, Groups, Stage, StageId, WHOLE};
use super::naming::{Named, Naming, unknown};

/// Objects that are followed; of more, those that began longest ago are no longer.
const MOST_LIVES: usize = 1 << 15;
/// Records of one object that are kept: of more, the rest is left out.
const MOST_RECORDS: usize = 64;

/// What is kept of an object.
struct Seen {
    first: u16,
    named: Option<Named>,
    size: u32,
    records: Vec<Mark>,
}

/// What is kept of a record: its tracepoint, its lcore and its time.
type Mark = (u16, Lcore, Ticks);

/// An object that is over.
struct Over {
    named: Option<Named>,
    first: u16,
    end: Ticks,
    name: ObjectName,
    size: u32,
    /// Where its stages end in the list of all.
    until: usize,
}

/// What was found and is not counted yet.
#[derive(Default)]
struct Found {
    objects: Vec<Over>,
    /// Between which tracepoints, whose, and how long.
    stages: Vec<((u16, u16), Lcore, u64)>,
    excluded: u64,
    lost: u64,
}

/// What was counted beside the times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aside {
    /// Requests that wait by design.
    pub(crate) excluded: u64,
    /// Objects in whose time slots were lost.
    pub(crate) lost: u64,
}

/// When ticks were which time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) ticks: Ticks,
    /// Nanoseconds since 1970.
    pub(crate) utc: u64,
    pub(crate) rate: TickRate,
}

/// Follows all objects of a trace.
pub(crate) struct Stages {
    lives: Lives<Seen>,
    naming: Naming,
    names: Vec<(u16, String)>,
    /// Numbers of stages, by their tracepoints.
    ids: HashMap<(u16, u16), StageId, RandomState>,
    spare: Vec<Vec<Mark>>,
    found: Found,
}

impl Stages {
    /// For a trace with these tracepoints.
    pub(crate) fn new(tpoints: &[Tpoint], naming: Naming) -> Self {
        Self {
            lives: Lives::new(tpoints),
            naming,
            names: tpoints.iter().map(|tpoint| (tpoint.id, tpoint.name.clone())).collect(),
            ids: HashMap::default(),
            spare: Vec::new(),
            found: Found::default(),
        }
    }

    /// More is known of connections now.
    pub(crate) fn renew(&mut self) {
        self.naming.renew();
    }

    /// Takes the next record in the order of time.
    pub(crate) fn record(
        &mut self,
        record: &Record<'_>,
        context: &Context<'_>,
        group: impl FnOnce(super::groups::Key) -> super::groups::GroupId,
    ) {
        let is_part = record.related.is_some();
        let inherited = if is_part { self.lives.related(record).and_then(|life| life.kept.named) } else { None };
        let spare = &mut self.spare;
        let Some(passed) = self.lives.record(record, |_| Seen {
            first: record.tpoint.id,
            named: None,
            size: 0,
            records: spare.pop().unwrap_or_default(),
        }) else {
            return;
        };
        let (over, is_last) = (passed.over, passed.is_last);
        let seen = &mut passed.life.kept;
        if seen.records.len() < MOST_RECORDS {
            seen.records.push((record.tpoint.id, record.lcore, record.tsc));
        }
        seen.size = seen.size.max(record.size);
        if seen.named.is_none() {
            seen.named = self.naming.named(record, context, group).or(inherited);
        }
        if let Some(over) = over {
            self.over(over);
        }
        if is_last && let Some(life) = self.lives.end(record) {
            self.over(life);
        }
    }

    /// Takes the stages of an object that is over.
    fn over(&mut self, life: Life<Seen>) {
        let is_unanswered = life.is_unanswered();
        let Life { name, begin, until: end, lcore, is_torn, is_part, records, kept: mut seen, .. } = life;
        let found = &mut self.found;
        let is_admin = seen.named.and_then(|named| named.is_admin);
        let waits = Excluded::of(is_admin, is_unanswered).is_some();
        if is_torn {
            found.lost += 1;
        } else if waits {
            found.excluded += u64::from(!is_part);
        } else if records > 1 {
            let span = |from: Ticks, to: Ticks| to.0.saturating_sub(from.0);
            let pairs =
                seen.records.windows(2).map(|pair| ((pair[0].0, pair[1].0), pair[1].1, span(pair[0].2, pair[1].2)));
            found.stages.extend(pairs);
            if !is_part {
                found.stages.push(((u16::MAX, u16::MAX), lcore, span(begin, end)));
            }
            let (named, first, size, until) = (seen.named, seen.first, seen.size, found.stages.len());
            found.objects.push(Over { named, first, end, name, size, until });
        }
        seen.records.clear();
        self.spare.push(seen.records);
    }

    /// How many objects are over and not counted yet.
    pub(crate) fn waiting(&self) -> usize {
        self.found.objects.len()
    }

    /// Counts what was found.
    pub(crate) fn count(&mut self, groups: &mut Groups, now: Now) -> Aside {
        let found = std::mem::take(&mut self.found);
        let (mut begin, mut stages) = (0, Vec::new());
        for over in &found.objects {
            let group = match over.named {
                Some(named) => named.group,
                None => unknown(groups, self.naming.transport(over.first)),
            };
            stages.clear();
            for (tpoints, lcore, ticks) in &found.stages[begin..over.until] {
                let id = match self.ids.get(tpoints) {
                    Some(id) => *id,
                    None => *self.ids.entry(*tpoints).or_insert(stage(groups, &self.names, *tpoints, over.first)),
                };
                stages.push(Stage { id, nanos: now.rate.nanos(Ticks(*ticks)).0, lcore: *lcore });
            }
            begin = over.until;
            let ago = now.rate.nanos(Ticks(now.ticks.0.saturating_sub(over.end.0))).0;
            let utc = now.utc.saturating_sub(ago);
            groups.finish(&Finished { group, utc, name: over.name, size: over.size, stages: &stages });
        }
        let aside = Aside { excluded: found.excluded, lost: found.lost };
        self.found = found;
        self.found.clear();
        if self.naming.has_forgotten(groups.forgotten) {
            self.naming.renew();
        }
        aside
    }

    /// Drops what is followed for nothing, when there is much: objects of which no end came.
    pub(crate) fn forget(&mut self, before: Ticks) {
        if self.lives.len() > MOST_LIVES {
            self.lives.forget(before);
        }
        self.spare.truncate(1024);
    }
}

impl Found {
    fn clear(&mut self) {
        self.objects.clear();
        self.stages.clear();
        (self.excluded, self.lost) = (0, 0);
    }
}

/// The number of the stage between these tracepoints, of an object that the tracepoint `first` creates.
fn stage(groups: &mut Groups, names: &[(u16, String)], (from, to): (u16, u16), first: u16) -> StageId {
    if (from, to) == (u16::MAX, u16::MAX) {
        return WHOLE;
    }
    let name = |id| names.iter().find(|(it, _)| *it == id).map_or("?", |(_, name)| name.as_str());
    let [from, to, first] = [from, to, first].map(|id| printable::text(name(id).as_bytes()));
    groups.stage(&format!("{from} -> {to}"), kind(&first))
}

/// Returns the times of a trace's requests over one transport, and the slowest of them with its name, as exemplars have it: for the test
/// that holds all commands to one answer.
#[doc(hidden)]
pub fn requests_of(
    trace: &Trace,
    annotator: &Annotator,
    specs: &[ObjectSpec],
    transport: &str,
) -> anyhow::Result<(metrics::Histogram, Option<(u64, String)>)> {
    let (tpoints, rate) = (trace.tpoints().all(), trace.tick_rate());
    let limits =
        super::limits::Limits { connections: 100, with_stages: 100, threads: 1, targets: 1, cpus: 1, forget: 10 };
    let mut groups = Groups::new(limits);
    let mut stages = Stages::new(tpoints, Naming::new(specs, tpoints)?);
    let context = Context { rate, annotator: Some(annotator) };
    trace.for_each(|record| {
        stages.record(record, &context, |key| groups.id(key));
        ControlFlow::Continue(())
    });
    stages.count(&mut groups, Now { ticks: Ticks(0), utc: 0, rate });
    groups.second();
    let (mut times, mut slowest) = (metrics::Histogram::default(), None);
    for group in groups.shown().into_iter().filter(|group| group.key.transport == transport) {
        for (_, cell) in group.cells.iter().filter(|(id, _)| *id == WHOLE) {
            times.merge(&cell.recent.all());
            slowest = slowest.max(cell.slowest().map(|slow| (slow.nanos, slow.name.to_string())));
        }
    }
    Ok((times, slowest))
}

#[cfg(test)]
mod tests {
    use objects::built_in;
    use spdk_trace::RawTrace;
    use testkit::{Era, Workload};

    use super::*;
    use latency::figures::figures;

    /// The same trace, whose times `dptrace latency` knows to three digits.
    #[test]
    fn percentiles_are_those_of_latency() {
        let load = Workload { requests: 3_000, connections: 8, ..Workload::new(Era::F) };
        let trace = spdk_trace::Trace::Raw(RawTrace::read(load.generate().file.bytes.as_slice()).unwrap());
        let (specs, tpoints, rate) = (built_in().unwrap(), trace.tpoints().all(), trace.tick_rate());
        let limits =
            crate::limits::Limits { connections: 100, with_stages: 100, threads: 1, targets: 1, cpus: 1, forget: 10 };
        let mut groups = Groups::new(limits);
        let mut stages = Stages::new(tpoints, Naming::new(&specs, tpoints).unwrap());
        let context = Context { rate, annotator: None };
        trace.for_each(|record| {
            stages.record(record, &context, |key| groups.id(key));
            std::ops::ControlFlow::Continue(())
        });
        stages.count(&mut groups, Now { ticks: Ticks(0), utc: 0, rate });
        groups.second();
        let mut compared = 0;
        for kind in figures(&trace, None, rate, None, &specs, |_| true, &observer::Observer::silent()).unwrap().groups {
            for stage in kind.stages {
                let name = format!("{} -> {}", stage.from, stage.to);
                let mut ours = metrics::Histogram::default();
                for group in groups.shown() {
                    let of_stage = group.cells.iter().filter(|(id, _)| groups.stage_name(*id) == name);
                    of_stage.for_each(|(_, cell)| ours.merge(&cell.recent.all()));
                }
                // Requests that wait by design are in `latency`'s, and stages beyond those that have names.
                if ours.count().abs_diff(stage.figures.count) * 50 > stage.figures.count || stage.figures.count < 1000 {
                    continue;
                }
                for (quantile, theirs) in [0.5, 0.9, 0.99].into_iter().zip(stage.figures.quantiles) {
                    let ours = ours.quantile(quantile).unwrap() as f64;
                    assert!((ours / theirs as f64 - 1.0).abs() < 0.05, "{name} {quantile}: {ours}, not {theirs}");
                    compared += 1;
                }
            }
        }
        assert!(compared >= 12, "{compared}");
    }
}
