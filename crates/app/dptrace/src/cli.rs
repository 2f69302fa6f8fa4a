//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::capture::{CaptureArgs, WatchArgs};
use crate::completion::CompleteArgs;
use crate::cpus::CpusArgs;
use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::generate::GenerateArgs;
use crate::inspect::InspectArgs;
use crate::kernel_delay::KernelDelayArgs;
use crate::latency::LatencyArgs;
use crate::list::ListArgs;
use crate::objects_command::ObjectsArgs;
use crate::pmd::PmdArgs;
use crate::record::RecordArgs;
use crate::report::ReportArgs;
use crate::run::{RunArgs, ScriptsArgs};
use crate::serve::ServeArgs;
use crate::top::TopArgs;
use crate::trace::TraceArgs;

/// The command line. Its first line of help is the package's description.
#[derive(Parser, Debug)]
#[command(name = "dptrace", about = env!("CARGO_PKG_DESCRIPTION"), long_about = None, version, long_version = LONG_VERSION, after_help = STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Text that `--version` prints after the program's name; `-V` prints its first line. The build
/// script supplies the values.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit:   ",
    env!("DPTRACE_COMMIT"),
    "\ntarget:   ",
    env!("DPTRACE_TARGET"),
    "\nbuild:    ",
    env!("DPTRACE_BUILD"),
);

const STATUS: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 not permitted or not supported.
Data goes to standard output, everything else to standard error.";

const SCRIPTS_EXAMPLES: &str = "\
Examples:
  dptrace scripts                    the list, by topic
  dptrace scripts runqlat            one script; its first lines explain it
  dptrace run runqlat -p PID         run it
  dptrace scripts runqlat > own.bt   edit it, then: dptrace run own.bt";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  dptrace completions bash > ~/.local/share/bash-completion/completions/dptrace
  dptrace completions zsh > ~/.zfunc/_dptrace
  dptrace completions fish > ~/.config/fish/completions/dptrace.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  mkdir -p ~/.local/share/man/man1 && dptrace man ~/.local/share/man/man1
  dptrace man . && man ./dptrace-trace.1";

impl Cli {
    /// Parses the words of a command line, the program's name first.
    pub(crate) fn parse_words(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(words)
    }
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print an SPDK trace of any version with its objects' names
    Trace(Box<TraceArgs>),
    /// Report how long each stage of a request takes
    Latency(Box<LatencyArgs>),
    /// Explain slow requests in text: the same as report --text
    Timeline(Box<ReportArgs>),
    /// Explain slow requests, as text, a page, or tables for SQL
    Report(Box<ReportArgs>),
    /// Show threads, connections and CPUs, second by second
    Top(Box<TopArgs>),
    /// Write tables for SQL: the same as report --parquet
    Export(Box<ReportArgs>),
    /// List what can be probed: USDT probes, functions, tracepoints
    List(ListArgs),
    /// Print variables, structs and lists of a running process
    Inspect(Box<InspectArgs>),
    /// Run a script in bpftrace's language, or one of those bundled
    Run(Box<RunArgs>),
    /// List the bundled scripts, or print one of them
    #[command(after_help = SCRIPTS_EXAMPLES)]
    Scripts(ScriptsArgs),
    /// Record the objects of a running process, for trace -b
    Record(RecordArgs),
    /// Capture slow requests, and what the kernel did meanwhile
    Capture(Box<CaptureArgs>),
    /// Capture slow requests: the same as capture --slow
    Watch(Box<WatchArgs>),
    /// Expose latencies and thread times as Prometheus metrics
    Serve(Box<ServeArgs>),
    /// Report where each thread's time went, and who took its CPU
    KernelDelay(Box<KernelDelayArgs>),
    /// Report who takes a CPU's time, and who waits for it
    Cpus(CpusArgs),
    /// Explain slow milliseconds of Open vSwitch's PMD threads
    Pmd(PmdArgs),
    /// Report what works on this kernel, and how to get the rest
    Doctor(DoctorArgs),
    /// Print a bpftrace script that records objects
    Generate(GenerateArgs),
    /// Show what dptrace does, on a small target or a built-in sample
    Demo(DemoArgs),
    /// Simulate a small NVMe-oF target that can be traced, for tests and trials
    #[command(hide = true)]
    DemoTarget(Box<demo_target::Options>),
    /// List the objects alive in a process, or print the object specs
    Objects(ObjectsArgs),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print completions of the last word, for the scripts of `completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Write the man pages to a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory, which must exist
        dir: PathBuf,
    },
}
