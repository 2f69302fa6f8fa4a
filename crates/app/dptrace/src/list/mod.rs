//! `dptrace list`: places to attach to, in a process, in a file, in the kernel.

mod functions;
mod probes;
mod target;
mod tracepoints;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use console::output::{self, Output};
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
    match &request.what {
        ListedKind::Tracepoints(pattern) => {
            tracepoints::list(&request, pattern.as_ref(), &mut output)?;
        }
        ListedKind::Functions(files, pattern) => {
            functions::list(&request, files, pattern.as_ref(), &mut output)?;
        }
        ListedKind::Probes(files, pattern) => {
            probes::list(&request, files, pattern.as_ref(), &mut output)?;
        }
    }
    Ok(output.finish()?)
}

/// Limit on the number of near names in an error.
const MAX_NEAR_NAMES: usize = 4;

/// Returns the error that no name matches the pattern, with more about the place, and near names or
/// the number of known ones.
fn nothing_fits(
    what: &str,
    request: &Request,
    near: &[impl AsRef<str>],
    known: usize,
    more: &str,
) -> anyhow::Error {
    let (typed, place) = (&request.typed, &request.place);
    let hint = match (near, known) {
        ([], 0) => format!("; it has none{more}"),
        ([], 1) => format!("; it has one: list it without a pattern{more}"),
        ([], known) => format!("; it has {known}: list them without a pattern{more}"),
        (near, _) => format!("{more}{}", ::text::patterns::did_you_mean_at_end(near)),
    };
    anyhow!("no {what} of {place} matches {typed:?}{hint}")
}

/// Returns the error for the name of a library in place of a pattern.
fn library_meant(request: &Request) -> anyhow::Error {
    let (library, place) = (::text::shell::word(&request.typed), &request.place);
    anyhow!(
        "{library} is a library of {place}; to list its functions: dptrace list {library} \
         --functions; to count its calls: dptrace run libcalls {library} -p PID"
    )
}

/// Returns the same error for names in groups, `PROVIDER:NAME`.
fn nothing_fits_in_groups(
    what: &str,
    request: &Request,
    known: &[(String, String)],
    more: &str,
) -> anyhow::Error {
    let (group, name) = match request.typed.split_once(':') {
        Some((group, name)) => (Some(group), name),
        None => (None, request.typed.as_str()),
    };
    let names = known
        .iter()
        .map(|(group, name)| (group.as_str(), name.as_str()));
    let near = ::text::patterns::nearest_in_groups(group, name, names, MAX_NEAR_NAMES);
    nothing_fits(what, request, &near, known.len(), more)
}
