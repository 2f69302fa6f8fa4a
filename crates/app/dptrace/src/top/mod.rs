//! `dptrace top`: a process's connections, threads and stages, second by second.

mod watch;

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use console::full_screen::{self, FullScreen};
use console::interrupt::Interrupt;
use console::messages::{hold_notes, note, print_notes};
use console::output::Output;
use console::terminal;
use errors::usage;
use process_selector::{ProcessCount, Role};
use screen::Screen;
use top::Keys;
use top_feed::{FeedOptions, ProcessSet, Processes, RequestSource, Series, Sources, Step, Subject};
use watch::Watch;

use crate::args::process::ProcessArgs;
use crate::args::requests::RequestArgs;
use crate::args::specs::SpecArgs;

/// Interval between checks for a stop request.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// `dptrace top`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    process: ProcessArgs,

    #[command(flatten)]
    requests: RequestArgs,

    #[command(flatten)]
    specs: SpecArgs,

    /// Print one second as text, then exit: the same as --batch 1
    #[arg(long, conflicts_with = "batch", help_heading = "Output")]
    once: bool,

    /// Print N seconds as text, then exit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Output")]
    batch: Option<u64>,

    /// Print one JSON object for each second, on one line
    ///
    /// Continues until Ctrl-C or the end of the process, unless --once or --batch limits it.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Do not load programs into the kernel; leave out the threads' kernel side
    #[arg(long)]
    no_kernel: bool,

    /// Audit the CPUs of its pollers from the start, in text and JSON too
    ///
    /// By default they are audited only on the screen, once their tab has been opened.
    #[arg(long, conflicts_with = "no_kernel")]
    cpus: bool,

    /// Do not attach probes to the process; find connections only in its memory
    #[arg(long)]
    no_probes: bool,

    /// Leave the mouse to the terminal until m is pressed
    #[arg(long)]
    no_mouse: bool,

    /// Read all records, whatever the cost
    ///
    /// By default, if reading a trace would take more than 2% of a CPU, only a part of each second
    /// is read, and the header states how much.
    #[arg(long)]
    all_records: bool,
}

const USAGE: &str = "dptrace top [OPTIONS] [[-p] <PID|NAME>]";

const EXAMPLES: &str = "\
On a terminal the screen shows, once a second, the connections of an NVMe-oF target, its threads, \
and how long each stage of its requests takes; and, once their tab has been opened, the CPUs of \
its pollers. ? lists the keys, q quits. Connections and stages need a process that writes an SPDK \
trace; threads need the rights for BPF. Anything unavailable is left out, with the reason. If \
reading the trace would take more than 2% of a CPU, only a part of each second is read, and the \
header states how much.

Without a process, the screen lists all of them to choose from, unless exactly one writes an SPDK \
trace: that one is shown, and p opens the list. Clicks and the wheel are for top: hold Shift to \
select text, or press m.

Examples:
  dptrace top                                 choose a process
  dptrace top -p nvmf_tgt
  dptrace top -p PID --once                   one second as text
  dptrace top -p PID --batch 60 > top.txt
  dptrace top -p PID --json | jq .stages
  dptrace top -p PID --once --cpus            with the CPUs of its pollers
  dptrace top -p postgres --requests sockets  requests of any server
  dptrace top -p PID --all-records            no slow request is missed";

const ROLE: Role = Role {
    command: "top",
    takes: ProcessCount::OneTraced(trace_source::writes_trace),
    starts: false,
};

/// Runs the command.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let seconds = args
        .batch
        .or(args.once.then_some(1))
        .or(args.json.then_some(u64::MAX));
    if seconds.is_none() {
        let advice = "--once or --batch N prints text, --json a line each second";
        full_screen::check("top", advice)?;
    }
    let (first, among) = find(args, seconds.is_none())?;
    if let Some(first) = &first {
        process_selector::check_process(first.first())?;
    }
    let options = FeedOptions {
        requests: args.requests.source(),
        specs: args.specs.resolve()?,
        probes: !args.no_probes,
        all_records: args.all_records,
        kernel: !args.no_kernel,
        cpus: args.cpus,
    };
    sys::allocator::keep_little();
    let open = |processes: ProcessSet| {
        let sources = Sources::open(&processes, &options, &terminal::observer())?;
        anyhow::Ok((Subject::open(processes.first())?, sources))
    };
    let first = first.map(open).transpose()?;
    let interrupt = Interrupt::catch()?;
    match (seconds, first) {
        (Some(seconds), Some((subject, sources))) => {
            let series =
                Series::start(&subject, sources, &options, seconds, &terminal::observer())?;
            batch(&subject.title(), interrupt, series, args.json)
        }
        (_, first) => {
            hold_notes();
            let shown = FullScreen::take(!args.no_mouse).and_then(|screen| {
                let mut watch = Watch {
                    options: &options,
                    among,
                    interrupt,
                    screen,
                    has_mouse: !args.no_mouse,
                    keys: Keys::default(),
                };
                watch.run(first)
            });
            print_notes();
            shown
        }
    }
}

/// Finds the process to show: on a screen, `None` if the user has to choose it, and the processes
/// from which to choose, or none for all.
fn find(args: &TopArgs, on_screen: bool) -> anyhow::Result<(Option<ProcessSet>, Vec<u32>)> {
    let (selector, observer) = (args.process.selector(), terminal::observer());
    let is_traced = args.requests.source() == RequestSource::Trace;
    match (selector.is_empty(), on_screen && is_traced) {
        (true, true) => Ok((Processes::only_target().map(ProcessSet::one), Vec::new())),
        (true, false) => Err(usage("nothing to show: give -p PID or -p NAME")),
        (false, true) => {
            let pids = selector.all(ROLE, &observer)?;
            let one = selector.one(ROLE, &observer).ok();
            Ok((one.map(ProcessSet::one), pids))
        }
        (false, false) => {
            let processes = args.requests.processes(&selector, ("top", "shown"))?;
            Ok((Some(processes), Vec::new()))
        }
    }
}

/// Prints seconds one after the other.
fn batch(
    title: &str,
    interrupt: Interrupt,
    mut series: Series<'_>,
    json: bool,
) -> anyhow::Result<()> {
    let (mut output, width) = (Output::open(None)?, Screen::stdout().width());
    let mut printed = 0;
    let why = loop {
        if interrupt.is_requested() {
            break Some("stopped");
        }
        match series.next(STOP_POLL_INTERVAL)? {
            Step::Waiting => continue,
            Step::Over(why) => break why,
            Step::Second(sample) if json => {
                writeln!(output.buffer, "{}", top::json(title, &sample))?;
            }
            Step::Second(sample) => {
                let blank = if printed > 0 { "\n" } else { "" };
                write!(output.buffer, "{blank}{}", top::text(title, &sample, width))?;
            }
        }
        output.flush()?;
        printed += 1;
    };
    series.finish();
    if let Some(why) = why {
        let printed = screen::counted(printed, "second");
        note(&format!("{why} after {printed}"));
    }
    Ok(())
}
