//! `dptrace run`, as typed: bpftrace's letters where it has them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bt_runtime::Form;
use clap::{ArgAction, Args, ValueEnum};
use console::messages::is_bpftrace_compat;
use console::terminal;
use errors::usage;
use process_selector::{ProcessCount, ProcessSelector, Role};
use profiles::ProfileFile;

use super::asked;
use crate::bundled;

const ROLE: Role = Role {
    command: "run",
    takes: ProcessCount::All("traced"),
    starts: false,
};

/// `dptrace run`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct RunArgs {
    /// The script and its arguments
    ///
    /// A file, - for standard input, or the name of a bundled script; then its arguments $1, $2,
    /// ... (with -e, all words are arguments). Words after -- are passed to the script:
    /// --name=value.
    #[arg(value_name = "SCRIPT] [ARGS")]
    pub(super) words: Vec<String>,

    /// The text of the script
    #[arg(short = 'e', value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(super) programs: Vec<String>,

    /// Trace only this process, by PID or name, or several: -p 4711,4712
    ///
    /// If several processes have this name, all are traced. Tracing ends when all of them have
    /// ended.
    #[arg(short, long, value_name = "PID|NAME", conflicts_with = "command")]
    pub(super) pid: Option<String>,

    /// Start this command, and trace only its process
    ///
    /// Quote the command as one word. Probes are attached before its first instruction, and tracing
    /// ends when it ends.
    #[arg(short = 'c', long = "cmd", value_name = "COMMAND")]
    pub(super) command: Option<String>,

    /// With -p or -c: also trace processes that it starts
    ///
    /// They are traced from their first instruction.
    #[arg(long)]
    pub(super) follow_forks: bool,

    /// Also trace its existing and future child processes
    ///
    /// With -p; includes --follow-forks. To trace all workers of a server, name the process that
    /// started them.
    #[arg(long)]
    pub(super) children: bool,

    /// The processes of -p, if they are not one by its number
    #[arg(skip)]
    pub(super) pids: Vec<u32>,

    /// Stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse)]
    pub(super) duration: Option<Duration>,

    /// Write the script's stacks to this file instead
    ///
    /// Stacks in keys of maps, and printed lines of folded stacks. The ending decides on the form:
    /// .html (a flame graph), .pb.gz (pprof), .speedscope.json or .folded.
    #[arg(long, value_name = "FILE")]
    pub(super) stacks: Option<ProfileFile>,

    /// Allow operations that can harm processes: system(), signal(), write_user(), probes at
    /// unverified places
    #[arg(long)]
    pub(super) r#unsafe: bool,

    /// Accepted for bpftrace's sake: the kernel always raises USDT semaphores
    #[arg(long, hide = true)]
    usdt_file_activation: bool,

    /// Insert `#include <FILE>` before the script
    #[arg(long = "include", value_name = "FILE")]
    pub(super) includes: Vec<String>,

    /// File with the traceable kernel functions, a name on each line
    #[arg(long, value_name = "FILE")]
    pub(super) traceable_functions: Option<PathBuf>,

    /// Also search this directory for debug files
    ///
    /// For programs and libraries whose debug information is in separate files.
    #[arg(long = "debuginfo", value_name = "DIR")]
    pub(super) debug_dirs: Vec<PathBuf>,

    /// Only attach probes whose names match
    ///
    /// This regular expression; begin and end are always attached.
    #[arg(long, value_name = "REGEX")]
    pub(super) probe_filter: Option<String>,

    /// The same as -f json: one JSON object on each line
    #[arg(long, conflicts_with_all = ["format", "list", "fmt", "dump"], help_heading = "Output")]
    pub(super) json: bool,

    /// Output format: text or json
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub(super) format: String,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,

    /// Do not print how many probes were attached
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    /// Print each probe that is attached
    ///
    /// With -l, print the arguments of each probe.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(super) verbose: u8,

    /// Output buffering: line, full or none
    ///
    /// line and none write at once; full fills the buffer first.
    #[arg(short = 'B', value_name = "MODE", value_parser = ["line", "full", "none"], help_heading = "Output")]
    pub(super) buffering: Option<String>,

    /// Print events as they arrive
    ///
    /// By default, they are sorted by time.
    #[arg(long, help_heading = "Output")]
    pub(super) no_order: bool,

    /// Print no warnings
    #[arg(long, help_heading = "Output")]
    pub(super) no_warnings: bool,

    /// Also warn about failed reads and lookups
    ///
    /// Reads of memory, and lookups in maps.
    #[arg(short = 'k', action = ArgAction::Count, help_heading = "Output")]
    pub(super) helper_errors: u8,

    /// List probes
    ///
    /// All, those that match a pattern, or those of a script or of -e.
    #[arg(short, long, help_heading = "Instead of running")]
    pub(super) list: bool,

    /// Parse the script and check it; needs no root
    #[arg(long, help_heading = "Instead of running")]
    pub(super) check: bool,

    /// Print the script in canonical form
    #[arg(long, help_heading = "Instead of running")]
    pub(super) fmt: bool,

    /// Print an intermediate form of the script
    #[arg(long, value_name = "WHAT", help_heading = "Instead of running")]
    pub(super) dump: Option<DumpName>,

    /// Write the BPF programs to an object file
    ///
    /// For bpftool and llvm-objdump.
    #[arg(long, value_name = "FILE.o", help_heading = "Instead of running")]
    pub(super) emit_object: Option<PathBuf>,

    /// Load and attach the script, then exit
    #[arg(long, help_heading = "Instead of running")]
    pub(super) dry_run: bool,

    /// Run bench: or test: probes
    ///
    /// Nothing is attached.
    #[arg(long, value_name = "MODE", value_parser = ["bench", "test"], help_heading = "Instead of running")]
    pub(super) mode: Option<String>,
}

impl RunArgs {
    /// Returns whether the script runs, and remarks on what it misses are wanted.
    pub(super) fn reports_remarks(&self) -> bool {
        let is_run =
            !self.check && self.dump.is_none() && self.emit_object.is_none() && self.mode.is_none();
        is_run && !self.no_warnings && !is_bpftrace_compat()
    }

    /// Returns the options with the processes resolved: names become numbers.
    ///
    /// SPDK's `bpftrace.sh` takes a process's number, then the script. After a bundled script
    /// without arguments, a number or name can only be a process. Under the name `bpftrace`,
    /// everything is as in bpftrace.
    pub(super) fn resolved(&self) -> anyhow::Result<Self> {
        let mut args = self.clone();
        if let Some(at) = self.process_word() {
            args.pid = Some(args.words.remove(at));
        }
        // A misspelt script is no reason to list all processes of a name.
        asked::check(&args)?;
        args.follow_forks |= args.children;
        let is_several = |word: &&String| {
            !is_bpftrace_compat() && (args.children || !text::number::is_digits(word))
        };
        if let Some(word) = args.pid.as_ref().filter(is_several) {
            let found = processes(word, args.children);
            // The help of a script needs no process.
            let is_help = args.words.iter().any(|word| word == "--help");
            args.pids = found.or_else(|error| if is_help { Ok(Vec::new()) } else { Err(error) })?;
        }
        Ok(args)
    }

    /// Returns the index of the word that names a process in place of `-p`.
    fn process_word(&self) -> Option<usize> {
        if !self.programs.is_empty() || self.pid.is_some() || self.command.is_some() || self.list {
            return None;
        }
        match self.words.as_slice() {
            [pid, _script, ..] if text::number::is_digits(pid) && !Path::new(pid).exists() => {
                Some(0)
            }
            [script, process]
                if !process.starts_with('-')
                    && !is_bpftrace_compat()
                    && bundled::takes_no_words(script) =>
            {
                Some(1)
            }
            _ => None,
        }
    }

    /// Returns the input files, each with its description for messages.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let script = self
            .words
            .first()
            .filter(|_| self.programs.is_empty())
            .map(|script| ("the script", Path::new(script)));
        let included = self
            .includes
            .iter()
            .map(|file| ("an included file", Path::new(file)));
        let functions = self
            .traceable_functions
            .iter()
            .map(|file| ("the file of functions", file.as_path()));
        script.into_iter().chain(included).chain(functions)
    }

    /// Returns the form of the output.
    pub(super) fn form(&self) -> anyhow::Result<Form> {
        match self.format.as_str() {
            _ if self.json => Ok(Form::Json),
            "text" => Ok(Form::Text),
            "json" => Ok(Form::Json),
            other => Err(usage(format!("invalid output format {other:?}"))),
        }
    }
}

/// Returns the processes of `-p`, and with `--children` those that they have started.
fn processes(word: &str, children: bool) -> anyhow::Result<Vec<u32>> {
    let selector = ProcessSelector::new([word]).with_children(children);
    selector.all_traceable(ROLE, "", &terminal::observer())
}

/// The forms that a script goes through.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DumpName {
    /// The syntax tree.
    Ast,
    /// Probes, maps and events with their types.
    Types,
    /// BPF instructions.
    Insns,
    /// The object file, to standard output.
    Object,
}

const USAGE: &str = "dptrace run [OPTIONS] <SCRIPT> [ARGS]...
       dptrace run [OPTIONS] -e <PROGRAM> [ARGS]...
       dptrace run -l [PATTERN | SCRIPT]";

const EXAMPLES: &str = "\
The language is bpftrace's. A run ends on SIGINT or SIGTERM, at exit(), when the process of -p or \
-c ends, or at once if the script has only begin and end probes. Then the end probes run and all \
maps are printed.

Examples:
  dptrace run nvmf -p nvmf_tgt               a bundled script (dptrace scripts)
  dptrace run libcalls libz -p PID           calls of a library's functions
  dptrace run own.bt 5 -c 'build/bin/app -m 1'  your own script, $1 is 5
  dptrace run -e 't:raw_syscalls:sys_enter { @[comm] = count(); }' --for 10s
  dptrace run cpu-folded -p PID --for 10s --stacks cpu.html   a flame graph
  dptrace run -l 'usdt:*' -p PID              probes that can be attached";
