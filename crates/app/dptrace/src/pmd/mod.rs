//! `dptrace pmd`: statistics of the polling threads of Open vSwitch and DPDK, joined with what the
//! kernel did to them.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use console::interrupt::Interrupt;
use console::messages::note;
use console::output::Output;
use console::terminal;
use kernel_delay::check_namespace;
use pmd::{Report, Sample, Subject, polls};
use process_selector::{ProcessCount, Role};
use timeline::words;

use crate::args::process::{self, ProcessOptions};

const ROLE: Role = Role {
    command: "pmd",
    takes: ProcessCount::One,
    starts: false,
};
/// Process that is meant if none is named.
const DEFAULT_NAME: &str = "ovs-vswitchd";

/// `dptrace pmd`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_args(process::with_help("The process, by PID or name [default: ovs-vswitchd]")))]
pub(crate) struct PmdArgs {
    #[command(flatten)]
    process: ProcessOptions,

    /// How long to measure: 10 or 10s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = at_most_an_hour)]
    duration: Duration,

    /// Explain everything that takes longer than this: 1ms, 20ms, or nanoseconds
    ///
    /// Open vSwitch keeps its history in milliseconds, so the time is rounded down to whole
    /// milliseconds. The minimum is 1ms.
    #[arg(long, value_name = "NS", default_value = "1ms", value_parser = whole_milliseconds)]
    slow: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Prints, for each PMD thread of Open vSwitch's userspace datapath, why its slow milliseconds were \
slow: another thread had its CPU, it was stopped, an interrupt ran, or its own work took long, \
with Open vSwitch's own account of that work. Below that come where its time went, and its own \
figures next to the true ones: Open vSwitch counts time in which others ran as its own cycles.

The millisecond history needs a setting, which dptrace does not change:
  ovs-vsctl set Open_vSwitch . other_config:pmd-perf-metrics=true

For other DPDK programs, it shows the lcore threads and the counters of the ports.

Examples:
  dptrace pmd                               ovs-vswitchd, for 5 s
  dptrace pmd --name ovs-vswitchd --for 20s
  dptrace pmd -p PID --slow 5ms             what takes longer than 5 ms
  dptrace pmd -p dpdk-testpmd               lcores and ports
  dptrace pmd --json > pmd.json";

/// Limit on the duration: milliseconds are kept for ten minutes, and counters for longer.
const MAX_DURATION: Duration = Duration::from_hours(1);

fn at_most_an_hour(text: &str) -> Result<Duration, &'static str> {
    let time = ::text::duration::parse(text)?;
    if time > MAX_DURATION {
        Err("the time must be at most 1h")
    } else {
        Ok(time)
    }
}

/// Parses a time in whole milliseconds, at least one.
fn whole_milliseconds(text: &str) -> Result<u64, String> {
    match ::text::duration::parse_nanos(text)? / 1_000_000 {
        0 => Err("the history is in milliseconds: the minimum is 1ms".to_owned()),
        milliseconds => Ok(milliseconds),
    }
}

/// Runs the command.
pub(crate) fn run(args: &PmdArgs) -> anyhow::Result<()> {
    check_namespace()?;
    let observer = terminal::observer();
    let subject = Subject::from_pid(pid(args)?)?;
    subject.keep_off(&observer);
    Interrupt::catch()?;
    let sample = Sample::take(&subject, args.duration, &observer)?;
    let report = Report::new(&subject, sample, args.slow, words::interrupt);
    let mut output = Output::open(None)?;
    let printed = if args.json {
        report.json()
    } else {
        report.text()
    };
    write!(output.buffer, "{printed}")?;
    output.flush()?;
    report.notes.iter().for_each(|line| note(line));
    Ok(())
}

/// Returns the process. If several are named, it is the only one with threads that poll: Open
/// vSwitch's monitor has the same name.
fn pid(args: &PmdArgs) -> anyhow::Result<u32> {
    let selector = args.process.selector().or_name(DEFAULT_NAME);
    let pids = selector.all(ROLE, &terminal::observer())?;
    match pids.iter().filter(|&&pid| polls(pid)).collect::<Vec<_>>()[..] {
        [&only] => Ok(only),
        _ => selector.one(ROLE, &terminal::observer()),
    }
}
