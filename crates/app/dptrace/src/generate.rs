//! `dptrace generate`: the bpftrace script whose output `dptrace trace -b` reads.
//!
//! Its form is that of SPDK's own `scripts/bpf/trace.py -g`, one probe a line, for SPDK's
//! `scripts/bpftrace.sh`, which replaces `__EXE__` by the program's path.

use std::path::PathBuf;

use clap::Args;
use console::messages::note;
use console::output::{self, Output};
use errors::usage;
use objects::ProbeRequest;
use whole_file::Access;

use crate::args::specs::SpecArgs;

/// `dptrace generate`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    specs: SpecArgs,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Replace __EXE__ with the path of the traced program; SPDK's scripts/bpftrace.sh does that.

Examples:
  dptrace generate -o qpair.bt                       connections
  scripts/bpftrace.sh $(pidof nvmf_tgt) qpair.bt > qpairs.txt
  dptrace generate --objects all                     every built-in kind
  dptrace generate --objects ctrlr,thread,own.toml   some, and your own
  dptrace generate | sed 's|__EXE__|/opt/spdk/bin/nvmf_tgt|' > qpair.bt
  BPFTRACE_STRLEN=150 bpftrace -p PID qpair.bt > qpairs.txt";

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    let specs = args.specs.resolve()?;
    let wanted = ProbeRequest::from_specs(&specs).map_err(|error| usage(error.to_string()))?;
    output::refuse_inputs(args.output.as_deref(), args.specs.files())?;
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    for probe in &wanted {
        output
            .buffer
            .extend_from_slice(probe.bpftrace_line().as_bytes());
        output.buffer.push(b'\n');
    }
    output.finish()?;
    let untimed: Vec<_> = wanted
        .iter()
        .filter(|probe| !probe.ticks)
        .map(|probe| probe.name)
        .collect();
    if !untimed.is_empty() {
        note(&format!(
            "SPDK v23.05 and later pass no time to {} (tsc=0x0): dptrace trace -b gives such a hit \
             the time of the line before",
            untimed.join(", ")
        ));
    }
    Ok(())
}
