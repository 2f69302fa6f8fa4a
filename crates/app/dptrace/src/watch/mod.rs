//! `dptrace watch`: a black box that keeps the recent past, and writes a capture when a request was
//! slow.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use console::{interrupt, terminal};
use errors::usage;
use process_selector::{ProcessCount, Role, check_process};
use watch::Options;

use crate::args::process::ProcessArgs;
use crate::args::specs::SpecArgs;
use crate::args::{bytes, check_buffer};

/// `dptrace watch`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    process: ProcessArgs,

    /// A request that takes at least this long is slow: 500us, 2ms
    #[arg(long, value_name = "DURATION", value_parser = ::text::duration::parse)]
    slow: Duration,

    /// Only objects that these tracepoints create, such as 'TCP_REQ_*,BDEV_IO_START'
    ///
    /// Default: all except those that belong to another object, as a block device's I/O belongs to
    /// its request.
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',')]
    tpoint: Vec<String>,

    /// Begin each capture this long before the request
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = ::text::duration::parse)]
    before: Duration,

    /// Minimum time between two captures
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = ::text::duration::parse)]
    every: Duration,

    /// Stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse)]
    duration: Option<Duration>,

    #[command(flatten)]
    specs: SpecArgs,

    /// Do not capture kernel events; then the culprit is unknown
    #[arg(long)]
    no_kernel: bool,

    /// Do not attach probes to the process; find objects only in its memory
    #[arg(long)]
    no_probes: bool,

    /// Size of the ring buffer for the kernel's events, in MiB
    ///
    /// A power of two. The buffer carries events from the kernel to dptrace. If it is full, events
    /// are lost and counted.
    #[arg(long, value_name = "MIB", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,

    /// Write captures to this folder, which is created if it does not exist
    ///
    /// Default: NAME.watch in the current directory.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Keep only the newest N captures in the folder
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    keep: u32,

    /// Limit the captures in the folder to this total size: 500M, 2G
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes, help_heading = "Output")]
    max_bytes: u64,

    /// Print one JSON object on each line
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const USAGE: &str = "dptrace watch [OPTIONS] --slow <DURATION> [-p] <PID|NAME>";

const EXAMPLES: &str = "\
Follows the SPDK trace of a process and what the kernel does with its threads, and keeps the last \
moments in memory. When a request was slow, it writes a capture that reaches from before the \
request until a little after its end, and prints a line: when it happened, which request it was \
and whose, how long it took, and who delayed it. A request that does not end gets one line, too. \
So does a thread that writes a ring and was off its CPU while requests waited unread. dptrace \
timeline, trace and latency read the captures. The oldest captures are removed, and no other \
files.

Examples:
  dptrace watch -p nvmf_tgt --slow 500us
  dptrace watch -p PID --slow 2ms --before 20ms -o DIR --keep 100
  dptrace watch -p PID --slow 1ms --tpoint 'BDEV_IO_START' --json
  dptrace timeline CAPTURE                          explain one of them";

const ROLE: Role = Role {
    command: "watch",
    takes: ProcessCount::One,
    starts: false,
};

/// Runs the command.
pub(crate) fn run(args: &WatchArgs) -> anyhow::Result<()> {
    check_buffer(args.buffer)?;
    let selector = args.process.selector();
    if selector.is_empty() {
        return Err(usage("nothing to watch: give -p PID or -p NAME"));
    }
    let pid = selector.one(ROLE, &terminal::observer())?;
    check_process(pid)?;
    let observer = terminal::observer();
    let print = |line: &str| {
        interrupt::writing(|| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}")?;
            out.flush()
        })
    };
    let totals = watch::watch(&args.options(pid)?, print, &observer)?;
    watch::report(&totals, &observer);
    match (totals.unheard, totals.failed) {
        (Some(error), _) => Err(error),
        (None, Some(error)) => Err(error.context("not all captures could be written")),
        (None, None) => Ok(()),
    }
}

impl WatchArgs {
    /// Returns the options, resolved for this process.
    fn options(&self, pid: u32) -> anyhow::Result<Options> {
        Ok(Options {
            pid,
            specs: self.specs.resolve()?,
            tpoints: self.tpoint.clone(),
            folder: self.output.clone(),
            keep: self.keep as usize,
            max_bytes: self.max_bytes,
            slow: self.slow,
            before: self.before,
            every: self.every,
            after: self.duration,
            kernel_ring: (!self.no_kernel).then_some(self.buffer << 20),
            has_probes: !self.no_probes,
            as_json: self.json,
        })
    }
}
