//! `dptrace list`: places to attach to, in a process, in a file, in the kernel.

mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use console::output::{self, Output};
use console::terminal;
use probe_listing::{Form, Search};
use whole_file::Access;

use crate::args::process::{self, ProcessOptions};
use target::{ListedKind, Request};

/// `dptrace list`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_args(process::with_help(PROCESS)))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub(crate) struct ListArgs {
    /// A file or process, then a pattern
    ///
    /// If no file has that name, it is a PID, a process name, or a library (libc). With -p or
    /// --tracepoints, give only the pattern. The pattern is PROVIDER:NAME or NAME. * matches any
    /// text, ? any one character.
    #[arg(value_name = "PATH] [PATTERN", num_args = 0..=2)]
    words: Vec<OsString>,

    #[command(flatten)]
    process: ProcessOptions,

    /// List functions instead of USDT probes
    ///
    /// PATTERN matches their names, mangled or not.
    #[arg(long, help_heading = "What to list")]
    functions: bool,

    /// List the kernel's tracepoints
    ///
    /// PATTERN is CATEGORY:NAME or NAME.
    #[arg(long, conflicts_with_all = ["pid", "name", "functions"], help_heading = "What to list")]
    tracepoints: bool,

    /// Print each place of a probe, with its arguments
    #[arg(long, conflicts_with_all = ["functions", "tracepoints"], help_heading = "Output")]
    places: bool,

    /// Print one JSON object on each line
    ///
    /// It has all details.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

const USAGE: &str = "dptrace list [OPTIONS] -p <PID|NAME> [PATTERN]
       dptrace list [OPTIONS] <PATH> [PATTERN]
       dptrace list --tracepoints [--json] [PATTERN]";

const PROCESS: &str = "\
A running process, by PID or name

Lists its program, and every file whose code it has mapped.";

const EXAMPLES: &str = "\
Quote patterns for the shell. The exit status is 1 if no name matches the pattern.

Examples:
  dptrace list -p nvmf_tgt                         USDT probes, with arguments
  dptrace list -p PID 'spdk:nvmf_*' --places       each place of some of them
  dptrace list /usr/lib/postgresql/15/bin/postgres query__start
  dptrace list -p PID --functions '*alloc*'        functions
  dptrace list libz --functions                    those of a library
  dptrace list --tracepoints 'sched:*' --json      tracepoints, with fields";

/// Runs the command.
pub(crate) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let request = Request::from_args(args)?;
    let read = request
        .path
        .iter()
        .map(|path| ("the file that is listed", Path::new(path)));
    output::refuse_inputs(args.output.as_deref(), read)?;
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    let search = Search {
        place: &request.place,
        typed: &request.typed,
        form: match (args.json, args.places) {
            (true, _) => Form::Json,
            (false, true) => Form::TextWithPlaces,
            (false, false) => Form::Text,
        },
        observer: &terminal::observer(),
    };
    match &request.what {
        ListedKind::Tracepoints(pattern) => search.tracepoints(pattern.as_ref(), &mut output),
        ListedKind::Functions(files, pattern) => {
            search.functions(files, pattern.as_ref(), &mut output)
        }
        ListedKind::Probes(files, pattern) => {
            search.usdt_probes(files, pattern.as_ref(), &mut output)
        }
    }?;
    Ok(output.finish()?)
}
