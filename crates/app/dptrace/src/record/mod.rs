//! `dptrace record`: records the objects of a running process from its probes.

mod subject;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bpf_session::Features;
use clap::Args;
use console::interrupt::Interrupt;
use console::messages::note;
use console::output::Output;
use console::terminal;
use errors::usage;
use host::Watch;
use live_objects::probes::{
    AttachPlan, Recorder, Totals, add_files, report_remarks, report_totals,
};
use live_objects::{Finder, PendingFinder, Session};
use objects::{Frame, Header, ObjectSpec, ProbeRequest};
use process_selector::{ProcessCount, Role};
use spdk_trace::Ticks;
use sys::process::HeldChild;
use whole_file::{Access, WholeFile};

use crate::args::check_buffer;
use crate::args::process::ProcessArgs;
use crate::args::specs::SpecArgs;
use crate::exit;
use subject::Subject;

/// `dptrace record`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    process: ProcessArgs,

    /// A program to start, with its arguments
    ///
    /// Everything is attached before its first instruction.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "process", "name"])]
    command: Vec<OsString>,

    #[command(flatten)]
    specs: SpecArgs,

    /// Do not attach probes: only read the live objects in the process's memory, repeatedly
    #[arg(long, conflicts_with_all = ["emit_object", "command"])]
    no_probes: bool,

    /// Also search this directory for debug files
    ///
    /// For programs and libraries whose debug information is in separate files.
    #[arg(long = "debuginfo", value_name = "DIR", conflicts_with = "command")]
    debug_dirs: Vec<PathBuf>,

    /// Also report where struct layouts come from
    ///
    /// And which objects could not be read.
    #[arg(short, long)]
    verbose: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse)]
    duration: Option<Duration>,

    /// Size of the ring buffer, in MiB
    ///
    /// A power of two. The buffer carries events from the kernel to dptrace. If it is full, hits
    /// are lost and counted.
    #[arg(long, value_name = "MIB", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,

    /// Write the BPF programs to an object file
    ///
    /// For bpftool and llvm-objdump; nothing is recorded.
    #[arg(long, value_name = "FILE.o", help_heading = "Output")]
    emit_object: Option<PathBuf>,
}

const USAGE: &str = "dptrace record [OPTIONS] [-p] <PID|NAME>
       dptrace record [OPTIONS] -- <COMMAND> [ARG]...";

const EXAMPLES: &str = "\
Recording ends on SIGINT or SIGTERM, after the time of --for, or when the process ends. Existing \
objects are read from the process's memory. Objects that come and go are reported by its probes \
(SPDK has them if it was configured with --with-usdt), or found by reading the memory again.

Examples:
  dptrace record -p nvmf_tgt -o qpairs.txt            for trace -b qpairs.txt
  dptrace record -p PID --objects all --for 30s
  dptrace record -o boot.txt -- build/bin/nvmf_tgt -m 0x3
  dptrace record -p PID --emit-object probes.o        for llvm-objdump -d";

const ROLE: Role = Role {
    command: "record",
    takes: ProcessCount::One,
    starts: true,
};
/// Poll interval for the process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for events.
const BATCH_TIMEOUT: Duration = Duration::from_millis(20);

/// Plans the probes. If the program has none, what its memory has is recorded all the same.
fn plan_or_memory(
    args: &RecordArgs,
    wanted: &[ProbeRequest<'_>],
    subject: &Subject<'_>,
    opening: PendingFinder,
) -> anyhow::Result<(PendingFinder, Option<AttachPlan>)> {
    if args.no_probes {
        let finder = opening.finish();
        if finder.is_none() {
            bail!(
                "no objects can be found in the memory of {}: dptrace objects -p PID -v explains \
                 why",
                subject.name
            );
        }
        return Ok((PendingFinder::ready(finder), None));
    }
    match plan(args, wanted, subject) {
        Ok(plan) => Ok((opening, plan)),
        // A program without probes still has its memory.
        Err(error) if args.emit_object.is_none() && exit::status(&error) != exit::NOT_PERMITTED => {
            let finder = opening.finish();
            if finder.is_none() {
                return Err(error);
            }
            note(&format!(
                "recording only the objects in its memory: {error:#}"
            ));
            Ok((PendingFinder::ready(finder), None))
        }
        Err(error) => Err(error),
    }
}

/// Attaches the probes, starts the command if there is one, and records until a reason to stop.
/// Returns the command's process, and the id of the recorded one.
fn attach_and_record(
    args: &RecordArgs,
    subject: &Subject<'_>,
    plan: Option<&AttachPlan>,
    opening: PendingFinder,
    mut output: Output,
) -> anyhow::Result<(Option<Child>, u32)> {
    let held = subject.start()?;
    let pid = held
        .as_ref()
        .map(HeldChild::pid)
        .or(subject.pid)
        .unwrap_or_default();
    let watch = || Watch::new(pid, plan.into_iter().flat_map(AttachPlan::files));
    // The program must be known before the process can exec another one, which a reader of
    // "attached" may make it do. A held process runs none yet.
    let running = if held.is_none() { Some(watch()?) } else { None };
    let since = Ticks(sys::clock::ticks());
    let recorder = plan.map(|plan| Recorder::start(plan, pid)).transpose()?;
    let watched = recorder.as_ref().map(|_| Ticks(sys::clock::ticks()));
    write(
        &mut output,
        &[Frame::Begin(Header {
            pid,
            since,
            watched,
        })
        .line()],
    )?;
    let interrupt = Interrupt::catch()?;
    if let Some(plan) = plan {
        report_attached(plan, pid);
    }
    let mut session = Session::start(opening, recorder, STARTUP_TIMEOUT);
    report_alive(&mut session, pid);
    let child = held
        .map(HeldChild::go)
        .transpose()
        .with_context(|| format!("running {}", subject.name))?;
    let watch = running.map_or_else(watch, Ok)?;
    let deadline = args
        .duration
        .and_then(|duration| Instant::now().checked_add(duration));
    let (why, totals) = record(
        session,
        (plan.is_some(), &watch, pid),
        deadline,
        interrupt,
        &mut output,
    )?;
    output.finish()?;
    match totals {
        Some(totals) => report_totals(&why, &totals, &terminal::observer()),
        None => note(&why),
    }
    Ok((child, pid))
}

/// Runs the command.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<()> {
    check_buffer(args.buffer)?;
    let specs = args.specs.resolve()?;
    let wanted = ProbeRequest::from_specs(&specs).map_err(|error| usage(error.to_string()))?;
    let subject = Subject::from_args(args)?;
    subject.check_output(args)?;
    let opening = open(args, subject.pid, &specs);
    let (opening, plan) = plan_or_memory(args, &wanted, &subject, opening)?;
    if let Some(path) = &args.emit_object {
        let module = plan.as_ref().map(AttachPlan::module).context("no probes")?;
        return Ok(WholeFile::write_whole(
            path,
            Access::Umask,
            &module.to_object().build()?,
        )?);
    }
    let output = Output::open(args.output.as_deref())?;
    let (child, pid) = attach_and_record(args, &subject, plan.as_ref(), opening, output)?;
    if let Some(mut child) = child
        && child.try_wait().context("checking the command")?.is_none()
    {
        note(&format!("process {pid} continues to run"));
    }
    Ok(())
}

/// Time that lines of probes wait for the objects already alive: reading the debug information of a
/// large program takes less. A signal is not noticed meanwhile, so this is shorter than the limit
/// for that.
const STARTUP_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens the finder of objects that already exist.
fn open(args: &RecordArgs, pid: Option<u32>, specs: &[ObjectSpec]) -> PendingFinder {
    let Some(pid) = pid.filter(|_| args.emit_object.is_none()) else {
        return PendingFinder::none();
    };
    let (specs, debug_dirs) = (specs.to_vec(), args.debug_dirs.clone());
    let is_verbose = args.verbose || args.no_probes;
    PendingFinder::start(move || match Finder::open(pid, &specs, &debug_dirs) {
        Ok(finder) => {
            if is_verbose {
                finder
                    .misfits()
                    .iter()
                    .for_each(|misfit| note(&format!("not found in memory: {misfit}")));
                note(&format!(
                    "layout: {}",
                    if finder.source().is_empty() {
                        "not known"
                    } else {
                        finder.source()
                    }
                ));
            }
            Some(finder).filter(|finder| !finder.kinds().is_empty())
        }
        Err(error) => {
            if is_verbose {
                note(&format!(
                    "the memory of process {pid} is not read: {error:#}"
                ));
            }
            None
        }
    })
}

/// Returns the probes to attach to, if any are wanted.
fn plan(
    args: &RecordArgs,
    wanted: &[ProbeRequest<'_>],
    subject: &Subject<'_>,
) -> anyhow::Result<Option<AttachPlan>> {
    if args.no_probes {
        return Ok(None);
    }
    let mut plan = AttachPlan::new(
        wanted,
        Features::for_probes()?.for_process(subject.pid),
        args.buffer << 20,
    );
    add_files(
        &mut plan,
        &subject.files,
        &subject.name,
        &terminal::observer(),
    )?;
    Ok(Some(plan))
}

/// Reports the number of objects that already existed, once it is known: the finder of a large
/// program is ready later than its probes.
fn report_alive(session: &mut Session, pid: u32) {
    if let Some(found) = session.first_found() {
        let objects = screen::counted(found as u64, "object");
        note(&format!(
            "{objects} found alive in the memory of process {pid}"
        ));
    }
}

/// Writes lines until there is a reason to stop, and returns that. `has_probes` is false if only
/// the memory is read.
fn record(
    mut session: Session,
    (has_probes, watch, pid): (bool, &Watch, u32),
    deadline: Option<Instant>,
    interrupt: Interrupt,
    output: &mut Output,
) -> anyhow::Result<(String, Option<Totals>)> {
    let mut looked = Instant::now();
    let why = loop {
        write(output, &session.next(BATCH_TIMEOUT))?;
        report_alive(&mut session, pid);
        if interrupt.is_requested() {
            break "stopped".to_owned();
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break "the time is up".to_owned();
        }
        if looked.elapsed() >= POLL_INTERVAL {
            looked = Instant::now();
            if let Some(why) = if has_probes {
                watch.over()
            } else {
                watch.ended()
            } {
                break why;
            }
        }
    };
    let until = Ticks(sys::clock::ticks());
    let (mut rest, totals) = session.finish();
    let totals = totals.transpose()?;
    if totals.as_ref().is_some_and(|totals| totals.missing() == 0) {
        rest.push(Frame::End { at: until, lost: 0 }.line());
    }
    write(output, &rest)?;
    Ok((why, totals))
}

fn write(output: &mut Output, lines: &[String]) -> anyhow::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    for line in lines {
        writeln!(output.buffer, "{line}")?;
    }
    Ok(output.flush()?)
}

fn report_attached(plan: &AttachPlan, pid: u32) {
    report_remarks(plan, &terminal::observer());
    for found in plan.found() {
        let places = if found.places == 1 {
            "1 place".to_owned()
        } else {
            format!("{} places", found.places)
        };
        note(&format!(
            "attached to {} in {} ({places}) of process {pid}",
            found.probe, found.file
        ));
    }
}
