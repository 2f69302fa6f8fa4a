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

/// Shows where a user-space data plane spends its time, on both sides of the system call
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
  dptrace objects --list             names of the specs
  dptrace objects                    all specs
  dptrace objects qpair > own.toml   edit it, then: trace --objects own.toml";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  dptrace completions bash > ~/.local/share/bash-completion/completions/dptrace
  dptrace completions zsh > ~/.zfunc/_dptrace
  dptrace completions fish > ~/.config/fish/completions/dptrace.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  dptrace man /usr/local/share/man/man1
  dptrace man . && man ./dptrace-trace.1";

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print an SPDK trace of any version, with the names of its objects
    Trace(Box<TraceArgs>),
    /// Report how long each stage of a request takes
    Latency(Box<LatencyArgs>),
    /// List the places that can be probed: USDT probes, functions, tracepoints
    List(ListArgs),
    /// Run a script in bpftrace's language; needs no compiler and no kernel headers
    Run(Box<RunArgs>),
    /// List the bundled scripts, or print one of them
    Scripts {
        /// Print this script
        name: Option<String>,
    },
    /// Record the objects of a running process from its probes, for trace -b
    Record(RecordArgs),
    /// Report where each thread's time went: own code, system calls, waiting for a CPU, interrupts
    KernelDelay(Box<KernelDelayArgs>),
    /// Report what this kernel and this user can do, and how to get what is missing
    Doctor(DoctorArgs),
    /// Print a bpftrace script that records objects, if you must use bpftrace
    Generate(GenerateArgs),
    /// Show what dptrace does, on a small target or on a built-in sample
    Demo(DemoArgs),
    /// Simulate a small NVMe-oF target that can be traced, for tests and trials
    #[command(hide = true)]
    DemoTarget(Box<demo_target::Options>),
    /// Print the built-in object specs, as documentation or as a start for your own
    #[command(after_help = OBJECTS_EXAMPLES)]
    Objects {
        /// Print only this spec (qpair, ...)
        name: Option<String>,
        /// List name and purpose only, one line for each spec
        #[arg(short, long)]
        list: bool,
    },
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the man pages to a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory, which must exist
        dir: PathBuf,
    },
}
