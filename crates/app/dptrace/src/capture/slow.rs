//! `dptrace capture --slow`, also called `dptrace watch`: a black box that keeps the recent past, and
//! writes a capture when a request was slow.

use std::io::Write as _;
use std::time::Duration;

use capture_recorder::ProcessSet;
use clap::Args;
use console::messages::note;
use console::{interrupt, terminal};
use text::shell;
use watch::Options;

use super::CaptureArgs;
use crate::args::{check_buffer, required};

/// Slow requests to capture, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Slow requests")]
pub(crate) struct SlowArgs {
    /// Capture only around requests slower than this: 500us, 2ms
    #[arg(long, value_name = "DURATION", value_parser = ::text::duration::parse)]
    pub(crate) slow: Option<Duration>,

    /// Only objects that these tracepoints create, such as 'TCP_REQ_*,BDEV_IO_START'
    ///
    /// Default: all except those that belong to another object, as a block device's I/O belongs to
    /// its request.
    #[arg(
        long,
        value_name = "GLOB,...",
        value_delimiter = ',',
        requires = "slow"
    )]
    tpoint: Vec<String>,

    /// Begin each capture this long before the request
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = ::text::duration::parse, requires = "slow")]
    before: Duration,

    /// At most one capture in this time
    ///
    /// Slow requests that come sooner wait for it; the slowest of them gets the next capture.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = ::text::duration::parse, requires = "slow")]
    every: Duration,

    /// Keep only the newest N captures in the folder
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), requires = "slow")]
    keep: u32,

    /// Print one JSON object for each slow request, on a line
    #[arg(long, requires = "slow")]
    json: bool,
}

/// `dptrace watch`, as typed: `dptrace capture` with `--slow`.
#[derive(Args, Clone, Debug)]
#[command(override_usage = USAGE, mut_args(required("slow")))]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

const USAGE: &str = "dptrace watch [OPTIONS] --slow <DURATION> [-p] <PID|NAME>";

/// Default size of the ring of kernel events, in MiB: memory takes them as they come.
const RING_MIB: u32 = 2;
/// Default limit on the size of all captures, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Captures requests that take at least `slow`.
pub(super) fn run(args: &CaptureArgs, slow: Duration) -> anyhow::Result<()> {
    let buffer = args.buffer.unwrap_or(RING_MIB);
    check_buffer(buffer)?;
    let processes = args.processes()?;
    let observer = terminal::observer();
    let print = |line: &str| {
        interrupt::writing(|| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}")?;
            out.flush()
        })
    };
    let options = options(args, processes, slow, buffer)?;
    // The process may have ended afterwards, and its name with it.
    let folder = options.dir();
    let totals = watch::watch(&options, print, &observer)?;
    watch::report(&totals, &observer);
    if totals.captures > 0 {
        note(&format!("next: dptrace report {}", shell::word(&folder)));
    }
    match (totals.unheard, totals.failed) {
        (Some(error), _) => Err(error),
        (None, Some(error)) => Err(error.context("not all captures could be written")),
        (None, None) => Ok(()),
    }
}

/// Returns the options, resolved for this process.
fn options(
    args: &CaptureArgs,
    processes: ProcessSet,
    slow: Duration,
    buffer: u32,
) -> anyhow::Result<Options> {
    let black_box = &args.slow;
    Ok(Options {
        processes,
        requests: args.requests.source(),
        specs: args.specs.resolve()?,
        tpoints: black_box.tpoint.clone(),
        folder: args.output.clone(),
        keep: black_box.keep as usize,
        max_bytes: args.max_bytes.unwrap_or(MAX_BYTES),
        slow,
        before: black_box.before,
        every: black_box.every,
        after: args.duration,
        kernel_ring: (!args.no_kernel).then_some(buffer << 20),
        has_probes: !args.no_probes,
        as_json: black_box.json,
    })
}
