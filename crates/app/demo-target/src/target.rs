//! The run from beginning to end: threads, trace file, truth.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use spdk_trace_writer::nvmf::Stages;

use crate::clock::{self, ticks};
use crate::error::DemoError;
use crate::hits::{self, HitCost};
use crate::inject::{self, GapTruth, InjectionTruth, InjectorState, StageTable};
use crate::memory::World;
use crate::names::Names;
use crate::options::Options;
use crate::probe_table::Hits;
use crate::reactor::{REACTORS, Reactor, Shared, in_ticks};
use crate::stop::{self, Stop, Wakeups};
use crate::trace_file::{Ring, TraceFile};
use crate::truth::{End, ObjectTruth, QpairTruth, Truth, VERSION};

/// Inputs of a run.
struct Run<'a> {
    options: &'a Options,
    trace: Option<&'a TraceFile>,
    wakeups: &'a Wakeups,
    tick_rate: u64,
    /// Start of the run, in ticks.
    begun: u64,
}

/// Results of a run.
struct Outcome {
    objects: Vec<ObjectTruth>,
    hits: Hits,
    qpairs: Vec<QpairTruth>,
    injections: Vec<InjectionTruth>,
    gaps: Vec<GapTruth>,
    ended: End,
    nanos_per_hit: Option<f64>,
}

/// Runs the target with these options. Prints one line about itself on standard error, and is quiet
/// from then on.
///
/// Catches SIGINT, SIGTERM and SIGHUP for the rest of the process's life, so it can run once in a
/// process.
pub fn run(options: &Options) -> Result<(), DemoError> {
    let (stop, wakeups) = stop::listen()?;
    let tick_rate = clock::tick_rate();
    let trace = if options.no_trace_file || options.hits.is_some() {
        None
    } else {
        Some(TraceFile::create(options, tick_rate, REACTORS)?)
    };
    if !options.wait_connected {
        introduce(options, trace.as_ref());
    }
    if options.wait {
        wakeups.wait_for_input()?;
    }
    let run = Run {
        options,
        trace: trace.as_ref(),
        wakeups: &wakeups,
        tick_rate,
        begun: ticks(),
    };
    let outcome = match options.hits {
        Some(wanted) => measure(options, wanted, &stop)?,
        None => behave(&run, &stop)?,
    };
    run.write(outcome)
}

impl Run<'_> {
    /// Writes the truth, if requested.
    fn write(&self, outcome: Outcome) -> Result<(), DemoError> {
        match &self.options.truth {
            Some(path) => truth(self, outcome).write(path),
            None => Ok(()),
        }
    }
}

fn truth(run: &Run<'_>, outcome: Outcome) -> Truth {
    let options = run.options;
    Truth {
        version: VERSION,
        pid: std::process::id(),
        seed: options.seed,
        tsc_rate: run.tick_rate,
        trace_file: run.trace.map(|trace| trace.path().display().to_string()),
        ended: outcome.ended,
        first_tsc: run.begun,
        last_tsc: ticks(),
        era: options.era.version.to_owned(),
        objects: outcome.objects,
        requests_started: outcome.hits.started(),
        requests_completed: outcome.hits.completed(),
        nanos_per_hit: outcome.nanos_per_hit,
        hits: counts(options, &outcome.hits),
        qpairs: outcome.qpairs,
        injections: outcome.injections,
        gaps: outcome.gaps,
    }
}

/// Prints the line at the start, which shows a test that everything is there to attach to.
fn introduce(options: &Options, trace: Option<&TraceFile>) {
    let trace = trace.map_or("no trace file".to_owned(), |trace| {
        format!("trace file {}", trace.path().display())
    });
    let waiting = if options.wait || options.wait_connected {
        ", waiting for a line on standard input"
    } else {
        ""
    };
    // If standard error is closed, nobody reads the line.
    let _ = writeln!(
        std::io::stderr(),
        "demo-target: pid {}, {trace}{waiting}",
        std::process::id()
    );
}

fn counts(options: &Options, hits: &Hits) -> BTreeMap<String, u64> {
    let hundred = u64::from(options.hits.is_none());
    let named = hits.named().map(|(name, count)| (name.to_owned(), count));
    named
        .chain(
            crate::probes100::NAMES
                .iter()
                .map(|name| (format!("demo100:{name}"), hundred)),
        )
        .collect()
}

/// Measures on a thread with a reactor's name, for scripts that filter by it.
fn measure(options: &Options, wanted: u64, stop: &Stop) -> Result<Outcome, DemoError> {
    let HitCost {
        hits,
        nanos_per_hit,
        in_time,
    } = thread::scope(|scope| {
        let name = reactor_name(0);
        let started = thread::Builder::new()
            .name(name.clone())
            .spawn_scoped(scope, || hits::measure(options, wanted, stop));
        let started = started.map_err(|source| DemoError::Thread {
            name: name.clone(),
            source,
        })?;
        started.join().map_err(|_| DemoError::Panic { name })?
    })?;
    let ended = end_reason(stop, in_time);
    Ok(Outcome {
        hits,
        ended,
        nanos_per_hit: Some(nanos_per_hit),
        ..Outcome::new(options)
    })
}

/// Returns the reason for the end; `done` means that all the requested work was done.
fn end_reason(stop: &Stop, done: bool) -> End {
    match (done, stop.is_asked()) {
        (true, _) => End::Requests,
        (false, true) => End::Signal,
        (false, false) => End::Time,
    }
}

fn reactor_name(lcore: u32) -> String {
    format!("reactor_{lcore}")
}

/// Runs the reactors.
fn behave(run: &Run<'_>, stop: &Stop) -> Result<Outcome, DemoError> {
    let Run {
        options,
        trace,
        tick_rate,
        ..
    } = *run;
    let ring = |lcore| trace.map_or_else(|| Ok(Ring::none(lcore)), |trace| trace.ring(lcore));
    let rings = (0..REACTORS).map(ring).collect::<Result<Vec<_>, _>>()?;
    let names = Names::new(options.seed);
    let stages = Stages::new(options.trace_era());
    let shared = Shared {
        options,
        stop,
        table: StageTable::new(options.trace_era(), &stages),
        stages,
        common: InjectorState::prepare(options),
        phase: Barrier::new(REACTORS as usize),
        tick_rate,
        begin: AtomicU64::new(0),
        deadline: AtomicU64::new(0),
        world: World::new(options.era, &names),
        names,
        connected: Barrier::new(REACTORS as usize + 1),
        early: Mutex::default(),
    };
    shared.begin();
    let reactors = (0..)
        .zip(rings)
        .map(|(lcore, ring)| Reactor::new(&shared, lcore, ring));
    let reactors = live(reactors.collect(), || connected(run, &shared))?;

    let done = reactors.iter().all(Reactor::is_done);
    let mut outcome = Outcome {
        ended: end_reason(stop, done),
        ..Outcome::early(options, &shared.world)
    };
    let mut notes = Vec::new();
    for reactor in reactors {
        outcome.hits.add(&reactor.hits);
        outcome.qpairs.extend(reactor.qpairs);
        notes.push(reactor.notes);
        let path: Option<PathBuf> = trace.map(|trace| trace.path().to_owned());
        if let Some(error) = reactor.ring.into_error(path) {
            return Err(error);
        }
    }
    (outcome.injections, outcome.gaps) =
        inject::merged(notes, in_ticks(options.inject_for, tick_rate));
    Ok(outcome)
}

/// Waits until all hosts are connected, prints that, and lets the requests begin after a line on
/// standard input. Does nothing without `--wait-connected`. Must be called on the main thread.
fn connected(run: &Run<'_>, shared: &Shared<'_>) -> Result<(), DemoError> {
    if !run.options.wait_connected {
        return Ok(());
    }
    shared.connected.wait();
    let qpairs = std::mem::take(&mut *shared.early.lock().unwrap_or_else(PoisonError::into_inner));
    let written = run.write(Outcome {
        qpairs,
        ..Outcome::early(run.options, &shared.world)
    });
    let waited = written.and_then(|()| {
        introduce(run.options, run.trace);
        run.wakeups.wait_for_input()
    });
    if waited.is_err() {
        shared.stop.ask();
    }
    // The time of the run counts from here on.
    shared.begin();
    shared.connected.wait();
    waited
}

impl Outcome {
    /// Creates an empty result.
    fn new(options: &Options) -> Self {
        let (objects, qpairs, injections, gaps) = Default::default();
        Self {
            objects,
            hits: Hits::new(options),
            qpairs,
            injections,
            gaps,
            ended: End::Time,
            nanos_per_hit: None,
        }
    }

    /// Creates the result of a run that has done nothing yet.
    fn early(options: &Options, world: &World) -> Self {
        Self {
            objects: world.fixed.clone(),
            ..Self::new(options)
        }
    }
}

impl Shared<'_> {
    /// Starts the run now.
    pub(crate) fn begin(&self) {
        let begin = ticks();
        let deadline = begin.saturating_add(in_ticks(self.options.duration, self.tick_rate));
        self.begin.store(begin, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
    }
}

/// Guard that aborts the process if a reactor panics: the others would wait for it forever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// Runs each reactor on its own thread. They start only if all threads could be created, as they
/// wait for each other. `meanwhile` runs on the calling thread.
fn live(
    reactors: Vec<Reactor<'_>>,
    meanwhile: impl FnOnce() -> Result<(), DemoError>,
) -> Result<Vec<Reactor<'_>>, DemoError> {
    let go = std::sync::OnceLock::new();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failed = None;
        for mut reactor in reactors {
            let name = reactor_name(reactor.lcore);
            let go = &go;
            let body = move || {
                let _together = AbortOnPanic;
                if *go.wait() {
                    reactor.prepare();
                    reactor.start_up();
                    reactor.connect_all();
                    reactor.run();
                    reactor.shut_down();
                }
                reactor
            };
            match thread::Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, body)
            {
                Ok(thread) => threads.push((name, thread)),
                Err(source) => failed = Some(DemoError::Thread { name, source }),
            }
        }
        // It is only set here.
        let _ = go.set(failed.is_none());
        let meanwhile = if failed.is_none() {
            meanwhile()
        } else {
            Ok(())
        };
        let joined = threads
            .into_iter()
            .map(|(name, thread)| thread.join().map_err(|_| DemoError::Panic { name }));
        let joined = joined.collect::<Result<Vec<_>, _>>();
        failed.or(meanwhile.err()).map_or(joined, Err)
    })
}
