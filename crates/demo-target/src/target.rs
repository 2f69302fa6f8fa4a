//! The run from beginning to end: threads, trace file, truth.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use spdk_trace_writer::nvmf::Stages;

use crate::clock::{self, ticks};
use crate::error::DemoError;
use crate::hits::{self, Measured};
use crate::names::Names;
use crate::options::Options;
use crate::probe_table::Hits;
use crate::reactor::{REACTORS, Reactor, Shared, scale};
use crate::stop::{self, Stop};
use crate::trace_file::{ERA, Ring, TraceFile};
use crate::truth::{End, QpairTruth, Truth, VERSION};

/// What a run leaves behind.
struct Outcome {
    hits: Hits,
    qpairs: Vec<QpairTruth>,
    ended: End,
    nanos_per_hit: Option<f64>,
}

/// Runs the target as the options say; says on standard error who it is, and is quiet from then on.
///
/// Catches SIGINT, SIGTERM and SIGHUP for the rest of the process's life, so it can run once in a process.
pub fn run(options: &Options) -> Result<(), DemoError> {
    let (stop, wakeups) = stop::listen()?;
    let tick_rate = clock::tick_rate();
    let trace = if options.no_trace_file || options.hits.is_some() {
        None
    } else {
        Some(TraceFile::create(options, tick_rate, REACTORS)?)
    };
    introduce(options, trace.as_ref());
    if options.wait {
        wakeups.wait_for_input()?;
    }
    let begun = ticks();
    let outcome = match options.hits {
        Some(wanted) => measure(options, wanted, &stop)?,
        None => behave(options, &stop, trace.as_ref(), tick_rate)?,
    };
    match &options.truth {
        Some(path) => truth(options, trace.as_ref(), tick_rate, begun, outcome).write(path),
        None => Ok(()),
    }
}

fn truth(options: &Options, trace: Option<&TraceFile>, tsc_rate: u64, first_tsc: u64, outcome: Outcome) -> Truth {
    Truth {
        version: VERSION,
        pid: std::process::id(),
        seed: options.seed,
        tsc_rate,
        trace_file: trace.map(|trace| trace.path().display().to_string()),
        ended: outcome.ended,
        first_tsc,
        last_tsc: ticks(),
        requests_started: outcome.hits.started(),
        requests_completed: outcome.hits.completed(),
        nanos_per_hit: outcome.nanos_per_hit,
        hits: counts(options, &outcome.hits),
        qpairs: outcome.qpairs,
    }
}

/// The one line at the start, by which a test knows that everything is there to attach to.
fn introduce(options: &Options, trace: Option<&TraceFile>) {
    let trace = trace.map_or("no trace file".to_owned(), |trace| format!("trace file {}", trace.path().display()));
    let waiting = if options.wait { ", waiting for a line on standard input" } else { "" };
    // If standard error is closed, nobody reads the line.
    let _ = writeln!(std::io::stderr(), "demo-target: pid {}, {trace}{waiting}", std::process::id());
}

fn counts(options: &Options, hits: &Hits) -> BTreeMap<String, u64> {
    let hundred = u64::from(options.hits.is_none());
    let named = hits.named().map(|(name, count)| (name.to_owned(), count));
    named.chain(crate::probes100::NAMES.iter().map(|name| (format!("demo100:{name}"), hundred))).collect()
}

/// On a thread of the name that reactors have, for scripts that ask for it.
fn measure(options: &Options, wanted: u64, stop: &Stop) -> Result<Outcome, DemoError> {
    let Measured { hits, nanos_per_hit, in_time } = thread::scope(|scope| {
        let name = reactor_name(0);
        let started =
            thread::Builder::new().name(name.clone()).spawn_scoped(scope, || hits::measure(options, wanted, stop));
        let started = started.map_err(|source| DemoError::Thread { name: name.clone(), source })?;
        started.join().map_err(|_| DemoError::Panic { name })?
    })?;
    let ended = why(stop, in_time);
    Ok(Outcome { hits, qpairs: Vec::new(), ended, nanos_per_hit: Some(nanos_per_hit) })
}

/// Why the run ended, where `done` says that all was done that was asked for.
fn why(stop: &Stop, done: bool) -> End {
    match (done, stop.is_asked()) {
        (true, _) => End::Requests,
        (false, true) => End::Signal,
        (false, false) => End::Time,
    }
}

fn reactor_name(lcore: u32) -> String {
    format!("reactor_{lcore}")
}

/// Lets the reactors run.
fn behave(options: &Options, stop: &Stop, trace: Option<&TraceFile>, tick_rate: u64) -> Result<Outcome, DemoError> {
    let ring = |lcore| trace.map_or_else(|| Ok(Ring::none(lcore)), |trace| trace.ring(lcore));
    let rings = (0..REACTORS).map(ring).collect::<Result<Vec<_>, _>>()?;
    let begin = ticks();
    let nanos = u64::try_from(options.duration.as_nanos()).unwrap_or(u64::MAX);
    let shared = Shared {
        options,
        stop,
        names: Names::new(options.seed),
        stages: Stages::new(ERA),
        phase: Barrier::new(REACTORS as usize),
        tick_rate,
        begin,
        deadline: begin.saturating_add(scale(nanos, tick_rate, 1_000_000_000)),
    };
    let reactors = (0..).zip(rings).map(|(lcore, ring)| Reactor::new(&shared, lcore, ring));
    let reactors = live(reactors.collect())?;

    let done = reactors.iter().all(Reactor::is_done);
    let mut outcome =
        Outcome { hits: Hits::new(false), qpairs: Vec::new(), ended: why(stop, done), nanos_per_hit: None };
    for reactor in reactors {
        outcome.hits.add(&reactor.hits);
        outcome.qpairs.extend(reactor.qpairs);
        let path: Option<PathBuf> = trace.map(|trace| trace.path().to_owned());
        if let Some(error) = reactor.ring.into_error(path) {
            return Err(error);
        }
    }
    Ok(outcome)
}

/// Reactors wait for each other, so one that panics must not leave the other waiting.
struct AllOrNone;

impl Drop for AllOrNone {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// Each reactor on its own thread. Threads are only started when all can be: they wait for each other.
fn live(reactors: Vec<Reactor<'_>>) -> Result<Vec<Reactor<'_>>, DemoError> {
    let go = std::sync::OnceLock::new();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failed = None;
        for mut reactor in reactors {
            let name = reactor_name(reactor.lcore);
            let go = &go;
            let body = move || {
                let _together = AllOrNone;
                if *go.wait() {
                    reactor.start_up();
                    reactor.run();
                    reactor.shut_down();
                }
                reactor
            };
            match thread::Builder::new().name(name.clone()).spawn_scoped(scope, body) {
                Ok(thread) => threads.push((name, thread)),
                Err(source) => failed = Some(DemoError::Thread { name, source }),
            }
        }
        // It is only set here.
        let _ = go.set(failed.is_none());
        let joined = threads.into_iter().map(|(name, thread)| thread.join().map_err(|_| DemoError::Panic { name }));
        let joined = joined.collect::<Result<Vec<_>, _>>();
        failed.map_or(joined, Err)
    })
}
