//! A report as text or JSON, and for Perfetto: every request with what the kernel did to its thread,
//! and the causes of slow requests.

use std::path::{Path, PathBuf};

use clap::Args;
use console::output::{self, Output};
use console::terminal;
use observer::Progress;
use timeline::inputs::Inputs;
use timeline::{Options, Overview, perfetto};
use trace_source::Place;
use whole_file::Access;

use crate::args::input;
use crate::args::objects::ObjectArgs;

/// Requests to show and to judge, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(super) struct VerdictArgs {
    /// Show the N slowest requests
    ///
    /// Default: 20.
    #[arg(long, value_name = "N")]
    pub(super) slowest: Option<usize>,

    /// Give a verdict for each value of these fields
    ///
    /// owner.subnqn, lcore, owner.PROPERTY, OBJECT.PROPERTY, arg.NAME, ...; default: the subsystem,
    /// if the trace knows it.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub(super) by: Vec<String>,
}

impl VerdictArgs {
    /// Returns the number of requests to show.
    pub(super) fn slowest(&self) -> usize {
        self.slowest.unwrap_or(20)
    }
}

/// The explanations as text or JSON, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(super) struct TextArgs {
    /// Show the stages of all listed requests
    ///
    /// By default, only for 3 requests, each delayed by a different stall. JSON always has all.
    #[arg(long)]
    pub(super) all: bool,

    /// Show only requests that took longer than this: 500us, 2ms
    #[arg(long, value_name = "DURATION", value_parser = ::text::duration::parse)]
    pub(super) over: Option<std::time::Duration>,

    /// Print one JSON object on each line: the slow requests, then the groups
    #[arg(long, conflicts_with = "ndjson")]
    pub(super) json: bool,

    /// Print what each thread did, one interval on each line, as JSON
    #[arg(long)]
    pub(super) ndjson: bool,
}

impl TextArgs {
    /// Reports whether an option was given that only text and JSON have.
    pub(super) fn is_given(&self) -> bool {
        self.all || self.over.is_some() || self.json || self.ndjson
    }
}

/// A trace for Perfetto, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Perfetto")]
pub(super) struct PerfettoArgs {
    /// Write a trace that Perfetto opens
    ///
    /// Requests with their stages under their connections, and what the kernel did, in Perfetto's
    /// own views.
    #[arg(long = "perfetto", value_name = "FILE", conflicts_with_all = ["json", "ndjson"])]
    pub(super) perfetto: Option<PathBuf>,

    /// Write only this part of the Perfetto trace: 1.2s..1.3s
    ///
    /// Times count from the start of the recording, as in the output; either may be left out.
    /// Browsers give up on traces of about 1 GB.
    #[arg(long, value_name = "FROM..TO", requires = "perfetto", value_parser = perfetto::command::span)]
    window: Option<perfetto::command::Span>,
}

/// Capture or trace to read, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The folder of a capture, or a trace file.
    pub(super) path: &'a Path,
    /// Sources of names.
    pub(super) objects: &'a ObjectArgs,
    /// Requests to show and to judge.
    pub(super) verdict: &'a VerdictArgs,
}

impl Source<'_> {
    /// Returns the access mode of what is written of the source, whose files `written` must not
    /// replace.
    pub(super) fn access(&self, written: Option<&Path>) -> anyhow::Result<Access> {
        let place = Place::File(self.path.to_owned());
        input::refuse_to_overwrite(&place, self.objects, written)?;
        Ok(place.access())
    }

    /// Opens the source, whose files `written` must not replace.
    fn open(&self, written: Option<&Path>) -> anyhow::Result<(Inputs, Access)> {
        let access = self.access(written)?;
        let (objects, observer) = (self.objects.sources(), terminal::observer());
        let inputs = Inputs::open(self.path, &objects, &self.verdict.by, &observer)?;
        Ok((inputs, access))
    }
}

/// Writes the trace for Perfetto, if one was requested.
pub(super) fn write_perfetto(source: &Source<'_>, args: &PerfettoArgs) -> anyhow::Result<()> {
    let Some(path) = &args.perfetto else {
        return Ok(());
    };
    let (inputs, access) = source.open(Some(path))?;
    perfetto::command::write(path, args.window, &inputs, access)
}

/// Prints the explanations after what an overview says, to `written` or to standard output.
pub(super) fn print(
    source: &Source<'_>,
    args: &TextArgs,
    overview: Option<&Overview>,
    written: Option<&Path>,
) -> anyhow::Result<()> {
    let (inputs, access) = source.open(written)?;
    let mut output = Output::whole(written, access)?;
    if args.ndjson {
        let progress = Progress::new(&terminal::observer_beside(&output));
        timeline::intervals(&inputs, progress, |line| {
            output.buffer.extend_from_slice(line.as_bytes());
            output.drain()
        })?;
        return Ok(output.finish()?);
    }
    let options = Options {
        slowest: source.verdict.slowest(),
        over: args.over,
        all: args.all,
        lists_fast: source.verdict.slowest.is_some(),
        as_json: args.json,
        screen: output::screen(written),
    };
    let text = timeline::explanations(&inputs, &options, overview)?;
    output.buffer.extend(text.as_bytes());
    Ok(output.finish()?)
}
