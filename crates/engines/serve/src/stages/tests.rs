//! Tests of the stages of requests, on a written trace.

use objects::{ObjectSpec, built_in};
use spdk_trace::RawTrace;
use testkit::{Era, Workload};

use super::*;
use latency::figures::figures;

/// Counts the stages of a trace.
fn counted(trace: &spdk_trace::Trace, specs: &[ObjectSpec]) -> Groups {
    let (tpoints, rate) = (trace.tpoints().all(), trace.tick_rate());
    let limits = crate::limits::Limits {
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
        ConnectionResolver::new(specs, tpoints).unwrap(),
        Queues::new(specs).unwrap(),
    );
    let context = Context {
        rate,
        annotator: None,
    };
    trace.for_each(|record| {
        stages.record(record, &context, |key| groups.id(key));
        std::ops::ControlFlow::Continue(())
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
    groups
}

/// Returns the times of all stages of that name.
fn times_of(groups: &Groups, name: &str) -> metrics::Histogram {
    let mut times = metrics::Histogram::default();
    for group in groups.shown() {
        let of_stage = group
            .cells
            .iter()
            .filter(|(id, _)| groups.stage_name(*id) == name);
        of_stage.for_each(|(_, cell)| times.merge(&cell.recent.all()));
    }
    times
}

/// Checks against the times of the same trace from `dptrace latency`, which have three digits.
#[test]
fn percentiles_are_those_of_latency() {
    let load = Workload {
        requests: 3_000,
        connections: 8,
        ..Workload::new(Era::F)
    };
    let trace =
        spdk_trace::Trace::Raw(RawTrace::read(load.generate().file.bytes.as_slice()).unwrap());
    let (specs, rate) = (built_in().unwrap(), trace.tick_rate());
    let groups = counted(&trace, &specs);
    let mut compared = 0;
    for kind in figures(
        &trace,
        None,
        rate,
        None,
        &specs,
        |_| true,
        &observer::Observer::silent(),
    )
    .unwrap()
    .groups
    {
        for stage in kind.stages {
            let name = format!("{} -> {}", stage.from, stage.to);
            let ours = times_of(&groups, &name);
            // Requests that wait by design are in `latency`'s numbers, and so are stages beyond
            // those that have names.
            if ours.count().abs_diff(stage.figures.count) * 50 > stage.figures.count
                || stage.figures.count < 1000
            {
                continue;
            }
            for (quantile, theirs) in [0.5, 0.9, 0.99].into_iter().zip(stage.figures.quantiles) {
                let ours = ours.quantile(quantile).unwrap() as f64;
                assert!(
                    (ours / theirs as f64 - 1.0).abs() < 0.05,
                    "{name} {quantile}: {ours}, not {theirs}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 12, "{compared}");
}
