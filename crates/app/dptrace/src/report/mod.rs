//! `dptrace report`: the latency of a trace or a capture as one HTML file, or one chart of it.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use console::output::Output;
use console::terminal;
use errors::usage;
use page::Report;
use page::chart::{self, Chart};
use trace_source::Place;

use crate::args::input::{self, refuse_to_overwrite};
use crate::args::objects::ObjectArgs;

/// `dptrace report`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The folder of a capture, or a trace file
    ///
    /// A capture has a trace and the kernel's events. For a trace file alone, the parts that need
    /// the kernel's events are left out.
    #[arg(value_name = "CAPTURE")]
    file: PathBuf,

    #[command(flatten)]
    objects: ObjectArgs,

    /// Show the waterfalls of the N slowest requests
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=200), help_heading = "Output")]
    slowest: u64,

    /// Give a verdict for each value of these fields
    ///
    /// As for dptrace timeline: owner.subnqn, lcore, owner.PROPERTY, ...; default: the subsystem,
    /// if the trace knows it.
    #[arg(
        long,
        value_name = "FIELD,...",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    by: Vec<String>,

    /// Write the page to this file
    ///
    /// Default: standard output, unless that is a terminal.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Write one chart instead, as SVG: for a mail or a document
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "output",
        group = "picture",
        help_heading = "Output"
    )]
    svg: Option<PathBuf>,

    /// Write one chart instead, as PNG, 1,680 pixels wide
    ///
    /// It can show the letters of ISO 8859-1; others become question marks.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "output",
        group = "picture",
        help_heading = "Output"
    )]
    png: Option<PathBuf>,

    /// The chart to write
    #[arg(long, value_enum, default_value_t = ChartKind::Heat, requires = "picture", help_heading = "Output")]
    chart: ChartKind,
}

/// A chart alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChartKind {
    /// When requests were slow, and what threads did meanwhile
    Heat,
    /// How long requests and their stages took, on a scale of nines
    Percentiles,
    /// The slowest request, with what its thread did
    Waterfall,
}

const EXAMPLES: &str = "\
The page is one file: it needs no network, and opens in any browser. It has the
verdict in words, latency over time as a heat map, who ran instead, what each
thread did, the slowest requests, the percentiles of each stage, and a table of
the connections.

Examples:
  dptrace report CAPTURE -o report.html
  dptrace report FILE -o report.html          a trace alone: no kernel
  dptrace report CAPTURE --svg heat.svg
  dptrace report CAPTURE --png heat.png
  dptrace report CAPTURE --svg slow.svg --chart waterfall";

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let place = Place::File(input::capture_or_trace(&args.file)?);
    let path = args
        .output
        .as_deref()
        .or(args.svg.as_deref())
        .or(args.png.as_deref());
    refuse_to_overwrite(&place, &args.objects, path)?;
    if path.is_none() && std::io::stdout().is_terminal() {
        return Err(usage(
            "refusing to write HTML to a terminal: use -o report.html",
        ));
    }
    let slowest = args.slowest as usize;
    let built = report::build(
        &args.file,
        &args.objects.sources(),
        &args.by,
        slowest,
        &terminal::observer(),
    )?;
    let bytes = match (&args.svg, &args.png) {
        (Some(_), _) => chart(args.chart, &built)?.svg().into_bytes(),
        (_, Some(_)) => chart(args.chart, &built)?.png()?,
        (None, None) => page::page(&built).into_bytes(),
    };
    let mut output = Output::whole(path, place.access())?;
    output.buffer.extend_from_slice(&bytes);
    Ok(output.finish()?)
}

fn chart(which: ChartKind, report: &Report) -> anyhow::Result<Chart> {
    Ok(match which {
        ChartKind::Heat => chart::heat(report),
        ChartKind::Percentiles => chart::percentiles(report),
        ChartKind::Waterfall => match report.waterfalls.first() {
            Some(slowest) => chart::waterfall(report, slowest),
            None => {
                anyhow::bail!("the trace has no complete request, so there is no waterfall to draw")
            }
        },
    })
}
