//! Watch of a live trace: keeps the last moments of it and of the kernel in memory, and writes
//! captures of slow requests.
//!
//! [`watch`] runs until there is a reason to stop. It hands each line to its caller, and notes to
//! an [`Observer`].
#![forbid(unsafe_code)]

pub mod detect;
mod kernel;
mod known;
mod line;
mod sample;
mod shelf;
mod trace;
mod watching;
mod window;
mod writing;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use capture_recorder::{
    Kernel, Objects, ProcessSet, RequestSource, Rings, SMALL_RING, facts, hand_over_folder,
    process_name,
};
use errors::usage;
use host::Watch;
use objects::ObjectSpec;
use observer::Observer;
use requests::Queues;
use scene::Experience;
use screen::counted;
use spdk_trace::{TickRate, Tpoint, TpointSet};
use text::patterns;
use text::printable::path as printable;
use trace_source::cpus;

use detect::Detector;
use kernel::KernelHistory;
use known::ObjectNamer;
use sample::Sampling;
use shelf::CaptureStore;
use trace::WatchedTrace;
pub use watching::Totals;
use watching::{Setting, WatchSession};
use window::Gate;
use writing::{Writer, WriterContext, note_if_kept};

/// Multiple of the slow time after which an open request is hanging, if it is also open for
/// [`MIN_HANGING_TIME`].
const HANGING_FACTOR: u32 = 10;
/// Minimum time after which an open request is hanging.
const MIN_HANGING_TIME: Duration = Duration::from_secs(1);
/// Minimum time between captures of hanging requests on unknown queues, where requests may wait by
/// design.
const UNKNOWN_CAPTURE_INTERVAL: Duration = Duration::from_mins(1);

/// Options of a watch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processes to watch; the first stands for all of them.
    pub processes: ProcessSet,
    /// Source of their requests.
    pub requests: RequestSource,
    /// Kinds of its objects.
    pub specs: Vec<ObjectSpec>,
    /// Patterns of the tracepoints that create the requests to watch; all, if there is none.
    pub tpoints: Vec<String>,
    /// Folder of the captures, if one is named.
    pub folder: Option<PathBuf>,
    /// Number of captures that stay in the folder.
    pub keep: usize,
    /// Limit on the bytes of all captures in the folder.
    pub max_bytes: u64,
    /// Time from which a request is slow.
    pub slow: Duration,
    /// Time before a slow request that its capture has.
    pub before: Duration,
    /// Shortest time between two captures.
    pub every: Duration,
    /// Time after which the watch ends, if it does by itself.
    pub after: Option<Duration>,
    /// Bytes of the ring buffer for the kernel's events; `None` without these.
    pub kernel_ring: Option<u32>,
    /// True if probes of the process are attached to.
    pub has_probes: bool,
    /// True for lines of JSON.
    pub as_json: bool,
}

/// Watches a process until there is a reason to stop. `print` gets a line for each slow request,
/// and returns an error if nobody reads them.
///
/// # Errors
///
/// Fails if there is nothing to watch, or the folder cannot be used.
pub fn watch(
    options: &Options,
    print: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    observer: &Observer,
) -> anyhow::Result<Totals> {
    let (pid, specs) = (options.processes.first(), options.specs.clone());
    sys::allocator::keep_little();
    // Before any thread is started, since threads inherit it.
    let place = cpus::keep_off(options.processes.pids.iter().copied(), observer);
    let rings = Rings::open_source(options.requests, &options.processes)
        .context("there is nothing to watch")?;
    let tpoints = rings.follower.tpoints().all().to_vec();
    let wanted = wanted(&options.tpoints, &tpoints)?;
    let (dir, shelf, created) = open_store(options)?;
    let mut meta = facts::gather(pid);
    let (objects, kernel) = start_recorders(options, &mut meta, observer);
    rings.describe(&mut meta);
    let lcores = rings
        .thread_rings()
        .map(|(lcore, name)| (lcore, name.to_owned()));
    let lcores = lcores.collect();
    let known = ObjectNamer::new(objects, specs.clone(), rings.follower.tpoints(), observer);
    let setting = options.setting();
    let slow = ticks(setting.slow, rings.follower.tick_rate());
    let queues = Queues::new(&specs)?;
    let source = rings.source.again()?;
    let trace = WatchedTrace::start(rings, place.has_room())?;
    observer.handle_stop_requests()?;
    let process = Watch::new(pid, std::iter::empty())?;
    announce(pid, setting.slow, &dir, observer);
    // The reader of the rings has its priority by now.
    place.give_way_for(setting.after);
    meta.begin = facts::now();
    let watching = WatchSession {
        detector: Detector::new(&tpoints, wanted, queues, slow),
        gate: Gate::new(setting.before, options.every, UNKNOWN_CAPTURE_INTERVAL),
        writer: Writer::start(WriterContext {
            shelf,
            source,
            specs,
            pid,
            json: options.as_json,
            print: Box::new(print),
            observer: observer.clone(),
            experience: Experience::default(),
        })?,
        kernel: kernel.map(KernelHistory::new).transpose()?,
        held: None,
        tpoints: tpoints
            .into_iter()
            .map(|tpoint| (tpoint.id, tpoint.name))
            .collect(),
        trace,
        known,
        meta,
        lcores,
        setting,
        sampling: Sampling::new(),
        pending: Vec::new(),
        observer: observer.clone(),
    };
    // Memory that was used for attaching is not needed any more.
    sys::allocator::trim();
    let totals = watching.until_end(&process);
    // Until now captures were written there.
    let given = created.as_ref().map_or(Ok(()), hand_over_folder);
    note_if_kept(given, &dir, observer);
    totals
}

/// Notes that the watch begins.
fn announce(pid: u32, slow: u64, dir: &Path, observer: &Observer) {
    observer.note(&format!(
        "watching process {pid} for requests of {} and more: captures go to {}; Ctrl-C ends it",
        screen::time(slow),
        printable(dir)
    ));
}

impl Options {
    /// Returns the folder of the captures: by default, it has the name of the process.
    pub fn dir(&self) -> PathBuf {
        let default = || format!("{}.watch", process_name(self.processes.first())).into();
        self.folder.clone().unwrap_or_else(default)
    }
}

/// Opens the folder of the captures, without those that were left unfinished. The open folder is
/// returned if it was created.
fn open_store(options: &Options) -> anyhow::Result<(PathBuf, CaptureStore, Option<File>)> {
    let dir = options.dir();
    let (shelf, created) = CaptureStore::open(&dir, options.keep, options.max_bytes)?;
    shelf
        .clear_unfinished()
        .with_context(|| format!("reading the folder {}", printable(&dir)))?;
    Ok((dir, shelf, created))
}

/// Starts to record objects and the kernel's events, and states in the facts for captures which of
/// them are missing.
fn start_recorders(
    options: &Options,
    meta: &mut capture::Meta,
    observer: &Observer,
) -> (Option<Objects>, Option<Kernel>) {
    let (pid, specs) = (options.processes.first(), &options.specs);
    // Reading debug information takes its time: nothing else goes on meanwhile.
    let objects = (options.requests == RequestSource::Trace).then(|| {
        Objects::start(pid, specs, options.has_probes, SMALL_RING, observer)
            .inspect_err(|error| missing(meta, "objects", error, observer))
            .ok()
    });
    let objects = objects.flatten();
    let kernel = match options.kernel_ring {
        None => Err(anyhow::anyhow!("--no-kernel was given")),
        Some(bytes) => Kernel::start(&options.processes, bytes),
    };
    let kernel = kernel
        .inspect_err(|error| missing(meta, "kernel", error, observer))
        .ok();
    meta.captured = ::capture::CapturedParts {
        trace: true,
        kernel: kernel.is_some(),
        objects: objects.is_some(),
    };
    (objects, kernel)
}

impl Options {
    fn setting(&self) -> Setting {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let open = (self.slow.saturating_mul(HANGING_FACTOR)).max(MIN_HANGING_TIME);
        Setting {
            pid: self.processes.first(),
            slow: nanos(self.slow),
            before: nanos(self.before),
            open: nanos(open),
            after: self.after,
        }
    }
}

/// Notes that a part is missing, and why.
fn missing(meta: &mut capture::Meta, part: &str, error: &anyhow::Error, observer: &Observer) {
    let what = if part == "kernel" {
        "the kernel's events, so nobody can be blamed"
    } else {
        "objects"
    };
    observer.note(&format!("not watched: {what}: {}", observer.explain(error)));
    meta.miss(part, &format!("{error:#}"));
}

/// Returns a little less than that time in ticks by the stated rate, which is rounded: the measured
/// rate decides.
fn ticks(nanos: u64, rate: TickRate) -> u64 {
    let ticks = rate.ticks(nanos).0;
    ticks - ticks.div_ceil(100)
}

/// Returns the tracepoints whose objects are asked for; `None` for all.
fn wanted(globs: &[String], tpoints: &[Tpoint]) -> anyhow::Result<Option<TpointSet>> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut wanted = TpointSet::default();
    for glob in globs {
        let creating = || tpoints.iter().filter(|tpoint| tpoint.new_object);
        if !requests::select::add_matching(&mut wanted, glob, creating())? {
            let near = patterns::hint(glob, creating().map(|tpoint| tpoint.name.as_str()));
            let all: Vec<_> = creating().map(|tpoint| tpoint.name.as_str()).collect();
            let hint = if near.is_empty() {
                format!("; those that do are {}", all.join(", "))
            } else {
                near
            };
            return Err(usage(format!(
                "no tracepoint that creates an object is called {glob}{hint}"
            )));
        }
    }
    Ok(Some(wanted))
}

/// Reports the end of a watch.
pub fn report(totals: &Totals, observer: &Observer) {
    let lost = |lost: u64, thing: &str| {
        if lost == 0 {
            "none lost".to_owned()
        } else {
            format!("{} lost", counted(lost, thing))
        }
    };
    let without = match totals.without {
        0 => String::new(),
        without => format!(" ({without} slow after the last one)"),
    };
    let parts = [
        format!(
            "{} slow of {}",
            totals.slow,
            counted(totals.requests, "request")
        ),
        counted(totals.captures, "capture") + &without,
        format!(
            "{}, {}",
            counted(totals.records, "record"),
            lost(totals.slots_lost, "slot")
        ),
        format!(
            "{} of the kernel, {}",
            counted(totals.events, "event"),
            lost(totals.events_lost, "event")
        ),
    ];
    observer.note(&format!("{}: {}", totals.why, parts.join("; ")));
    if let (times @ 1.., nanos) = totals.away {
        observer.note(&format!(
            "threads that write rings were away {} ({} in all): requests that arrived meanwhile waited unread, and no record shows it",
            screen::times(times),
            screen::time(nanos)
        ));
    }
    if totals.unsure > 0 {
        observer.note(&format!(
            "{} that {} slow {} not counted: slots were lost meanwhile, so that two requests may look like one",
            counted(totals.unsure, "request"),
            screen::plural(totals.unsure, "looks", "look"),
            screen::plural(totals.unsure, "is", "are")
        ));
    }
    if totals.slots_lost > 0 {
        observer.note(
            "slots were lost because dptrace read the rings too late: keep a CPU free for it, or use larger rings (start the \
             application with a larger --num-trace-entries)",
        );
    }
    if totals.events_lost > 0 {
        observer.note("events of the kernel were lost because the ring buffer was full: --buffer makes it larger");
    }
}
