//! `dptrace run`, as typed: bpftrace's letters where it has them.

use std::path::PathBuf;
use std::time::Duration;

use bt_runtime::Form;
use clap::{ArgAction, Args, ValueEnum};

use crate::failure::usage;

/// `dptrace run`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RunArgs {
    /// A script's file, - for standard input, or a bundled script's name; then the script's arguments, $1 and so on (with
    /// -e and -l, arguments only). What follows -- is the script's too: --name=value
    #[arg(value_name = "SCRIPT] [ARGS")]
    pub(super) words: Vec<String>,

    /// The program itself
    #[arg(short = 'e', value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(super) programs: Vec<String>,

    /// A running process whose events alone count; tracing ends with it
    #[arg(short, long, value_name = "PID", conflicts_with = "command")]
    pub(super) pid: Option<String>,

    /// A command to start, in one word: probes are attached before its first instruction, only its events count, and
    /// tracing ends with it
    #[arg(short = 'c', long = "cmd", value_name = "COMMAND")]
    pub(super) command: Option<String>,

    /// With -p or -c: count the processes, too, that it starts from now on, from their first instruction
    #[arg(long)]
    pub(super) follow_forks: bool,

    /// Stop after so long: 10s, 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) duration: Option<Duration>,

    /// Allow what changes or stops others: system(), signal(), probes at places that can't be verified
    #[arg(long)]
    pub(super) r#unsafe: bool,

    /// Do not ask for the kernel's USDT semaphores to be raised: it always does
    #[arg(long, hide = true)]
    usdt_file_activation: bool,

    /// Put `#include <FILE>` before the script
    #[arg(long = "include", value_name = "FILE")]
    pub(super) includes: Vec<String>,

    /// Take the kernel's functions that can be probed from this file: a name a line
    #[arg(long, value_name = "FILE")]
    pub(super) traceable_functions: Option<PathBuf>,

    /// Look for files' debug information in this directory too
    #[arg(long = "debuginfo", value_name = "DIR")]
    pub(super) debug_dirs: Vec<PathBuf>,

    /// Attach only the probes whose names this regular expression is found in; begin and end stay
    #[arg(long, value_name = "REGEX")]
    pub(super) probe_filter: Option<String>,

    /// How output looks: text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(super) format: String,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,

    /// Do not tell how many probes were attached
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    /// Tell each probe that is attached; with -l, the arguments of each
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(super) verbose: u8,

    /// When to write what there is: line and none write at once, full gathers
    #[arg(short = 'B', value_name = "MODE", value_parser = ["line", "full", "none"], help_heading = "Output")]
    pub(super) buffering: Option<String>,

    /// Print events as they come, in no order
    #[arg(long, help_heading = "Output")]
    pub(super) no_order: bool,

    /// No warnings
    #[arg(long, help_heading = "Output")]
    pub(super) no_warnings: bool,

    /// Warn of reads and look-ups that fail, too
    #[arg(short = 'k', action = ArgAction::Count, help_heading = "Output")]
    pub(super) helper_errors: u8,

    /// List probes: all, those that fit a pattern, those of a script or of -e
    #[arg(short, long, help_heading = "Instead of running")]
    pub(super) list: bool,

    /// Only parse it and check its types; needs no root
    #[arg(long, help_heading = "Instead of running")]
    pub(super) check: bool,

    /// Print it in one form
    #[arg(long, help_heading = "Instead of running")]
    pub(super) fmt: bool,

    /// Print what it is made into
    #[arg(long, value_name = "WHAT", help_heading = "Instead of running")]
    pub(super) dump: Option<DumpName>,

    /// Write the BPF programs as an object file, for bpftool and llvm-objdump
    #[arg(long, value_name = "FILE.o", help_heading = "Instead of running")]
    pub(super) emit_object: Option<PathBuf>,

    /// Load and attach it, and end
    #[arg(long, help_heading = "Instead of running")]
    pub(super) dry_run: bool,

    /// Run `bench:` and `test:` probes instead of attaching
    #[arg(long, value_name = "MODE", value_parser = ["bench", "test"], help_heading = "Instead of running")]
    pub(super) mode: Option<String>,
}

impl RunArgs {
    /// The same with SPDK's order understood: its `bpftrace.sh` takes a process's number, then the script.
    pub(super) fn understood(&self) -> Self {
        let mut args = self.clone();
        let is_number = |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let leads =
            self.words.len() >= 2 && is_number(&self.words[0]) && !std::path::Path::new(&self.words[0]).exists();
        if leads && self.programs.is_empty() && self.pid.is_none() && self.command.is_none() && !self.list {
            args.pid = Some(args.words.remove(0));
        }
        args
    }

    /// How output looks.
    pub(super) fn form(&self) -> anyhow::Result<Form> {
        match self.format.as_str() {
            "text" => Ok(Form::Text),
            "json" => Ok(Form::Json),
            other => Err(usage(format!("invalid output format {other:?}"))),
        }
    }
}

/// What a script is made into.
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
The language is bpftrace's. It ends when interrupted, with exit(), with the process of -p or -c, or when begin and end
probes are all there is; then end probes run and maps are printed.

Examples:
  dptrace run nvmf -p $(pidof nvmf_tgt)      a bundled script (dptrace scripts lists them)
  dptrace run own.bt -c 'build/bin/app -m 1' one's own
  dptrace run -e 'tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }' --for 10s
  dptrace run -l 'usdt:/usr/bin/app:*'       what can be attached to";
