//! The command line.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::completion::CompleteArgs;
use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::generate::GenerateArgs;
use crate::inspect::InspectArgs;
use crate::kernel_delay::KernelDelayArgs;
use crate::latency::LatencyArgs;
use crate::list::ListArgs;
use crate::live_objects::command::ObjectsArgs;
use crate::record::RecordArgs;
use crate::run::{RunArgs, ScriptsArgs};
use crate::trace::TraceArgs;

/// Shows where a data plane's time goes, on both sides of the system call
#[derive(Parser, Debug)]
#[command(name = "dptrace", version, max_term_width = 120, after_help = STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The program's own help: no list of all commands, which [`overview`] has by groups.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// What to try first.
const FIRST: &str = "\
Examples:
  a process is slow                    dptrace kernel-delay -p PID
  which system calls, and how long     dptrace run syslat -p PID
  who takes its CPU                    dptrace kernel-delay -p PID --summary
  an SPDK trace: the slowest requests  dptrace latency --slowest 3 FILE
";

/// The commands in the order of the help, by what they are about.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Any process", &["kernel-delay", "run", "scripts", "list", "inspect"]),
    ("SPDK", &["trace", "latency", "record", "objects", "generate"]),
    ("This machine", &["doctor"]),
    ("dptrace itself", &["demo", "completions", "man"]),
];

const STATUS: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 not permitted or not supported.
Data goes to standard output, everything else to standard error.";

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
    /// The command line, with the program's own help.
    pub(crate) fn grammar() -> clap::Command {
        let grammar = Self::command();
        let text = overview(&grammar);
        grammar.help_template(TEMPLATE).before_help(text)
    }

    /// The same where nobody reads the program's help.
    pub(crate) fn bare_grammar() -> clap::Command {
        Self::command()
    }

    /// Parses the words of a command line, the program's name first. The program's own help is made only where it is asked
    /// for, not at every start.
    pub(crate) fn of(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(words).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Self::grammar().try_get_matches_from(words).err().unwrap_or(error)
            }
            _ => error,
        })
    }
}

/// What to try first, and the commands by groups, each with its own first line.
fn overview(grammar: &clap::Command) -> String {
    let mut text = FIRST.to_owned();
    for (group, names) in GROUPS {
        text.extend(["\n", group, ":\n"]);
        for name in names {
            let about = grammar.find_subcommand(name).and_then(clap::Command::get_about);
            // SANITY: writing to a string does not fail.
            let _ = writeln!(text, "  {name:12}  {}", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    text.push_str("\n`dptrace COMMAND --help` explains a command, with examples.");
    text
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print an SPDK trace of any version with its objects' names
    Trace(Box<TraceArgs>),
    /// Report how long each stage of a request takes
    Latency(Box<LatencyArgs>),
    /// List what can be probed: USDT probes, functions, tracepoints
    List(ListArgs),
    /// Print variables, structs and lists of a running process
    Inspect(Box<InspectArgs>),
    /// Run a script in bpftrace's language, compiled straight to eBPF
    Run(Box<RunArgs>),
    /// List the bundled scripts, or print one of them
    Scripts(ScriptsArgs),
    /// Record the objects of a running process, for trace -b
    Record(RecordArgs),
    /// Report where each thread's time went, and who took its CPU
    KernelDelay(Box<KernelDelayArgs>),
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
    /// Print what the last of the words can be completed to, for the scripts of `completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Write the man pages to a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory, which must exist
        dir: PathBuf,
    },
}
