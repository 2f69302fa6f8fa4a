//! `dptrace record`: what a live process's probes tell of its objects.

mod order;
mod plan;
mod recorder;
mod wanted;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bpf_session::Features;
use clap::Args;
use objects::ObjectSpec;
use sys::process::HeldChild;

use crate::failure::{note, usage};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::target::{Depth, Files, Watch};
use plan::Plan;
use recorder::{Line, Recorder, Totals};
use wanted::Wanted;

/// `dptrace record`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct RecordArgs {
    /// A running process
    #[arg(short, long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,

    /// A program to start, with its arguments: all is attached before its first instruction
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Stop after so long: 10s, 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,

    /// The ring buffer between the kernel and dptrace, in MiB, a power of two: where it is full, hits are lost (and counted)
    #[arg(long, value_name = "MIB", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,

    /// Only write the BPF programs as an object file, for bpftool and llvm-objdump
    #[arg(long, value_name = "FILE.o", help_heading = "Output")]
    emit_object: Option<PathBuf>,
}

const USAGE: &str = "dptrace record [OPTIONS] -p <PID>
       dptrace record [OPTIONS] -- <COMMAND> [ARG]...";

const EXAMPLES: &str = "\
It ends when interrupted, when the time is over, or when the process ends. The process must have the probes: SPDK is
configured with --with-usdt.

Examples:
  dptrace record -p $(pidof nvmf_tgt) -o qpairs.txt   then: dptrace trace -s nvmf -p PID -b qpairs.txt
  dptrace record -p 4711 --objects all --for 30s
  dptrace record -o boot.txt -- build/bin/nvmf_tgt -m 0x3
  dptrace record -p 4711 --emit-object probes.o       then: llvm-objdump -d probes.o";

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The longest wait for events.
const WAIT: Duration = Duration::from_millis(20);

/// Runs the command.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<()> {
    if !args.buffer.is_power_of_two() {
        return Err(usage(format!("--buffer {} is no power of two", args.buffer)));
    }
    let specs = objects::built_in()?;
    let specs: Vec<ObjectSpec> = specs.into_iter().filter(|spec| spec.name == "qpair").collect();
    let interrupt = Interrupt::catch()?;
    let (files, place, child) = match (args.pid, args.command.split_first()) {
        (Some(pid), _) => {
            let (files, place) = Files::of_process(pid)?;
            (files, place, None)
        }
        (None, Some((program, arguments))) => {
            let child = HeldChild::spawn(program, arguments);
            let child = child.with_context(|| format!("starting {}", program.display()))?;
            (Files::of_path(Path::new(program)), program.display().to_string(), Some(child))
        }
        (None, None) => return Err(usage("what to record is missing: -p PID, or -- COMMAND")),
    };
    let mut plan = Plan::new(Wanted::of(&specs), Features::detect()?, args.buffer << 20);
    files.for_each(Depth::Notes, |file| plan.look_into(file))?;
    tell_missing(&plan, &place)?;
    if let Some(path) = &args.emit_object {
        let bytes = plan.module.to_object().build()?;
        return std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()));
    }
    let mut output = Output::open(args.output.as_deref())?;
    let pid = child.as_ref().map(HeldChild::pid).or(args.pid).unwrap_or_default();
    let recorder = Recorder::start(&plan, pid)?;
    tell_attached(&plan, pid);
    let started = child.map(HeldChild::go).transpose().context("running the command")?;
    let watch = Watch::new(pid, plan.attachments.iter().map(|it| it.path.as_path()))?;
    let deadline = args.duration.map(|duration| Instant::now() + duration);
    let (why, totals) = record(recorder, watch, deadline, &interrupt, &mut output)?;
    drop(started);
    tell_totals(&why, &totals);
    Ok(())
}

/// Writes lines until there is a reason to stop, and says which.
fn record(
    mut recorder: Recorder,
    mut watch: Watch,
    deadline: Option<Instant>,
    interrupt: &Interrupt,
    output: &mut Output,
) -> anyhow::Result<(String, Totals)> {
    let mut looked = Instant::now();
    let why = loop {
        write(output, &recorder.next(WAIT))?;
        if interrupt.is_wished() {
            break "stopped".to_owned();
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break "the time is over".to_owned();
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if let Some(why) = watch.over() {
                break why;
            }
        }
    };
    let (rest, totals) = recorder.finish();
    write(output, &rest)?;
    Ok((why, totals))
}

fn write(output: &mut Output, lines: &[Line]) -> anyhow::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    for line in lines {
        writeln!(output.buffer, "{}", line.text)?;
    }
    Ok(output.flush()?)
}

/// That probes are missing: all of them is an error, some of them is told.
fn tell_missing(plan: &Plan, place: &str) -> anyhow::Result<()> {
    let missing = plan.missing();
    if plan.found.is_empty() {
        let first = missing.first().map_or("", String::as_str);
        if !plan.has_seen_probes() {
            bail!("{place} has no USDT probes; SPDK has them if it was configured with --with-usdt");
        }
        bail!(
            "{place} has none of the probes {}{}; SPDK has them if it was configured with --with-usdt; \
             dptrace list shows what is there",
            missing.join(", "),
            plan.hint(first)
        );
    }
    for name in &missing {
        note(&format!("{place} has no probe {name}{}", plan.hint(name)));
    }
    Ok(())
}

fn tell_attached(plan: &Plan, pid: u32) {
    for remark in &plan.remarks {
        note(remark);
    }
    for found in &plan.found {
        let places = if found.places == 1 { "1 place".to_owned() } else { format!("{} places", found.places) };
        note(&format!("attached to {} in {} ({places}) of process {pid}", found.probe, found.file));
    }
}

fn tell_totals(why: &str, totals: &Totals) {
    let Totals { events, lost, skipped, unreadable, cut, late } = *totals;
    let mut parts = vec![format!("{events} events")];
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    add(lost, "lost because the ring buffer was full (--buffer makes it larger)");
    add(skipped, "skipped by the kernel because another program was running on that CPU");
    add(unreadable, "arguments could not be read and are empty or 0");
    add(cut, "strings were cut");
    add(late, "lines are not in their place in time");
    if lost + skipped == 0 {
        parts.push("none lost".to_owned());
    }
    note(&format!("{why}: {}", parts.join(", ")));
}
