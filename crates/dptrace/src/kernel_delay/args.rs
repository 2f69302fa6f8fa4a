//! What is typed.

use std::ffi::OsString;

use clap::Args;
use kernel_delay::layout::MOST_COPIED;
use kernel_delay::trigger::Trigger;

/// `dptrace kernel-delay`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct KernelDelayArgs {
    /// A running process
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["name", "command"])]
    pub(super) pid: Option<u32>,

    /// The one process with this name [default: ovs-vswitchd]
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(super) name: Option<String>,

    /// A program to start, with its arguments: all is attached before its first instruction
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,

    /// How long a sample is, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, help_heading = "Samples")]
    pub(super) sample_time: f64,

    /// How many samples are made
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Samples")]
    pub(super) sample_count: u32,

    /// How long to wait between samples, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, help_heading = "Samples")]
    pub(super) sample_interval: f64,

    /// What starts a sample, instead of the clock
    #[arg(long, value_name = "TRIGGER", help_heading = "Triggers")]
    pub(super) start_trigger: Option<Trigger>,

    /// What stops a sample, instead of the clock
    #[arg(long, value_name = "TRIGGER", help_heading = "Triggers")]
    pub(super) stop_trigger: Option<Trigger>,

    /// Skip samples shorter than so many nanoseconds; they do not count
    #[arg(long, value_name = "NS", default_value_t = 0, help_heading = "Triggers", requires = "stop_trigger")]
    pub(super) trigger_delta: u64,

    #[command(flatten)]
    pub(super) events: EventArgs,

    /// How many threads there is room for
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = "Samples",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) max_threads: u32,

    /// Only these threads, by their name
    #[arg(long, value_name = "GLOB", help_heading = "Output")]
    pub(super) thread: Option<String>,

    /// Do not count the upcalls of the kernel's Open vSwitch module, where that is loaded
    #[arg(long, help_heading = "Output")]
    pub(super) skip_upcall_stats: bool,

    /// A JSON object for each sample
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Only the verdict: a line a thread, worst first
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(super) summary: bool,

    /// Tell what is attached, and how long that took
    #[arg(short = 'D', long, help_heading = "Output")]
    pub(super) debug: bool,
}

const USAGE: &str = "dptrace kernel-delay [OPTIONS] [-p <PID> | --name <NAME>]
       dptrace kernel-delay [OPTIONS] -- <COMMAND> [ARG]...";

const EXAMPLES: &str = "\
Each thread's time budget adds up to the sample: its own code, system calls, blocked, waiting for a CPU (and who ran \
instead), interrupts, stopped. The other sections have what lies wholly in the sample.

Triggers: u:PROVIDER:PROBE (usdt:), t:SYSTEM:EVENT (trace:), k:FUNCTION (kprobe:), kr:FUNCTION (kretprobe:), \
up:FUNCTION (uprobe:), ur:FUNCTION (upr:, uretprobe:). Probes, functions and system calls of the process fire for it \
only; other tracepoints and the kernel's functions for any process. With a start trigger only, a sample takes the \
sample time.

Examples:
  dptrace kernel-delay                               half a second of ovs-vswitchd
  dptrace kernel-delay -p 4711 --summary             a line a thread, worst first
  dptrace kernel-delay --name nvmf_tgt --sample-time 5 --thread 'reactor_*'
  dptrace kernel-delay -p 4711 --sample-count 10 --sample-interval 60 --json
  dptrace kernel-delay --start-trigger up:bridge_run --stop-trigger ur:bridge_run
  dptrace kernel-delay -p 4711 --start-trigger t:syscalls:sys_enter_fdatasync --sample-time 0.05
  dptrace kernel-delay -- build/bin/nvmf_tgt -m 0x3  from its first instruction";

/// Which system calls are shown one by one.
#[derive(Args, Clone, Debug)]
pub(crate) struct EventArgs {
    /// Show each system call, or each that took so many nanoseconds, with the stacks that led to it
    #[arg(short, long, value_name = "NS", num_args = 0..=1, default_missing_value = "0", help_heading = "System call events")]
    pub(super) syscall_events: Option<u64>,

    /// Not those of poll, which is made to wait
    #[arg(long, help_heading = "System call events", requires = "syscall_events")]
    pub(super) skip_syscall_poll_events: bool,

    /// How many different stacks are kept; 0 for none
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = "System call events")]
    pub(super) stack_trace_size: usize,

    /// How much of the process's stack is copied to be walked by its unwind tables, in bytes, a multiple of 1024; 0 to
    /// walk it by frame pointers, which costs less
    #[arg(long, value_name = "BYTES", default_value_t = 8192, help_heading = "System call events",
        value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_COPIED)))]
    pub(super) stack_copy: u32,

    /// The ring between the kernel and dptrace, in pages of 4 KiB, rounded up to a power of two
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "System call events",
        value_parser = clap::value_parser!(u32).range(1..=1 << 18))]
    pub(super) buffer_page_count: u32,
}
