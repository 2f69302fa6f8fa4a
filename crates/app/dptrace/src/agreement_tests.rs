//! All commands that follow requests agree on them: how many there are, how long they took, which was the slowest. On real traces.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use live_objects::{annotate_quietly, know_owners};
use objects::{Annotator, ObjectSpec, built_in};
use records::Context;
use requests::Queues;
use spdk_trace::{RawTrace, Record, Ticks, Trace};

use crate::{latency, timeline};

/// Figures of the requests of hosts in a trace, as a command has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) count: u64,
    /// 99th percentile of their lengths, in nanoseconds.
    pub(crate) p99: u64,
    /// Length of the slowest one, in nanoseconds.
    pub(crate) longest: u64,
    /// Name of the slowest one, if the command has it, and only one took so long.
    pub(crate) slowest: Option<String>,
}

/// A trace of a real target, with the recording of its probes.
pub(crate) struct RealTrace {
    path: PathBuf,
    pub(crate) specs: Vec<ObjectSpec>,
    pub(crate) trace: Trace,
    pub(crate) recording: String,
    pub(crate) annotator: Annotator,
}

impl RealTrace {
    fn read(path: &Path) -> Self {
        let specs = built_in().unwrap();
        let trace = Trace::Raw(RawTrace::read(&std::fs::read(path).unwrap()[..]).unwrap());
        let recording = std::fs::read_to_string(path.with_extension("bpftraces")).unwrap_or_default();
        let mut annotator = annotate_quietly(&recording, specs.clone(), trace.tpoints());
        know_owners(&mut annotator, &trace, false);
        Self { path: path.to_owned(), specs, trace, recording, annotator }
    }

    /// Reads the trace once more.
    pub(crate) fn again(&self) -> Trace {
        Trace::Raw(RawTrace::read(&std::fs::read(&self.path).unwrap()[..]).unwrap())
    }

    /// Hands out all records.
    pub(crate) fn each(&self, mut each: impl FnMut(&Record<'_>, &Context<'_>)) {
        let context = Context { rate: self.trace.tick_rate(), annotator: Some(&self.annotator) };
        self.trace.for_each(|record| {
            each(record, &context);
            ControlFlow::Continue(())
        });
    }

    /// Returns the tracepoint that creates the requests of hosts.
    pub(crate) fn first_tpoint(&self) -> u16 {
        let mut tpoints = self.trace.tpoints().all().iter();
        tpoints.find(|tpoint| tpoint.name == "TCP_REQ_NEW").unwrap().id
    }
}

/// Returns the requests of hosts as those that take at least a tick.
fn watched(real: &RealTrace) -> Requests {
    let queues = Queues::new(&real.specs).unwrap();
    let mut detector = watch::detect::Detector::new(real.trace.tpoints().all(), None, queues, 1);
    real.each(|record, context| detector.record(record, context));
    let (found, first, rate) = (detector.take(), real.first_tpoint(), real.trace.tick_rate());
    let of_hosts = found.iter().filter(|slow| slow.wanted.first == first);
    let mut lengths: Vec<u64> = of_hosts.map(|slow| rate.nanos(Ticks(slow.length())).0).collect();
    lengths.sort_unstable();
    let p99 = lengths[(lengths.len() * 99).div_ceil(100) - 1];
    Requests { count: lengths.len() as u64, p99, longest: lengths[lengths.len() - 1], slowest: None }
}

/// Returns the requests of hosts as histograms and exemplars have them.
fn served(real: &RealTrace) -> Requests {
    let (times, slowest) = serve::requests_of(&real.trace, &real.annotator, &real.specs, "TCP").unwrap();
    let (longest, name) = slowest.unwrap();
    Requests { count: times.count(), p99: times.quantile(0.99).unwrap(), longest, slowest: Some(name) }
}

/// Returns the requests of hosts as one second has them.
fn topped(real: &RealTrace) -> Requests {
    let traffic = top_feed::requests_of(&real.trace, &real.annotator, &real.specs).unwrap();
    let slowest = traffic.connections.iter().flat_map(|connection| &connection.slowest).max_by_key(|slow| slow.nanos);
    let whole = &traffic.stages[0].times;
    let name = slowest.map(|request| request.name.clone());
    Requests { count: whole.count(), p99: whole.quantile(0.99), longest: whole.max(), slowest: name }
}

#[test]
fn commands_agree_on_the_requests_of_real_traces() {
    for real in testkit::real_traces().iter().map(|path| RealTrace::read(path)) {
        let expected = latency::requests_of(&real);
        assert!(expected.count > 0, "{}", real.path.display());
        let others = [
            ("latency --summary, report", latency::summary_of(&real)),
            ("timeline", timeline::requests_of(&real)),
            ("top", topped(&real)),
            ("watch", watched(&real)),
            ("serve", served(&real)),
        ];
        for (command, requests) in others {
            let what = format!("{}: {command}: {requests:?}, not {expected:?}", real.path.display());
            assert_eq!((requests.count, requests.longest), (expected.count, expected.longest), "{what}");
            let names = requests.slowest.as_ref().zip(expected.slowest.as_ref());
            assert!(names.is_none_or(|(ours, theirs)| ours == theirs), "{what}");
            // Histograms of a fixed size know a time to 5 %.
            assert!(requests.p99.abs_diff(expected.p99) <= expected.p99 / 20, "{what}");
        }
    }
}
