//! `dptrace cpus`: the CPUs that a data plane wants for itself.

mod subject;

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use console::interrupt::Interrupt;
use console::messages::{hold_notes, note, print_notes};
use console::output::Output;
use console::terminal;
use cpus::audit::Plan;
use cpus::settings::CheckReport;
use screen::Screen;

use crate::args::process::{self, ProcessOptions};
use crate::exit;

/// `dptrace cpus`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_args(process::with_help(POLLERS)))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct CpusArgs {
    /// The CPUs, as the kernel lists them: 2-5,8
    #[arg(value_name = "CPULIST")]
    cpus: Option<String>,

    #[command(flatten)]
    process: ProcessOptions,

    /// Only check the settings: attach nothing
    #[arg(long)]
    check: bool,

    /// How long to measure: 10 or 10s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = ::text::duration::parse, conflicts_with = "check")]
    duration: Duration,

    /// Also list each intrusion that took at least this long: 1us, 20us, 1ms, or nanoseconds
    #[arg(long, value_name = "NS", value_parser = ::text::duration::parse_nanos, conflicts_with = "check")]
    each: Option<u64>,

    /// Print one line for each CPU
    #[arg(long, conflicts_with_all = ["check", "json"])]
    summary: bool,

    /// Print one JSON object on each line
    #[arg(long)]
    json: bool,

    /// With --check: exit status 1 if a finding is red
    #[arg(long, requires = "check")]
    strict: bool,
}

const POLLERS: &str = "\
The CPUs of this process's pollers, by PID or name

A poller is a thread that is pinned to one CPU, or that runs nearly all the time.";

const EXAMPLES: &str = "\
Lists, for each CPU, who has it and where its time went, who took time from its poller (threads, \
kworkers' work, interrupts, timers, other CPUs' calls, each with its cause), and which threads and \
work were ready to run there but had to wait. Without CPULIST and -p, dptrace looks for pollers: \
threads that are on their CPU all the time.

--check reads how this machine is set up for polling threads: isolation, interrupts, packets, \
workqueues, limits. It lists settings that disturb them (red), may disturb them (yellow), could \
not be read (unknown) or are as they should be (green), each with its source and the command that \
changes it. It changes nothing itself, and most of it works without root.

Examples:
  dptrace cpus -p nvmf_tgt             the CPUs of a process's pollers, for 10 s
  dptrace cpus 0 --for 2s              one CPU
  dptrace cpus 0 --for 1s --each 20us  and each intrusion of 20 us or more
  dptrace cpus 0 --for 1s --summary
  dptrace cpus 0 --for 1s --json > cpu.json
  dptrace cpus --check 0               one CPU's settings
  dptrace cpus --check -p nvmf_tgt     for a process's pollers
  dptrace cpus --check --strict 0 > check.txt || cat check.txt
  dptrace cpus --check --json 0";

/// Runs the command, and returns the exit status.
pub(crate) fn run(args: &CpusArgs) -> anyhow::Result<u8> {
    if args.check {
        return check(args);
    }
    audit(args)?;
    Ok(exit::DONE)
}

/// Audits the CPUs for the requested time, and prints the results.
fn audit(args: &CpusArgs) -> anyhow::Result<()> {
    // An error, such as on missing rights, is printed without notes on what did not begin.
    hold_notes();
    let plan = Plan::make(&subject::for_audit(args)?)?;
    Interrupt::catch()?;
    let running = plan.start(args.each)?;
    print_notes();
    let found = running.run(args.duration, &terminal::observer())?;
    let mut output = Output::open(None)?;
    let printed = if args.json {
        found.json()
    } else {
        found.text(args.summary, Screen::stdout())
    };
    write!(output.buffer, "{printed}")?;
    output.flush()?;
    found.notes().iter().for_each(|text| note(text));
    if !found.end() {
        note(
            "the kernel has not released the programs yet (a CPU may be starved); they end with \
             this process",
        );
    }
    Ok(())
}

/// Checks the settings, prints the findings, and returns the exit status.
fn check(args: &CpusArgs) -> anyhow::Result<u8> {
    let subject = subject::for_check(args)?;
    if !subject.pids.is_empty() {
        trace_source::cpus::keep_off(subject.pids.iter().copied(), &terminal::observer());
    }
    let checked = CheckReport::run(&subject, &terminal::observer())?;
    let mut output = Output::open(None)?;
    if args.json {
        checked.json(&mut output.buffer)?;
    } else {
        checked.text(&mut output.buffer, Screen::stdout())?;
    }
    output.flush()?;
    Ok(if args.strict && checked.is_red() {
        exit::FAILED
    } else {
        exit::DONE
    })
}
