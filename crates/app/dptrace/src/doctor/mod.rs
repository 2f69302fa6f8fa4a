//! `dptrace doctor`: the capabilities of this kernel and this user, and which commands need them.

use std::path::PathBuf;

use clap::Args;
use console::output::{self, Output};
use doctor::report::{Finding, Report};
use doctor::{checks, commands};
use errors::unsupported;
use host::system;
use whole_file::Access;

/// `dptrace doctor`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Also print each check
    ///
    /// With what needs it, and how to get it if it is missing.
    #[arg(short, long)]
    verbose: bool,

    /// Print each check as one JSON object on each line
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
dptrace doctor tries each feature on its own process and removes what it attached.
It mounts nothing and changes no setting. The exit status is 0 if record and run
can both work here, and 3 if not.

Examples:
  sudo dptrace doctor        what root can do here
  dptrace doctor             what you can do
  dptrace doctor -v          each check, and how to get what is missing
  dptrace doctor --json | jq -r 'select(.answer == \"no\") | .name'";

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let findings: Vec<Finding> = checks::all().map(Finding::run).collect();
    let path = args.output.as_deref();
    let mut output = Output::whole(path, Access::Umask)?;
    if args.json {
        doctor::report::json(&findings, &mut output.buffer)?;
    } else {
        let release = system::kernel_release().unwrap_or_else(|| "of unknown release".into());
        let report = Report {
            findings: &findings,
            release: &release,
            screen: output::screen(path),
        };
        report.text(args.verbose, &mut output.buffer)?;
    }
    output.finish()?;
    match commands::unusable(&findings) {
        None => Ok(()),
        Some(why) => Err(unsupported(why)),
    }
}
