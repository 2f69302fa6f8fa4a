//! `dptrace top`: a process's connections, threads and stages, second by second.

mod watch;

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use console::full_screen;
use console::interrupt::Interrupt;
use console::messages::note;
use console::output::Output;
use console::terminal;
use errors::usage;
use process_selector::{ProcessCount, Role};
use screen::Screen;
use top_feed::{FeedOptions, Feeds, Sources, Subject};

use crate::args::process::ProcessArgs;
use crate::args::specs::SpecArgs;

/// Interval between checks for a stop request.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Seconds to wait for the last second of a process that has ended.
const FINAL_WAIT_SECONDS: u64 = 15;

/// Seconds to wait for the first audit of the CPUs.
const MAX_CPU_WAIT_SECONDS: u64 = 8;

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

    /// Read all records, whatever the cost
    ///
    /// By default, if reading a trace would take more than 2% of a CPU, only a part of each second
    /// is read, and the header states how much.
    #[arg(long)]
    all_records: bool,
}

const USAGE: &str = "dptrace top [OPTIONS] [-p] <PID|NAME>";

const EXAMPLES: &str = "\
On a terminal the screen shows, once a second, the connections of an NVMe-oF target, its threads, \
and how long each stage of its requests takes; and, once their tab has been opened, the CPUs of \
its pollers. ? lists the keys, q quits. Connections and stages need a process that writes an SPDK \
trace; threads need the rights for BPF. Anything unavailable is left out, with the reason. If \
reading the trace would take more than 2% of a CPU, only a part of each second is read, and the \
header states how much.

Examples:
  dptrace top -p nvmf_tgt
  dptrace top -p PID --once                   one second as text
  dptrace top -p PID --batch 60 > top.txt
  dptrace top -p PID --json | jq .stages
  dptrace top -p PID --once --cpus            with the CPUs of its pollers
  dptrace top -p PID --all-records            no slow request is missed";

const ROLE: Role = Role {
    command: "top",
    takes: ProcessCount::One,
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
    let pid = find(args)?;
    process_selector::check_process(pid)?;
    let options = FeedOptions {
        specs: args.specs.resolve()?,
        probes: !args.no_probes,
        all_records: args.all_records,
        kernel: !args.no_kernel,
    };
    sys::allocator::keep_little();
    let sources = Sources::open(pid, &options, &terminal::observer())?;
    let subject = Subject::open(pid)?;
    let interrupt = Interrupt::catch()?;
    match seconds {
        Some(seconds) => {
            for (what, why) in ["connections", "threads"].iter().zip(&sources.missing) {
                if let Some(why) = why {
                    note(&format!("no {what}: {why}"));
                }
            }
            // One second takes less of the process's time than a start with the lowest priority.
            let mut feeds = sources.start(&options, seconds > 1, &terminal::observer())?;
            if args.cpus {
                feeds.audit(pid)?;
            }
            batch(&subject, interrupt, feeds, seconds, args)
        }
        None => watch::watch(
            &subject,
            interrupt,
            sources,
            &options,
            Audit::from_args(args),
        ),
    }
}

/// When the CPUs are audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audit {
    Never,
    /// From the first time on that their tab is open.
    WhenOpened,
    AtOnce,
}

impl Audit {
    fn from_args(args: &TopArgs) -> Self {
        match () {
            () if args.no_kernel => Self::Never,
            () if args.cpus => Self::AtOnce,
            () => Self::WhenOpened,
        }
    }
}

/// Finds the process to show.
fn find(args: &TopArgs) -> anyhow::Result<u32> {
    let selector = args.process.selector();
    if selector.is_empty() {
        return Err(usage("nothing to show: give -p PID or -p NAME"));
    }
    selector.one(ROLE, &terminal::observer())
}

/// Prints that many seconds.
fn batch(
    subject: &Subject,
    interrupt: Interrupt,
    mut feeds: Feeds,
    seconds: u64,
    args: &TopArgs,
) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    let (title, width) = (subject.title(), Screen::stdout().width());
    // The second in which the process has ended is the last one.
    let (mut printed, mut last) = (0, u64::MAX);
    // Attaching takes its time: the first second is one that has the CPUs, if they can be had.
    let mut waits = args.cpus;
    let why = loop {
        if printed == seconds {
            break None;
        }
        if interrupt.is_requested() {
            break Some("stopped");
        }
        if last == u64::MAX && subject.has_ended() {
            last = feeds.second();
        }
        if let Some(why) = feeds.no_cpus() {
            note(&format!("no CPUs: {why}"));
            waits = false;
        }
        if let Some(sample) = feeds.next(STOP_POLL_INTERVAL)? {
            waits &= sample.cpus.is_none() && sample.number < last.min(MAX_CPU_WAIT_SECONDS);
            if waits {
                continue;
            }
            if args.json {
                writeln!(output.buffer, "{}", top::json(&title, &sample))?;
            } else {
                let blank = if printed > 0 { "\n" } else { "" };
                write!(
                    output.buffer,
                    "{blank}{}",
                    top::text(&title, &sample, width)
                )?;
            }
            output.flush()?;
            printed += 1;
            if sample.number >= last {
                break Some("the process has ended");
            }
        } else if feeds.second() > last.saturating_add(FINAL_WAIT_SECONDS) {
            break Some("the process has ended");
        }
    };
    feeds.finish();
    if let Some(why) = why {
        note(&format!(
            "{why} after {}",
            screen::counted(printed, "second")
        ));
    }
    Ok(())
}
