//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::generate::GenerateArgs;
use crate::kernel_delay::KernelDelayArgs;
use crate::latency::LatencyArgs;
use crate::list::ListArgs;
use crate::record::RecordArgs;
use crate::run::RunArgs;
use crate::trace::TraceArgs;

/// Shows where a userspace data plane's time goes, on both sides of the system call
#[derive(Parser, Debug)]
#[command(name = "dptrace", version, max_term_width = 120, after_help = STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const STATUS: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 not permitted or not supported.
Data goes to standard output, everything else to standard error.";

const OBJECTS_EXAMPLES: &str = "\
Examples:
  dptrace objects --list             which there are
  dptrace objects                    all of them
  dptrace objects qpair > own.toml   to change, then: trace --objects own.toml";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  dptrace completions bash > ~/.local/share/bash-completion/completions/dptrace
  dptrace completions zsh > ~/.zfunc/_dptrace
  dptrace completions fish > ~/.config/fish/completions/dptrace.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  dptrace man /usr/local/share/man/man1
  dptrace man . && man ./dptrace-trace.1";

/// What can be done.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Tell an SPDK trace, of any version, with its objects named
    Trace(Box<TraceArgs>),
    /// Tell how long each stage of a request takes
    Latency(Box<LatencyArgs>),
    /// List what can be attached to: USDT probes, functions, tracepoints
    List(ListArgs),
    /// Run a script in bpftrace's language: live, with nothing but the kernel
    Run(Box<RunArgs>),
    /// List the scripts that are built in, or print one
    Scripts {
        /// Only this one
        name: Option<String>,
    },
    /// Record what a live process's probes tell of its objects, for trace -b
    Record(RecordArgs),
    /// Tell where each thread's time went: its own code, calls, waiting for a CPU, interrupts
    KernelDelay(Box<KernelDelayArgs>),
    /// Tell what this kernel and this user may do, what for, and how to get it
    Doctor(DoctorArgs),
    /// Print the bpftrace script that records objects, for those who must use bpftrace
    Generate(GenerateArgs),
    /// Show what dptrace does, on a sample that it carries
    Demo(DemoArgs),
    /// Behave like a small NVMe-oF target, to be traced: for tests and trials
    #[command(hide = true)]
    DemoTarget(Box<demo_target::Options>),
    /// Print the object specs that are built in, to read or to start one's own from
    #[command(after_help = OBJECTS_EXAMPLES)]
    Objects {
        /// Only this one (qpair, ...)
        name: Option<String>,
        /// Only what each is called and about, a line each
        #[arg(short, long)]
        list: bool,
    },
    /// Print the completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages into a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory, which must exist
        dir: PathBuf,
    },
}
