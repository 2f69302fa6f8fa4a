//! `dptrace demo`: shows what dptrace does, on a target that it starts or on a built-in sample.

mod late;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use bpf_session::Features;
use clap::Args;
use console::messages::{explained, note};
use console::output::{self, Output};
use console::terminal;
use flate2::read::GzDecoder;
use host::Files;
use live_objects::annotate;
use live_objects::probes::{AttachPlan, RING_BYTES, Recorder, add_files, report_totals};
use objects::{ObjectSpec, ProbeRequest, built_in};
use screen::Screen;
use spdk_trace::{RawTrace, Trace};
use text::printable::path as printable;
use trace_source::LoadedTrace;
use whole_file::{Access, Batch};

use crate::args::filter::FilterArgs;
use crate::listing;

/// Generated trace of an NVMe-oF target, era F (`gen-trace --sample`, crates/testing/testkit),
/// packed by `gzip -9 -n`: most of its bytes are zero.
const TRACE: &[u8] = include_bytes!("../../sample/demo.trace.gz");
/// Recording of its qpairs.
const RECORDING: &str = include_str!("../../sample/demo.recording");

const EXAMPLES: &str = "\
If you can use BPF (as root), it starts a small NVMe-oF target for about a second, records it, and \
shows what it did. It then starts one whose requests are delayed on purpose, and explains one of \
them. If not, it shows a built-in sample.

Examples:
  dptrace demo                 a listing, latencies, and why a request is late
  dptrace demo --sample        the built-in sample, even if you can use BPF
  dptrace demo --write .       then: dptrace latency demo.trace";

/// `dptrace demo`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Number of records in the listing
    #[arg(long, value_name = "N", default_value_t = 32)]
    head: u64,

    /// Show the built-in sample without starting anything
    #[arg(long)]
    sample: bool,

    /// Write the sample files to this directory
    ///
    /// These are demo.trace and demo.recording, to try other commands on. The directory is created
    /// if it does not exist.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// A trace to show, with the recording of its objects and the commands that give a user the same
/// output.
struct DemoTrace {
    loaded: LoadedTrace,
    recording: String,
    name: &'static str,
    commands: [String; 2],
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if let Some(dir) = &args.write {
        return write_sample(dir);
    }
    if args.sample {
        return show_sample(args.head);
    }
    match live() {
        Ok(shown) => {
            show(&shown, args.head)?;
            late::show()?;
            note(NEXT_STEP_NOTE);
            Ok(())
        }
        Err(error) => {
            note(&format!(
                "showing a sample, because nothing could be recorded here: {}",
                explained(&error)
            ));
            show_sample(args.head)
        }
    }
}

/// Note on what to do next.
const NEXT_STEP_NOTE: &str = "to get the sample files for more tries: dptrace demo --write DIR";

/// Shows the sample, and the stages of its slowest request. Nothing more is known about that
/// request.
fn show_sample(head: u64) -> anyhow::Result<()> {
    show(&sample()?, head)?;
    let trace = Trace::Raw(RawTrace::read(&sample_trace()?).context("reading the sample")?);
    if let Some(text) = timeline::slowest_of(
        trace,
        RECORDING,
        output::screen(None),
        &terminal::observer(),
    )? {
        print(&format!("\n{text}"))?;
    }
    note(
        "the sample's slowest request has only stages; with the rights for BPF (as root), dptrace \
         demo also shows what the kernel did to its thread",
    );
    note(NEXT_STEP_NOTE);
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    output.buffer.extend_from_slice(text.as_bytes());
    output.flush()?;
    Ok(())
}

fn write_sample(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("creating {}", printable(dir)))?;
    let (trace, mut batch) = (sample_trace()?, Batch::default());
    let files = [
        ("demo.trace", &trace[..]),
        ("demo.recording", RECORDING.as_bytes()),
    ];
    for (name, bytes) in files {
        batch.add_whole(&dir.join(name), Access::Umask, bytes)?;
    }
    batch.commit()?;
    for (name, _) in files {
        note(&format!("wrote {}", printable(dir.join(name))));
    }
    Ok(())
}

fn show(shown: &DemoTrace, head: u64) -> anyhow::Result<()> {
    let DemoTrace {
        loaded,
        recording,
        name,
        commands,
    } = shown;
    let annotator = annotate(
        recording,
        name,
        built_in()?,
        loaded.trace.tpoints(),
        &terminal::observer(),
    );
    let annotator =
        live_objects::with_owners(Some(annotator), &loaded.trace, false, &terminal::observer());
    let filter = FilterArgs::default().resolve(
        loaded.trace.tpoints().all(),
        &[],
        loaded.trace.tick_rate(),
    )?;
    let queues = requests::Queues::new(&built_in()?)?;
    let observer = terminal::observer();
    let tables = latency::tables_of(
        loaded,
        annotator.as_ref(),
        filter,
        queues,
        Screen::stdout(),
        &observer,
    );
    let mut output = Output::open(None)?;
    output
        .buffer
        .extend_from_slice(format!("$ {} --head {head}\n", commands[0]).as_bytes());
    listing::first_records(loaded, annotator.as_ref(), head, &mut output)?;
    output
        .buffer
        .extend_from_slice(format!("\n$ {}\n", commands[1]).as_bytes());
    output.buffer.extend_from_slice(tables?.as_bytes());
    output.flush()?;
    Ok(())
}

/// Returns the bytes of the sample's trace file.
fn sample_trace() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(TRACE)
        .read_to_end(&mut bytes)
        .context("unpacking the sample")?;
    Ok(bytes)
}

fn sample() -> anyhow::Result<DemoTrace> {
    let raw = RawTrace::read(&sample_trace()?).context("reading the sample")?;
    note(
        "a sample: two reactors of an NVMe-oF target; TCP connections are named by their owners, \
         RDMA connections by a recording",
    );
    Ok(DemoTrace {
        loaded: LoadedTrace {
            trace: Trace::Raw(raw),
            name: "the sample".to_owned(),
            measured: None,
            capture: None,
        },
        recording: RECORDING.to_owned(),
        name: "the sample",
        commands: [
            "trace -i demo.trace -b demo.recording",
            "latency -i demo.trace",
        ]
        .map(|it| format!("dptrace {it}")),
    })
}

/// Poll interval for the target.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of requests of the live target: enough for a table, done in about a second.
const REQUESTS: &str = "1000";
/// Time limit of the target.
const TARGET_TIME_LIMIT: &str = "5s";

/// Starts a target, records it from its first connection to its end, and reads the trace that it
/// leaves.
fn live() -> anyhow::Result<DemoTrace> {
    let mut child = Command::new(host::proc::OWN_PROGRAM)
        .args([
            "demo-target",
            "--wait",
            "--keep",
            "--requests",
            REQUESTS,
            "--for",
            TARGET_TIME_LIMIT,
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("starting the target")?;
    let recorded = record_all(&mut child);
    // Its input is closed by now, so it ends by itself; if attaching failed it has not begun.
    if recorded.is_err() {
        // SANITY: this can fail only if the process has already ended.
        let _ = child.kill();
    }
    child.wait().context("waiting for the target")?;
    let path = PathBuf::from(format!("/dev/shm/demo_trace.pid{}", child.id()));
    let bytes = fs::read(&path).with_context(|| format!("reading {}", printable(&path)));
    // SANITY: whether it can be removed or not, nothing more can be done about it.
    let _ = fs::remove_file(&path);
    let recording = recorded?;
    let raw = RawTrace::read(&bytes?).context("reading the target's trace")?;
    note("live: a small NVMe-oF target (dptrace demo-target) was started, recorded and read");
    Ok(DemoTrace {
        loaded: LoadedTrace {
            trace: Trace::Raw(raw),
            name: "the target's trace".to_owned(),
            measured: None,
            capture: None,
        },
        recording,
        name: "the recording",
        commands: ["trace", "latency"]
            .map(|command| format!("dptrace {command} -p {}", child.id())),
    })
}

/// Attaches to a waiting target, lets it run, and returns its recording.
fn record_all(child: &mut Child) -> anyhow::Result<String> {
    let specs: Vec<ObjectSpec> = built_in()?
        .into_iter()
        .filter(|spec| spec.name == "qpair")
        .collect();
    let mut plan = AttachPlan::new(
        &ProbeRequest::from_specs(&specs)?,
        Features::for_probes()?,
        RING_BYTES,
    );
    let (files, place) = Files::from_process(child.id())?;
    add_files(&mut plan, &files, &place, &terminal::observer())?;
    let mut recorder = Recorder::start(&plan, child.id())?;
    drop(child.stdin.take());
    let mut text = String::new();
    let mut keep = |lines: Vec<String>| lines.iter().for_each(|line| text.extend([line, "\n"]));
    while child
        .try_wait()
        .context("waiting for the target")?
        .is_none()
    {
        keep(recorder.next(POLL_INTERVAL));
    }
    let (rest, totals) = recorder.finish();
    keep(rest);
    report_totals("recorded", &totals?, &terminal::observer());
    Ok(text)
}
