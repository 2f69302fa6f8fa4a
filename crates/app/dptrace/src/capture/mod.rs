//! `dptrace capture`: a folder with a process's trace, the kernel's events of its threads, and its
//! objects, over some time or around slow requests.

mod slow;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture_recorder::{
    Folder, Kernel, Limits, Objects, Parts, ProcessSet, RequestSource, Rings, check_room,
};
use clap::Args;
use console::messages::note;
use console::output::{self, Output};
use console::terminal;
use doctor::rights;
use errors::usage;
use live_objects::ObjectSources;
use live_objects::probes::RING_BYTES;
use observer::Observer;
use process_selector::check_process;
use text::shell;
use timeline::inputs::Inputs;
use trace_source::cpus;

use crate::args::process::ProcessArgs;
use crate::args::requests::RequestArgs;
use crate::args::specs::SpecArgs;
use crate::args::{bytes, check_buffer};

use slow::SlowArgs;
pub(crate) use slow::WatchArgs;

/// `dptrace capture`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    process: ProcessArgs,

    #[command(flatten)]
    requests: RequestArgs,

    #[command(flatten)]
    specs: SpecArgs,

    /// Stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse)]
    duration: Option<Duration>,

    /// Do not capture kernel events: only the trace and the objects
    #[arg(long)]
    no_kernel: bool,

    /// Do not attach probes to the process; find objects only in its memory
    #[arg(long)]
    no_probes: bool,

    /// MiB for the ring of kernel events [default: 8, with --slow 2]
    ///
    /// A power of two. The buffer carries events from the kernel to dptrace. If it is full, events
    /// are lost and counted.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: Option<u32>,

    /// Do not print the causes of slow requests at the end
    ///
    /// To find them, the whole capture is read, which takes CPU time.
    #[arg(long, conflicts_with = "slow")]
    no_verdict: bool,

    #[command(flatten)]
    slow: SlowArgs,

    /// Write to this folder, which must not exist
    ///
    /// Default: NAME-PID-DATE.capture in the current directory. Only you can read its files,
    /// because a trace contains the names of hosts and volumes. With --slow, the folder holds the
    /// captures: it is created if it does not exist, and is NAME.watch by default.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Stop before the files exceed this size: 500M, 2G
    ///
    /// Default: half of the free space on that disk, but at least 16 MiB. With --slow, the oldest
    /// captures are removed to stay below this size, by default 1G.
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Output")]
    max_bytes: Option<u64>,
}

const USAGE: &str = "dptrace capture [OPTIONS] [-p] <PID|NAME>";

const EXAMPLES: &str = "\
A capture holds seconds or minutes of an SPDK trace, whose rings hold only milliseconds; what the \
kernel did with the process's threads meanwhile (switches, wake-ups, interrupts, system calls); \
and the process's objects. It ends after the time of --for, on SIGINT or SIGTERM, or when the \
process ends, and then prints the causes of slow requests. Whatever can't be captured is reported, \
and the rest is captured. A capture cut short by kill -9 or a full disk is readable up to that \
point. Captures can be read on any machine, without special rights.

With --slow, nothing is written until a request was slow: the last moments are kept in memory. A \
capture then reaches from before the request until a little after its end, and a line says when it \
happened, which request it was and whose, how long it took, and who delayed it. A request that \
does not end gets one line, too. So does a thread that writes a ring and was off its CPU while \
requests waited unread. The oldest captures are removed, and no other files.

Examples:
  dptrace capture -p nvmf_tgt --for 3s
  dptrace capture -p nvmf_tgt --slow 500us
  dptrace capture -p PID --slow 2ms --before 20ms -o DIR --keep 100
  dptrace report CAPTURE                            explain each slow request
  dptrace trace -i CAPTURE --info                   what was captured";

impl CaptureArgs {
    /// Returns the same with the source of requests that the process has, if none is typed.
    fn with_found_source(&self) -> Self {
        let requests = self.requests.clone();
        Self {
            requests: requests.or_found(&self.process.selector(), "capture"),
            ..self.clone()
        }
    }

    /// Finds the process, or all processes of a server: that which started the others first.
    fn processes(&self) -> anyhow::Result<ProcessSet> {
        let selector = self.process.selector();
        if selector.is_empty() {
            return Err(usage("nothing to capture: give -p PID or -p NAME"));
        }
        let set = self
            .requests
            .processes(&selector, ("capture", "captured"))?;
        check_process(set.first())?;
        Ok(set)
    }
}

/// Checks that there is room for the rings that are full by now, and some more.
fn check_room_for(rings: Option<&Rings>, args: &CaptureArgs) -> anyhow::Result<()> {
    // Slots that were never written have no pages.
    let pages = |rings: &Rings| {
        rings
            .path
            .metadata()
            .map_or(0, |file| file.len().min(file.blocks().saturating_mul(512)))
    };
    let ring_bytes = rings.map_or(0, pages);
    let needed = args
        .max_bytes
        .map_or(u64::MAX, |most| most)
        .min(ring_bytes.saturating_add(MIN_FREE_BYTES));
    let why = format!(
        "{} for the trace's rings, and room for new records and events",
        screen::size(ring_bytes)
    );
    check_room(args.output.as_deref(), needed, &why)
}

/// Returns when the capture ends at the latest.
fn limits(args: &CaptureArgs, folder: &Folder) -> Limits {
    Limits {
        after: args.duration,
        max_bytes: args.max_bytes.or_else(|| most_bytes(folder, args.duration)),
    }
}

/// Runs the command.
pub(crate) fn run(args: &CaptureArgs) -> anyhow::Result<()> {
    let args = &args.with_found_source();
    if let Some(slow) = args.slow.slow {
        return slow::run(args, slow);
    }
    let buffer = args.buffer.unwrap_or(RING_MIB);
    check_buffer(buffer)?;
    let processes = args.processes()?;
    let pid = processes.first();
    let (specs, observer) = (args.specs.resolve()?, terminal::observer());
    Folder::check(args.output.as_deref())?;
    let mut facts = capture_recorder::facts::gather(pid);
    // Must precede the start of any thread: threads inherit the affinity.
    let place = cpus::keep_off(processes.pids.iter().copied(), &observer);
    let mut missing = MissingParts::default();
    let requests = args.requests.source();
    let rings = match requests {
        RequestSource::Trace => missing.unless("trace", Rings::open_source(requests, &processes)),
        RequestSource::Sockets => Some(Rings::open_source(requests, &processes)?),
    };
    check_room_for(rings.as_ref(), args)?;
    // Reading debug information takes time: nothing else is running yet.
    let objects = match requests {
        RequestSource::Sockets => None,
        RequestSource::Trace => {
            let objects = Objects::start(pid, &specs, !args.no_probes, RING_BYTES, &observer);
            missing.unless("objects", objects)
        }
    };
    let kernel = if args.no_kernel {
        Err(anyhow::anyhow!("--no-kernel was given"))
    } else {
        Kernel::start(&processes, buffer << 20)
    };
    let kernel = missing.unless("kernel", kernel);
    if rings.is_none() && kernel.is_none() {
        return Err(missing.into_error());
    }
    missing.report(Vec::new());
    facts.missing = missing.reasons();
    facts.begin = capture_recorder::facts::now();
    let folder = Folder::create(args.output.as_deref(), pid)?;
    let limits = limits(args, &folder);
    let has_trace = rings.is_some();
    let parts = Parts {
        rings,
        kernel,
        objects,
    };
    let done = capture_recorder::record(parts, (&folder, facts), pid, limits, &place, &observer);
    if let Err(error) = folder.hand_over() {
        note(&format!("the capture remains root's: {error}"));
    }
    let bytes = done?;
    if has_trace && !args.no_verdict {
        print_verdict(folder.path(), bytes, &args.specs, &observer)?;
    }
    note(&format!(
        "next: dptrace report {}",
        shell::word(folder.path())
    ));
    Ok(())
}

/// Size of a capture, in bytes, up to which it is read at its end: that takes some seconds.
const MAX_READ_BYTES: u64 = 256_000_000;

/// Prints the sentences with which the capture's report begins. A capture that can't be read is a
/// capture all the same.
fn print_verdict(
    folder: &Path,
    bytes: u64,
    specs: &SpecArgs,
    observer: &Observer,
) -> anyhow::Result<()> {
    if bytes > MAX_READ_BYTES {
        let limit = screen::size(MAX_READ_BYTES);
        note(&format!(
            "the capture has more than {limit}, so it is not read now to name the causes of slow \
             requests"
        ));
        return Ok(());
    }
    let own_specs = specs.files().map(|(_, path)| path.to_owned());
    let objects = ObjectSources::new(Vec::new(), false, own_specs.collect());
    let inputs = match Inputs::open(folder, &objects, &[], observer) {
        Ok(inputs) => inputs,
        Err(error) => {
            note(&format!(
                "the causes of slow requests are not known: {error:#}"
            ));
            return Ok(());
        }
    };
    let mut output = Output::open(None)?;
    let sentences = timeline::verdict_sentences(&inputs, output::screen(None));
    output.buffer.extend_from_slice(sentences.as_bytes());
    Ok(output.finish()?)
}

/// Default size of the ring of kernel events, in MiB: a file takes them at the disk's pace.
const RING_MIB: u32 = 8;
/// Bytes that a capture needs besides a copy of the rings: some seconds of records and events.
const MIN_FREE_BYTES: u64 = 8 << 20;
/// Least default limit in bytes: a smaller one would end captures that fit.
const MIN_DEFAULT_LIMIT_BYTES: u64 = 16 << 20;

/// Bytes that a busy target may write in a second.
const BUSY_BYTES: u64 = 500_000_000;

/// Returns the default limit on a capture's size, and reports it if a capture of that time may reach
/// it. A busy target writes hundreds of megabytes in a second, and a full disk harms everybody on
/// the machine. `None` if the free space is unknown.
fn most_bytes(folder: &Folder, duration: Option<Duration>) -> Option<u64> {
    let most = (folder.free_bytes()? / 2).max(MIN_DEFAULT_LIMIT_BYTES);
    let is_near = duration.is_none_or(|it| BUSY_BYTES.saturating_mul(it.as_secs() + 1) > most);
    if is_near {
        let size = screen::size(most);
        note(&format!(
            "the capture ends at {size}, because of the free space on that disk; --max-bytes sets \
             another limit"
        ));
    }
    Some(most)
}

/// Parts that can't be captured, with the reasons.
#[derive(Default)]
struct MissingParts(Vec<(&'static str, anyhow::Error)>);

impl MissingParts {
    fn unless<T>(&mut self, part: &'static str, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push((part, error))).ok()
    }

    fn reasons(&self) -> std::collections::BTreeMap<String, String> {
        self.0
            .iter()
            .map(|(part, error)| ((*part).to_owned(), format!("{error:#}")))
            .collect()
    }

    /// Reports all missing parts; advice in `given` is not repeated.
    fn report(&self, mut given: Vec<String>) {
        for (part, error) in &self.0 {
            let what = match *part {
                "trace" => "the trace",
                "kernel" => "the kernel's events",
                _ => "objects",
            };
            let advice = rights::advice(error).filter(|advice| !given.contains(advice));
            note(&format!(
                "not captured: {what}: {error:#}{}",
                advice.as_deref().unwrap_or_default()
            ));
            given.extend(advice);
        }
    }

    /// Returns the error for a capture without any part: the last reason; the others are reported.
    fn into_error(mut self) -> anyhow::Error {
        // This is the reason that advice can help against.
        let kernel = self.0.pop();
        self.report(
            kernel
                .iter()
                .filter_map(|(_, error)| rights::advice(error))
                .collect(),
        );
        match kernel {
            Some((_, error)) => {
                error.context("nothing can be captured: no trace and no kernel events")
            }
            None => anyhow::anyhow!("nothing can be captured"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_have_reasons() {
        let mut missing = MissingParts::default();
        assert_eq!(missing.unless("trace", Ok(1)), Some(1));
        assert_eq!(
            missing.unless::<u8>("kernel", Err(anyhow::anyhow!("no rights"))),
            None
        );
        assert_eq!(missing.reasons()["kernel"], "no rights");
        assert!(format!("{:#}", missing.into_error()).ends_with("no rights"));
    }
}
