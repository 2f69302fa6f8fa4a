//! The options, as typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use kernel_delay::layout::MAX_STACK_BYTES;
use kernel_delay::trigger::Trigger;
use profiles::ProfileFile;

use crate::args::process::{self, ProcessArgs};

/// `dptrace kernel-delay`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_args(process::with_help(
    "A running process, by PID or name, or several: -p 4711,4712 [default: ovs-vswitchd]",
)))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct KernelDelayArgs {
    #[command(flatten)]
    pub(super) process: ProcessArgs,

    /// All processes in this control group
    ///
    /// A container or a service, and all processes that they start.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "process", "name"])]
    pub(super) cgroup: Option<PathBuf>,

    /// Also measure the child processes of these
    ///
    /// Those that already run, and those started during the sample.
    #[arg(long)]
    pub(super) children: bool,

    /// A program to start, with its arguments
    ///
    /// Everything is attached before its first instruction. The sample lasts until it ends.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "process", "name", "cgroup"])]
    pub(super) command: Vec<OsString>,

    /// Length of a sample: 5 or 5s (seconds), 500ms, 1m30s [default: 500ms; until COMMAND ends]
    #[arg(long = "for", visible_alias = "sample-time", value_name = "DURATION",
        value_parser = sample, help_heading = "Samples")]
    pub(super) duration: Option<Duration>,

    /// Number of samples
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Samples")]
    pub(super) sample_count: u32,

    /// Time between samples
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = pause, help_heading = "Samples")]
    pub(super) sample_interval: Duration,

    /// The event that starts a sample, instead of the clock
    #[arg(long, value_name = "TRIGGER", help_heading = "Triggers")]
    pub(super) start_trigger: Option<Trigger>,

    /// The event that stops a sample, instead of the clock
    #[arg(long, value_name = "TRIGGER", help_heading = "Triggers")]
    pub(super) stop_trigger: Option<Trigger>,

    /// Skip samples shorter than this: 20us, 1ms, or nanoseconds; --sample-count does not count
    /// them
    #[arg(long, value_name = "NS", default_value = "0", num_args = 0..=1,
        default_missing_value = "0", value_parser = ::text::duration::parse_nanos,
        help_heading = "Triggers", requires = "stop_trigger")]
    pub(super) trigger_delta: u64,

    #[command(flatten)]
    pub(super) events: EventArgs,

    /// Maximum number of threads to measure
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = "Samples",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) max_threads: u32,

    /// Also print idle threads and all sections
    ///
    /// By default, idle threads share one line, and only ten threads have sections.
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(super) all: bool,

    /// Report only threads with these names
    #[arg(long, value_name = "GLOB", help_heading = "Output")]
    pub(super) thread: Option<String>,

    /// Do not count Open vSwitch upcalls
    ///
    /// They are counted by default if Open vSwitch's kernel module is loaded.
    #[arg(long, help_heading = "Output")]
    pub(super) skip_upcall_stats: bool,

    /// Do not trace page faults
    ///
    /// Their time then counts as the threads' own code. Tracing slows down every page fault, in
    /// other programs too.
    #[arg(long, help_heading = "Output")]
    pub(super) skip_page_faults: bool,

    /// Print one JSON object for each sample
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print all digits of times, in nanoseconds, as kernel_delay.py does
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(super) digits: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,

    /// Print only the verdict: one line per thread
    ///
    /// The worst thread comes first.
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(super) summary: bool,

    /// Print what is attached, and how long that took
    ///
    /// MASK, at most 0x3f, is for users of kernel_delay.py: with 0, nothing is printed.
    #[arg(short = 'D', long, value_name = "MASK", num_args = 0..=1, default_value = "0",
        default_missing_value = "0x3f", hide_default_value = true, value_parser = is_debugged,
        action = ArgAction::Set, help_heading = "Output")]
    pub(super) debug: bool,
}

const USAGE: &str = "dptrace kernel-delay [OPTIONS] [[-p] <PID|NAME>[,...] | --cgroup <PATH>]
       dptrace kernel-delay [OPTIONS] -- <COMMAND> [ARG]...";

const EXAMPLES: &str = "\
Each thread's time budget adds up to the sample: its own code, system calls, blocked, waiting for \
a CPU (and who ran instead), interrupts, stopped. The other sections count only what begins and \
ends in the sample.

Triggers: U:PROVIDER:PROBE (usdt:), t:SYSTEM:EVENT (trace:), k:FUNCTION (kprobe:), kr:FUNCTION \
(kretprobe:), u:FUNCTION (up:, uprobe:), ur:FUNCTION (upr:, uretprobe:). Probes and functions of the \
process, and system calls, fire for that process only. Other tracepoints and kernel functions fire \
for any process. With a start trigger and no stop trigger, a sample ends after the time of --for.

Examples:
  dptrace kernel-delay                   half a second of ovs-vswitchd
  dptrace kernel-delay -p PID --summary  one line for each thread, worst first
  dptrace kernel-delay -p nvmf_tgt --for 5s --thread 'reactor_*'
  dptrace kernel-delay -p PID -s 10us --stacks calls.html  a flame graph
  dptrace kernel-delay -p PID --sample-count 10 --sample-interval 1m --json
  dptrace kernel-delay --start-trigger u:dpif_run --stop-trigger ur:dpif_run
  dptrace kernel-delay PID --start-trigger t:syscalls:sys_enter_fsync --for 50ms
  dptrace kernel-delay --for 2s -- build/bin/nvmf_tgt -m 0x3  its first seconds";

/// Length of a sample if none is named.
pub(super) const SAMPLE_TIME: Duration = Duration::from_millis(500);
/// Limit on samples and pauses: the range of the clocks in the maps.
const MAX_DURATION: Duration = Duration::from_hours(24);

/// Parses the length of a sample.
fn sample(text: &str) -> Result<Duration, &'static str> {
    ::text::duration::parse(text).and_then(at_most_a_day)
}

/// Parses the time between samples.
fn pause(text: &str) -> Result<Duration, &'static str> {
    ::text::duration::parse_or_zero(text).and_then(at_most_a_day)
}

/// Parses the time of `-s`, after which users often type a process.
fn at_least(text: &str) -> Result<u64, String> {
    ::text::duration::parse_nanos(text)
        .map_err(|why| format!("{why}; name a process before -s, or after -p"))
}

/// Parses the mask of `-D`: in Open vSwitch's script, flags of its compiler, at most 0x3f.
fn is_debugged(text: &str) -> Result<bool, &'static str> {
    let mask = records::parse_number(text).filter(|mask| (0.0..=63.0).contains(mask));
    mask.map(|mask| mask > 0.0)
        .ok_or("expected at most 0x3f; name a process before -D, or after -p")
}

fn at_most_a_day(time: Duration) -> Result<Duration, &'static str> {
    if time > MAX_DURATION {
        Err("the time must be at most 24h")
    } else {
        Ok(time)
    }
}

/// Selection of the system calls that are shown one by one.
#[derive(Args, Clone, Debug)]
pub(crate) struct EventArgs {
    /// Print each system call, or each that took at least this time (20us, 1ms, or nanoseconds),
    /// with its stacks
    #[arg(short, long, value_name = "NS", num_args = 0..=1, default_missing_value = "0",
        value_parser = at_least, help_heading = "System call events")]
    pub(super) syscall_events: Option<u64>,

    /// Print every system call separately
    ///
    /// In order of time, instead of grouping calls with equal stacks.
    #[arg(long, help_heading = "System call events", requires = "syscall_events")]
    pub(super) each_event: bool,

    /// Write the calls' time by stack to this file
    ///
    /// The ending decides on the form: .html (a flame graph), .pb.gz (pprof), .speedscope.json or
    /// .folded.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "System call events",
        requires = "syscall_events"
    )]
    pub(super) stacks: Option<ProfileFile>,

    /// Leave out poll, which waits by design
    #[arg(long, help_heading = "System call events", requires = "syscall_events")]
    pub(super) skip_syscall_poll_events: bool,

    /// Maximum number of distinct stacks to keep
    ///
    /// 0 records no stacks.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        help_heading = "System call events"
    )]
    pub(super) stack_trace_size: usize,

    /// Number of bytes to copy from each user stack
    ///
    /// The copy is unwound with the program's unwind tables. The number is rounded up to a multiple
    /// of 1024. With 0, stacks are unwound by frame pointers, which costs less.
    #[arg(long, value_name = "BYTES", default_value_t = 8192, help_heading = "System call events",
        value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_STACK_BYTES)))]
    pub(super) stack_copy: u32,

    /// Size of the ring buffer, in pages of 4 KiB
    ///
    /// The buffer carries events from the kernel to dptrace. The number is rounded up to a power of
    /// two.
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "System call events",
        value_parser = clap::value_parser!(u32).range(1..=1 << 18))]
    pub(super) buffer_page_count: u32,
}
