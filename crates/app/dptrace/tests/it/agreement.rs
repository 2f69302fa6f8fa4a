//! All commands that follow requests agree on them: how many there are, how long they took, which was the slowest. On real traces.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use live_objects::{annotate_quietly, know_owners};
use objects::{Annotator, ObjectSpec, built_in};
use records::Context;
use requests::Queues;
use spdk_trace::{RawTrace, Record, Ticks, Trace};

/// Figures of the requests of hosts in a trace, as a command has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Requests {
    count: u64,
    /// 99th percentile of their lengths, in nanoseconds.
    p99: u64,
    /// Length of the slowest one, in nanoseconds.
    longest: u64,
    /// Name of the slowest one, if the command has it, and only one took so long.
    slowest: Option<String>,
}

/// A trace of a real target, with the recording of its probes.
struct RealTrace {
    path: PathBuf,
    specs: Vec<ObjectSpec>,
    trace: Trace,
    recording: String,
    annotator: Annotator,
}

impl RealTrace {
    fn read(path: &Path) -> Self {
        let specs = built_in().unwrap();
        let trace = Trace::Raw(RawTrace::read(&std::fs::read(path).unwrap()[..]).unwrap());
        let recording =
            std::fs::read_to_string(path.with_extension("bpftraces")).unwrap_or_default();
        let mut annotator = annotate_quietly(&recording, specs.clone(), trace.tpoints());
        know_owners(&mut annotator, &trace, false);
        Self {
            path: path.to_owned(),
            specs,
            trace,
            recording,
            annotator,
        }
    }

    /// Reads the trace once more.
    fn again(&self) -> Trace {
        Trace::Raw(RawTrace::read(&std::fs::read(&self.path).unwrap()[..]).unwrap())
    }

    /// Hands out all records.
    fn each(&self, mut each: impl FnMut(&Record<'_>, &Context<'_>)) {
        let context = Context {
            rate: self.trace.tick_rate(),
            annotator: Some(&self.annotator),
        };
        self.trace.for_each(|record| {
            each(record, &context);
            ControlFlow::Continue(())
        });
    }

    /// Returns the tracepoint that creates the requests of hosts.
    fn first_tpoint(&self) -> u16 {
        let mut tpoints = self.trace.tpoints().all().iter();
        tpoints
            .find(|tpoint| tpoint.name == "TCP_REQ_NEW")
            .unwrap()
            .id
    }
}

/// Returns the requests of hosts as those that take at least a tick.
fn watched(real: &RealTrace) -> Requests {
    let queues = Queues::new(&real.specs).unwrap();
    let mut detector = watch::detect::Detector::new(real.trace.tpoints().all(), None, queues, 1);
    real.each(|record, context| detector.record(record, context));
    let (found, first, rate) = (detector.take(), real.first_tpoint(), real.trace.tick_rate());
    let of_hosts = found.iter().filter(|slow| slow.wanted.first == first);
    let mut lengths: Vec<u64> = of_hosts
        .map(|slow| rate.nanos(Ticks(slow.length())).0)
        .collect();
    lengths.sort_unstable();
    let p99 = stats::sorted_quantile(&lengths, 0.99).unwrap();
    Requests {
        count: lengths.len() as u64,
        p99,
        longest: lengths[lengths.len() - 1],
        slowest: None,
    }
}

/// Returns the requests of hosts as histograms and exemplars have them.
fn served(real: &RealTrace) -> Requests {
    let (times, slowest) =
        serve::requests_of(&real.trace, &real.annotator, &real.specs, "TCP").unwrap();
    let (longest, name) = slowest.unwrap();
    Requests {
        count: times.count(),
        p99: times.quantile(0.99).unwrap(),
        longest,
        slowest: Some(name),
    }
}

/// Returns the requests of hosts as one second has them.
fn topped(real: &RealTrace) -> Requests {
    let traffic = top_feed::requests_of(&real.trace, &real.annotator, &real.specs).unwrap();
    let slowest = traffic
        .connections
        .iter()
        .flat_map(|connection| &connection.slowest)
        .max_by_key(|slow| slow.nanos);
    let whole = &traffic.stages[0].times;
    let name = slowest.map(|request| request.name.clone());
    Requests {
        count: whole.count(),
        p99: whole.quantile(0.99),
        longest: whole.max(),
        slowest: name,
    }
}

/// Returns the requests of hosts as tables and the list of the slowest have them.
fn tabled(real: &RealTrace) -> Requests {
    let queues = Queues::new(&real.specs).unwrap();
    let question = latency::stages::Query {
        slowest: usize::MAX,
        ..latency::stages::Query::default()
    };
    let (tpoints, rate) = (real.trace.tpoints().all(), real.trace.tick_rate());
    let mut tracker = latency::stages::Tracker::new(question, queues, tpoints, rate);
    real.each(|record, context| tracker.record(record, context));
    let (latencies, first) = (tracker.finish_all(), real.first_tpoint());
    let of_hosts =
        |subject: &latency::stages::Subject| subject.first == first && subject.excluded.is_none();
    let (_, times) = latencies
        .subjects
        .iter()
        .find(|(subject, _)| of_hosts(subject))
        .unwrap();
    let lives = latencies
        .slowest
        .iter()
        .filter(|life| !life.unfinished && life.records[0].0 == first);
    let slowest: Vec<_> = lives
        .filter(|life| latency::stages::length(life, real.trace.tick_rate()) == times.whole.max())
        .collect();
    let slowest = if let [only] = &slowest[..] {
        Some(only.name.to_string())
    } else {
        None
    };
    Requests {
        count: times.whole.count(),
        p99: times.whole.quantile(0.99),
        longest: times.whole.max(),
        slowest,
    }
}

/// Returns the requests of hosts as a report has them, and a summary by connections.
fn summarized(real: &RealTrace) -> Requests {
    let (trace, annotator) = (&real.trace, Some(&real.annotator));
    let found = latency::figures::figures(
        trace,
        None,
        trace.tick_rate(),
        annotator,
        &real.specs,
        |_| true,
        &observer::Observer::silent(),
    )
    .unwrap();
    let is_of_hosts = |group: &page::Group| group.first == "TCP_REQ_NEW";
    let group = found
        .groups
        .iter()
        .find(|group| is_of_hosts(group))
        .unwrap();
    let connections = found.connections.iter().filter(|connection| {
        is_of_hosts(&found.groups[connection.group]) && connection.summary.excluded.is_none()
    });
    let counts: u64 = connections.map(|connection| connection.whole.count).sum();
    assert_eq!(counts, group.whole.count, "connections, and all together");
    Requests {
        count: group.whole.count,
        p99: group.whole.quantiles[2],
        longest: group.whole.max,
        slowest: None,
    }
}

/// Returns the requests of hosts as verdicts and the list of the slowest have them.
fn joined(real: &RealTrace) -> Requests {
    let inputs = timeline::inputs::Inputs::from_trace(
        real.again(),
        &real.recording,
        &observer::Observer::silent(),
    )
    .unwrap();
    let (mut first, _) = timeline::first::survey(&inputs, usize::MAX);
    let mut second = timeline::second::SecondPass::new(&mut first, usize::MAX, 0);
    inputs.pass("second of two passes", inputs.source.setting(), &mut second);
    let tpoint = real.first_tpoint();
    let times: Vec<_> = first
        .times
        .iter()
        .filter(|(subject, _)| subject.first == tpoint)
        .collect();
    let [(_, times)] = &times[..] else {
        panic!("{} subjects", times.len())
    };
    let slowest = second
        .take_slowest()
        .into_iter()
        .find(|request| request.first() == tpoint);
    Requests {
        count: times.whole.count(),
        p99: times.whole.quantile(0.99),
        longest: times.whole.max(),
        slowest: slowest.map(|request| request.name.to_string()),
    }
}

#[test]
fn commands_agree_on_the_requests_of_real_traces() {
    for real in testkit::real_traces()
        .iter()
        .map(|path| RealTrace::read(path))
    {
        let expected = tabled(&real);
        assert!(expected.count > 0, "{}", real.path.display());
        let others = [
            ("latency --summary, report", summarized(&real), 1_000),
            ("timeline", joined(&real), 1_000),
            ("watch", watched(&real), 1_000),
            ("top", topped(&real), 64),
            // The bounds of its buckets are those that Prometheus gets.
            ("serve", served(&real), 16),
        ];
        for (command, requests, part) in others {
            let what = format!(
                "{}: {command}: {requests:?}, not {expected:?}",
                real.path.display()
            );
            assert_eq!(
                (requests.count, requests.longest),
                (expected.count, expected.longest),
                "{what}"
            );
            let names = requests.slowest.as_ref().zip(expected.slowest.as_ref());
            assert!(names.is_none_or(|(ours, theirs)| ours == theirs), "{what}");
            // Each histogram knows a time to a part of it.
            assert!(
                requests.p99.abs_diff(expected.p99) <= expected.p99 / part,
                "{what}"
            );
        }
    }
}
