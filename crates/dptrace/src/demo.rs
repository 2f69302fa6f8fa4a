//! `dptrace demo`: what dptrace does, on a sample that it carries.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use objects::built_in;
use spdk_trace::{RawTrace, Trace};

use crate::failure::note;
use crate::input::Loaded;
use crate::output::Output;
use crate::trace::objects::annotate;
use crate::{latency, trace};

/// A generated trace of an NVMe-oF target, era F (`gen-trace --sample`, crates/testkit).
const TRACE: &[u8] = include_bytes!("../sample/demo.trace");
/// The recording of its qpairs.
const RECORDING: &str = include_str!("../sample/demo.recording");

const EXAMPLES: &str = "\
Examples:
  dptrace demo                 a listing and its latency table
  dptrace demo --write /tmp    then: dptrace latency -i /tmp/demo.trace";

/// `dptrace demo`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Records of the listing that are shown
    #[arg(long, value_name = "N", default_value_t = 32)]
    head: u64,

    /// Write the sample, demo.trace and demo.recording, into this directory instead, to try other commands on
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if let Some(dir) = &args.write {
        for (name, bytes) in [("demo.trace", TRACE), ("demo.recording", RECORDING.as_bytes())] {
            let path = dir.join(name);
            fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
            note(&format!("wrote {}", path.display()));
        }
        return Ok(());
    }
    let raw = RawTrace::read(TRACE).context("reading the sample")?;
    let loaded = Loaded { trace: Trace::Raw(raw), name: "the sample".to_owned() };
    let annotator = annotate(RECORDING, "the sample", built_in()?, loaded.trace.tpoints());
    let mut output = Output::open(None)?;
    note(
        "a sample: two reactors of an NVMe-oF target, TCP connections known by their owners, RDMA ones by a recording",
    );
    output.buffer.extend_from_slice(
        format!("$ dptrace trace -i demo.trace -b demo.recording --head {}\n", args.head).as_bytes(),
    );
    trace::first_records(&loaded, Some(&annotator), args.head, &mut output)?;
    output.buffer.extend_from_slice(b"\n$ dptrace latency -i demo.trace\n");
    output.buffer.extend_from_slice(latency::tables(&loaded, Some(&annotator))?.as_bytes());
    output.flush()?;
    note("the same files, to try more on: dptrace demo --write DIR");
    Ok(())
}
