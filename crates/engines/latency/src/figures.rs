//! Figures of a trace for a report: those of `latency --json` for each kind of object, and of
//! `latency --summary --json` for each connection.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;

use capture::{Meta, expected_records};
use objects::{Annotator, ObjectSpec};
use observer::{Observer, Progress, Reading};
use ordering::Order as _;
use page::{Connection, Figures, Group, StageFigures, Summary};
use records::Context;
use requests::{AddressHistory, CONNECTION, Queues, field};
use spdk_trace::{TickRate, Ticks, Trace};
use stats::Histogram;
use timeline::words::kind;

use super::quantiles::QUANTILES;
use super::stages::{Latencies, Query, Subject, Times, Tracker};
use super::tables::in_order;

/// Limit on the connections kept.
const MAX_CONNECTIONS: usize = 2_000;
/// Limit on the connections kept with their stages.
const MAX_CONNECTIONS_WITH_STAGES: usize = 40;

/// Figures of a trace.
#[derive(Default)]
pub struct TraceFigures {
    /// Kinds of objects, the one with the most total time first.
    pub groups: Vec<Group>,
    /// Connections, the slowest first; those that wait by design come after the others.
    pub connections: Vec<Connection>,
    /// Number of connections that are not kept.
    pub left_out: u64,
}

/// Reads a trace once; it may be a capture's. Uses only records for whose times `counts` returns
/// true: objects created before are in no figure.
pub fn figures(
    trace: &Trace,
    meta: Option<&Meta>,
    rate: TickRate,
    annotator: Option<&Annotator>,
    specs: &[ObjectSpec],
    counts: impl Fn(Ticks) -> bool,
    observer: &Observer,
) -> anyhow::Result<TraceFigures> {
    let tpoints = trace.tpoints().all();
    let queues = Queues::new(specs)?;
    let question = |by, tails| Query {
        by,
        tails,
        reused: AddressHistory::new(specs, tpoints),
        ..Query::default()
    };
    let of_connections = question(vec![field::parse(CONNECTION, specs)?], true);
    let mut all = Tracker::new(question(Vec::new(), false), queues.clone(), tpoints, rate);
    let mut each = Tracker::new(of_connections, queues, tpoints, rate);
    let context = Context {
        rate: trace.tick_rate(),
        annotator,
    };
    let mut reading = Reading::new(
        Progress::new(observer),
        "figures, before two passes",
        expected_records(trace, meta),
    );
    trace.for_each(|record| {
        reading.count();
        let counts = counts(record.tsc);
        for tracker in [&mut all, &mut each] {
            tracker.observe(record);
            if counts {
                tracker.record(record, &context);
            }
        }
        ControlFlow::Continue(())
    });
    drop(reading);
    let naming = TracepointNamer { trace };
    Ok(naming.found(all.finish_all(), each.finish_all()))
}

/// Names tracepoints.
struct TracepointNamer<'a> {
    trace: &'a Trace,
}

impl TracepointNamer<'_> {
    fn found(&self, all: Latencies, each: Latencies) -> TraceFigures {
        let mut subjects = all.subjects;
        // Requests that wait by design have figures only if there are no others.
        let others = subjects
            .iter()
            .filter(|(subject, _)| subject.excluded.is_none());
        let others: HashSet<_> = others
            .map(|(subject, _)| (subject.prefix, subject.first))
            .collect();
        subjects
            .retain(|(it, _)| it.excluded.is_none() || !others.contains(&(it.prefix, it.first)));
        subjects.order_by_key(|(subject, times)| (Reverse(times.whole.sum()), subject.clone()));
        let groups = subjects
            .iter()
            .map(|(subject, times)| self.group(subject, times))
            .collect();
        let mut rows = each.subjects;
        let p99 = |times: &Times| times.whole.quantile(0.99);
        rows.sort_by_cached_key(|(subject, times)| {
            (
                subject.excluded,
                Reverse((p99(times), times.whole.max(), Reverse(subject.clone()))),
            )
        });
        let left_out = rows.len().saturating_sub(MAX_CONNECTIONS) as u64;
        rows.truncate(MAX_CONNECTIONS);
        let place = |subject: &Subject| {
            let matches = |(of, _): &(Subject, Times)| {
                (of.prefix, of.first) == (subject.prefix, subject.first)
            };
            subjects.iter().position(matches)
        };
        let rows = rows
            .iter()
            .enumerate()
            .filter_map(|(rank, (subject, times))| {
                Some(self.connection(
                    subject,
                    times,
                    place(subject)?,
                    rank < MAX_CONNECTIONS_WITH_STAGES,
                ))
            });
        TraceFigures {
            groups,
            connections: rows.collect(),
            left_out,
        }
    }

    fn tpoint(&self, id: u16) -> String {
        self.trace
            .tpoints()
            .get(id)
            .map_or("?", |tpoint| tpoint.name.as_str())
            .to_owned()
    }

    fn group(&self, subject: &Subject, times: &Times) -> Group {
        let first = self.tpoint(subject.first);
        Group {
            name: kind(&first).to_owned(),
            first,
            prefix: subject.prefix,
            whole: spread(&times.whole, true),
            unfinished: times.unfinished,
            stages: self.stages(times, true),
        }
    }

    fn stages(&self, times: &Times, with_curve: bool) -> Vec<StageFigures> {
        let one = |((from, to), stage): (&(u16, u16), &super::stages::Stage)| StageFigures {
            from: self.tpoint(*from),
            to: self.tpoint(*to),
            figures: spread(&stage.spread, with_curve),
        };
        in_order(times).into_iter().map(one).collect()
    }

    fn connection(
        &self,
        subject: &Subject,
        times: &Times,
        group: usize,
        has_stages: bool,
    ) -> Connection {
        let whole = spread(&times.whole, has_stages);
        let most = times.tail.largest(whole.quantiles[2]);
        let most = most.map(|it| (self.tpoint(it.stage.0), self.tpoint(it.stage.1), it.share));
        let excluded = subject.excluded.map(|excluded| excluded.word().to_owned());
        Connection {
            name: subject.group.first().cloned().flatten().map(String::from),
            group,
            whole,
            unfinished: times.unfinished,
            summary: Summary { most, excluded },
            lost: None,
            stages: if has_stages {
                self.stages(times, false)
            } else {
                Vec::new()
            },
        }
    }
}

fn spread(of: &Histogram, with_curve: bool) -> Figures {
    // A tenth of a nine per step, as long as a step means at least one more value.
    let steps = if with_curve && of.count() > 0 {
        (of.count() as f64).log10() * 10.0
    } else {
        -1.0
    };
    let nines: Vec<f64> = (0..=steps as i64)
        .filter(|_| steps >= 0.0)
        .map(|step| step as f64 / 10.0)
        .collect();
    let curve: Vec<f64> = nines.iter().map(|nines| 1.0 - 10f64.powf(-nines)).collect();
    Figures {
        count: of.count(),
        mean: of.mean(),
        quantiles: of.quantiles(&QUANTILES.map(|(_, quantile)| quantile)),
        max: of.max(),
        curve: if curve.is_empty() {
            Vec::new()
        } else {
            of.all_quantiles(&curve)
        },
    }
}
