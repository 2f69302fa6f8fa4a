//! `dptrace watch`: a black box that keeps what came last, and writes a capture when a request was slow.

mod detect;
mod kernel;
mod known;
mod line;
mod sample;
mod shelf;
mod trace;
mod watching;
mod window;
mod writing;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use capture_recorder::{Kernel, Objects, Rings, SMALL_RING, facts, process_name};
use clap::Args;
use requests::Queues;
use scene::Experience;
use screen::counted;
use spdk_trace::{TickRate, Tpoint, TpointSet};
use trace_source::cpus;

use crate::capture::{bytes, check_process};
use crate::interrupt::Interrupt;
use crate::messages::{explained, note};
use crate::process::{self, Role, Takes};
use crate::specs::SpecArgs;
use crate::terminal;
use crate::trace::filter::add_matching;
use detect::Detector;
#[cfg(test)]
pub(crate) use detect::requests_of;
use errors::usage;
use host::Watch;
use kernel::KernelPast;
use known::Known;
use sample::Sampling;
use shelf::Shelf;
use text::patterns;
use text::printable::path as printable;
use trace::Watched;
use watching::{Setting, Totals, Watching};
use window::Gate;
use writing::{Desk, Writer};

/// `dptrace watch`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct WatchArgs {
    /// A running process, by its number or name
    #[arg(short, long, value_name = "PID|NAME")]
    pid: Vec<String>,

    /// The same as -p PID|NAME
    #[arg(value_name = "PID|NAME", conflicts_with = "pid")]
    process: Vec<String>,

    /// A request that takes at least this long is slow: 500us, 2ms
    #[arg(long, value_name = "DURATION", value_parser = ::text::duration::parse)]
    slow: Duration,

    /// Only objects that these tracepoints create, such as 'TCP_REQ_*,BDEV_IO_START'
    ///
    /// Default: all but those that belong to another object, as a block device's I/O to its request.
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',')]
    tpoint: Vec<String>,

    /// Capture what came this long before the request began
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = ::text::duration::parse)]
    before: Duration,

    /// The shortest time between two captures
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = ::text::duration::parse)]
    every: Duration,

    /// Stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse)]
    duration: Option<Duration>,

    #[command(flatten)]
    specs: SpecArgs,

    /// Leave out the kernel's events: then nobody can be blamed
    #[arg(long)]
    no_kernel: bool,

    /// Attach to no probes of the process; objects are found in its memory only
    #[arg(long)]
    no_probes: bool,

    /// Size of the ring buffer for the kernel's events, in MiB
    ///
    /// A power of two. The buffer is between the kernel and dptrace: if it is full, events are lost and counted.
    #[arg(long, value_name = "MIB", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,

    /// Write captures to this folder, which is made if it is not there
    ///
    /// Default: NAME.watch in the current directory.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Of the captures in the folder, keep the newest N
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    keep: u32,

    /// The captures in the folder have no more bytes than this: 500M, 2G
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes, help_heading = "Output")]
    max_bytes: u64,

    /// Print one JSON object on each line
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const USAGE: &str = "dptrace watch [OPTIONS] --slow <DURATION> [-p] <PID|NAME>";

const EXAMPLES: &str = "\
Follows the SPDK trace of a process and what the kernel does with its threads, and keeps the last moments in memory. When a \
request was slow, it writes a capture of what came before it until a little after its end, and prints a line: when, which \
request of whom, how long, and who delayed it. A request that does not end gets a line, too, once; so does a thread that \
writes a ring and was away, so that requests waited unread. The captures are read by dptrace timeline, trace and latency. \
The oldest ones are removed; no other file is.

Examples:
  dptrace watch -p nvmf_tgt --slow 500us
  dptrace watch -p PID --slow 2ms --before 20ms -o DIR --keep 100
  dptrace watch -p PID --slow 1ms --tpoint 'BDEV_IO_START' --json
  dptrace timeline CAPTURE                          explain one of them";

const ROLE: Role = Role { command: "watch", takes: Takes::One, starts: false };

/// A request is hanging if it has been open for this number of times the time that is slow,
const OPEN: u32 = 10;
/// and this long at least.
const LEAST_OPEN: Duration = Duration::from_secs(1);
/// The shortest time between captures of requests that hang, if it is not known whether they are to.
const EVERY_UNKNOWN: Duration = Duration::from_mins(1);

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> anyhow::Result<()> {
    if !args.buffer.is_power_of_two() {
        return Err(usage(format!("--buffer {} is not a power of two", args.buffer)));
    }
    let words = [args.pid.as_slice(), &args.process].concat();
    if words.is_empty() {
        return Err(usage("nothing to watch: give -p PID or -p NAME"));
    }
    let pid = process::one(&words, ROLE)?;
    check_process(pid)?;
    let totals = watch(args, pid)?;
    report(&totals);
    match (totals.unheard, totals.failed) {
        (Some(error), _) => Err(error),
        (None, Some(error)) => Err(error.context("not all captures could be written")),
        (None, None) => Ok(()),
    }
}

fn watch(args: &WatchArgs, pid: u32) -> anyhow::Result<Totals> {
    sys::allocator::keep_little();
    let specs = args.specs.resolve()?;
    // Before any thread is started: they inherit it.
    let place = cpus::keep_off(std::iter::once(pid), &terminal::observer());
    let rings = Rings::open(pid).context("there is nothing to watch: no trace of SPDK")?;
    let tpoints = rings.follower.tpoints().all().to_vec();
    let wanted = wanted(&args.tpoint, &tpoints)?;
    let dir = args.output.clone().unwrap_or_else(|| format!("{}.watch", process_name(pid)).into());
    let shelf = Shelf::open(&dir, args.keep as usize, args.max_bytes)?;
    shelf.clear_unfinished().with_context(|| format!("reading the folder {}", printable(&dir)))?;
    let mut meta = facts::gather(pid);
    // Reading debug information takes its time: nothing else goes on meanwhile.
    let objects = Objects::start(pid, &specs, !args.no_probes, SMALL_RING, &terminal::observer());
    let objects = objects.inspect_err(|error| missing(&mut meta, "objects", error)).ok();
    let kernel = if args.no_kernel {
        Err(anyhow::anyhow!("--no-kernel was given"))
    } else {
        Kernel::start(pid, args.buffer << 20)
    };
    let kernel = kernel.inspect_err(|error| missing(&mut meta, "kernel", error)).ok();
    meta.captured = ::capture::Captured { trace: true, kernel: kernel.is_some(), objects: objects.is_some() };
    meta.process.trace_file = Some(facts::path(&rings.path));
    meta.lcores = facts::lcore_threads(rings.follower.lcores(), &meta.process.threads);
    let lcores = rings.follower.lcores().map(|(lcore, name)| (lcore, name.to_owned())).collect();
    let known = Known::new(objects, specs.clone(), rings.follower.tpoints());
    let setting = args.setting(pid);
    let slow = ticks(setting.slow, rings.follower.tick_rate());
    let queues = Queues::new(&specs)?;
    let source = rings.source.again()?;
    let trace = Watched::start(rings, place.has_room())?;
    let interrupt = Interrupt::catch()?;
    let process = Watch::new(pid, std::iter::empty())?;
    note(&format!(
        "watching process {pid} for requests of {} and more: captures go to {}; Ctrl-C ends it",
        screen::time(setting.slow),
        printable(&dir)
    ));
    // The reader of the rings has its priority by now.
    place.give_way_for(setting.after);
    meta.begin = facts::now();
    let watching = Watching {
        detector: Detector::new(&tpoints, wanted, queues, slow),
        gate: Gate::new(setting.before, args.every, EVERY_UNKNOWN),
        writer: Writer::start(Desk { shelf, source, specs, pid, json: args.json, experience: Experience::default() })?,
        kernel: kernel.map(|kernel| KernelPast::new(kernel, pid)),
        tpoints: tpoints.into_iter().map(|tpoint| (tpoint.id, tpoint.name)).collect(),
        trace,
        known,
        meta,
        lcores,
        setting,
        sampling: Sampling::new(),
        pending: Vec::new(),
    };
    // What was read to attach is not needed any more.
    sys::allocator::trim();
    watching.until_end(&process, interrupt)
}

impl WatchArgs {
    fn setting(&self, pid: u32) -> Setting {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let open = (self.slow.saturating_mul(OPEN)).max(LEAST_OPEN);
        Setting { pid, slow: nanos(self.slow), before: nanos(self.before), open: nanos(open), after: self.duration }
    }
}

/// A part that there is not.
fn missing(meta: &mut ::capture::Meta, part: &str, error: &anyhow::Error) {
    let what = if part == "kernel" { "the kernel's events, so nobody can be blamed" } else { "objects" };
    note(&format!("not watched: {what}: {}", explained(error)));
    meta.miss(part, &format!("{error:#}"));
}

/// A little less than that time by the stated rate, which is rounded: the measured one decides.
fn ticks(nanos: u64, rate: TickRate) -> u64 {
    let ticks = rate.ticks(nanos).0;
    ticks - ticks.div_ceil(100)
}

/// By tracepoint: whether the objects that it creates are asked for.
fn wanted(globs: &[String], tpoints: &[Tpoint]) -> anyhow::Result<Option<TpointSet>> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut wanted = TpointSet::default();
    for glob in globs {
        let creating = || tpoints.iter().filter(|tpoint| tpoint.new_object);
        if !add_matching(&mut wanted, glob, creating())? {
            let near = patterns::hint(glob, creating().map(|tpoint| tpoint.name.as_str()));
            let all: Vec<_> = creating().map(|tpoint| tpoint.name.as_str()).collect();
            let hint = if near.is_empty() { format!("; those that do are {}", all.join(", ")) } else { near };
            return Err(usage(format!("no tracepoint that creates an object is called {glob}{hint}")));
        }
    }
    Ok(Some(wanted))
}

/// What came of it.
fn report(totals: &Totals) {
    let lost = |lost: u64, thing: &str| {
        if lost == 0 { "none lost".to_owned() } else { format!("{} lost", counted(lost, thing)) }
    };
    let without = match totals.without {
        0 => String::new(),
        without => format!(" ({without} slow after the last one)"),
    };
    let parts = [
        format!("{} slow of {}", totals.slow, counted(totals.requests, "request")),
        counted(totals.captures, "capture") + &without,
        format!("{}, {}", counted(totals.records, "record"), lost(totals.slots_lost, "slot")),
        format!("{} of the kernel, {}", counted(totals.events, "event"), lost(totals.events_lost, "event")),
    ];
    note(&format!("{}: {}", totals.why, parts.join("; ")));
    if let (times @ 1.., nanos) = totals.away {
        note(&format!(
            "threads that write rings were away {} ({} in all): requests that arrived meanwhile waited unread, and no record shows it",
            if times == 1 { "once".to_owned() } else { counted(times, "time") },
            screen::time(nanos)
        ));
    }
    if totals.unsure > 0 {
        note(&format!(
            "{} that look slow are not counted: slots were lost meanwhile, so that two requests may look like one",
            counted(totals.unsure, "request")
        ));
    }
    if totals.slots_lost > 0 {
        note(
            "slots were lost because dptrace read the rings too late: keep a CPU free for it, or use larger rings (start the \
             application with a larger --num-trace-entries)",
        );
    }
    if totals.events_lost > 0 {
        note("events of the kernel were lost because the ring buffer was full: --buffer makes it larger");
    }
}
