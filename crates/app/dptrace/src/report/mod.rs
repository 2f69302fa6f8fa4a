//! `dptrace report`: a trace or a capture, explained as text, as one HTML file or one chart of it, as
//! a trace for Perfetto, as tables for SQL.

mod compare;
mod tables;
mod text;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use console::messages::note;
use console::output::Output;
use console::terminal;
use errors::usage;
use page::chart::{self, Chart};
use page::{PerfettoFile, Report};
use timeline::Overview;

use crate::args::input;
use crate::args::objects::ObjectArgs;
use tables::TableArgs;
use text::{PerfettoArgs, Source, TextArgs, VerdictArgs};

/// `dptrace report`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The folder of a capture, or a trace file; two are compared
    ///
    /// A capture has a trace and the kernel's events. For a trace file alone, the parts that need
    /// the kernel's events are left out. In a folder of capture --slow, all captures are listed,
    /// and the slowest is explained. --parquet takes several.
    #[arg(value_name = "CAPTURE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    objects: ObjectArgs,

    #[command(flatten)]
    verdict: VerdictArgs,

    /// Write one HTML page to this file: report.html
    ///
    /// With --text, --json or --ndjson, that is written to the file instead.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Write the explanations as text; without -o, this is the default
    #[arg(long, conflicts_with_all = ["json", "ndjson"], help_heading = "Output")]
    text: bool,

    #[command(flatten)]
    explanations: TextArgs,

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

    #[command(flatten)]
    perfetto: PerfettoArgs,

    #[command(flatten)]
    tables: TableArgs,
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
It explains the slow requests in words: which stage was late, what the thread did \
meanwhile, and who took its CPU. A delay has two bounds. A stage that ends with the thread's own \
work is late by exactly the time that others took from the thread. A stage that waits for a device \
or the network is late by at most the time that others took meanwhile, and by at least the part of \
it that lies just before the stage's end and beyond the stage's usual time.

The page is one file: it needs no network, and opens in any browser. It has the verdict in words, \
latency over time as a heat map, who ran instead, what each thread did, the slowest requests, the \
percentiles of each stage, and a table of the connections.

Examples:
  dptrace report CAPTURE
  dptrace report CAPTURE --over 500us --slowest 5
  dptrace report CAPTURE -o report.html
  dptrace report FILE -o report.html          a trace alone: no kernel
  dptrace report CAPTURE --png heat.png
  dptrace report CAPTURE --perfetto slow.pftrace --window 1.2s..1.3s
  dptrace report CAPTURE FILE --parquet DIR   tables for SQL
  dptrace report CAPTURE LATER                what changed
  dptrace report CAPTURE --json | jq 'select(.summary) | .sentence'";

/// Most waterfalls on a page: a browser draws each.
const MAX_WATERFALLS: usize = 200;

/// Main output of a report; tables and traces for Perfetto are written besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Text or JSON.
    Text,
    /// An HTML page, or one chart of it.
    Page,
    /// None: only other files were requested.
    Nothing,
}

/// Names of the command, which have main outputs of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportName {
    Report,
    /// Text, unless a trace for Perfetto is written.
    Timeline,
    /// Tables, which must be requested.
    Export,
}

impl ReportArgs {
    /// Determines the main output.
    fn form(&self, name: ReportName) -> anyhow::Result<Form> {
        if name == ReportName::Export && self.tables.parquet.is_none() {
            return Err(usage("nothing to export: give --parquet DIR"));
        }
        let is_page_named = self.output.as_deref().is_some_and(is_html);
        let is_timeline = name == ReportName::Timeline && self.perfetto.perfetto.is_none();
        if self.text || self.explanations.is_given() || is_timeline {
            return if is_page_named || self.picture().is_some() {
                Err(usage(
                    "--text, --json, --ndjson, --all and --over are not for pages and charts: leave \
                     them out, or write to another file",
                ))
            } else {
                Ok(Form::Text)
            };
        }
        let is_page = self.output.is_some() || self.picture().is_some();
        let is_other = self.perfetto.perfetto.is_some() || self.tables.parquet.is_some();
        match (is_page, is_other) {
            (true, _) => self.check_page().map(|()| Form::Page),
            (false, true) => Ok(Form::Nothing),
            (false, false) => Ok(Form::Text),
        }
    }

    /// Checks the options of a page.
    fn check_page(&self) -> anyhow::Result<()> {
        let slowest = self.verdict.slowest();
        if slowest > MAX_WATERFALLS {
            return Err(usage(format!(
                "--slowest {slowest}: a page shows at most {MAX_WATERFALLS} requests; --text shows more"
            )));
        }
        let is_html = self.output.as_deref() == Some(Path::new("-"));
        if is_html && std::io::stdout().is_terminal() {
            return Err(usage(
                "refusing to write HTML to a terminal: use -o report.html",
            ));
        }
        Ok(())
    }

    /// Returns the file of the chart.
    fn picture(&self) -> Option<&Path> {
        self.svg.as_deref().or(self.png.as_deref())
    }
}

/// Reports whether a file is named as a page.
fn is_html(path: &Path) -> bool {
    path.extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("html") || it.eq_ignore_ascii_case("htm"))
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, name: ReportName) -> anyhow::Result<()> {
    let form = args.form(name)?;
    let is_one = form != Form::Nothing || args.perfetto.perfetto.is_some();
    if is_one && args.files.len() > 1 {
        return compare::run(args, form);
    }
    let (objects, observer) = (args.objects.sources(), terminal::observer());
    let overview = Overview::from_files(&args.files, &objects, &observer)?;
    let files = args.files.iter().map(|path| input::capture_or_trace(path));
    let files = match &overview {
        Some(overview) => overview.paths(),
        None => files.collect::<anyhow::Result<_>>()?,
    };
    tables::write(&files, &args.objects, &args.tables)?;
    let slowest = overview.as_ref().map(Overview::slowest);
    let Some(path) = slowest.or((files.len() == 1).then_some(&*files[0])) else {
        return Ok(());
    };
    let source = Source {
        path,
        objects: &args.objects,
        verdict: &args.verdict,
    };
    let lists = form == Form::Text && !args.explanations.ndjson;
    if let Some(overview) = overview.as_ref().filter(|_| is_one && !lists) {
        note(&overview.note());
    }
    text::write_perfetto(&source, &args.perfetto)?;
    let output = args.output.as_deref();
    match form {
        Form::Text => text::print(&source, &args.explanations, overview.as_ref(), output),
        Form::Page => write_page(&source, args),
        Form::Nothing => Ok(()),
    }
}

/// Writes the page, or one chart of it.
fn write_page(source: &Source<'_>, args: &ReportArgs) -> anyhow::Result<()> {
    let path = args.output.as_deref().or(args.picture());
    let access = source.access(path)?;
    let mut built = report::build(
        source.path,
        &source.objects.sources(),
        &source.verdict.by,
        source.verdict.slowest(),
        &terminal::observer(),
    )?;
    let trace = args.perfetto.perfetto.as_deref();
    built.perfetto = trace.map(|file| PerfettoFile::from_paths(path, file));
    let bytes = match (&args.svg, &args.png) {
        (Some(_), _) => chart(args.chart, &built)?.svg().into_bytes(),
        (_, Some(_)) => chart(args.chart, &built)?.png()?,
        (None, None) => page::page(&built).into_bytes(),
    };
    let mut output = Output::whole(path, access)?;
    output.buffer.extend_from_slice(&bytes);
    Ok(output.finish()?)
}

fn chart(which: ChartKind, report: &Report) -> anyhow::Result<Chart> {
    Ok(match which {
        ChartKind::Heat => chart::heat(report),
        ChartKind::Percentiles => chart::percentiles(report),
        ChartKind::Waterfall => {
            let slowest = report.waterfalls.first();
            let why = "the trace has no complete request, so there is no waterfall to draw";
            chart::waterfall(report, slowest.context(why)?)
        }
    })
}
