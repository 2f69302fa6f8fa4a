//! `dptrace export`: traces and captures as tables in files of Parquet, for SQL.

mod activities;
mod consumer;
mod files;
mod histograms;
pub(crate) mod part;
mod records;
mod requests;
mod times;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use scene::Setting;
use screen::counted;
use spdk_trace::Trace;
use tables::TABLES;
use text::printable::path as printable;
use timeline::first::survey;
use timeline::inputs::Inputs;
use timeline::missing;
use timeline::source::{Source, Ticker};
use trace_source::warn_problems;
use whole_file::Batch;

use crate::messages::note;
use crate::output::Output;
use crate::terminal;
use crate::trace::objects::ObjectArgs;
use consumer::Exporter;
use files::Place;
use times::Times;

/// `dptrace export`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Trace files, and folders of captures
    ///
    /// A capture has a trace and the kernel's events. Of a trace file alone, the tables that need the kernel's events are left out.
    #[arg(value_name = "FILE|CAPTURE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    objects: ObjectArgs,

    /// Write the tables below this folder
    ///
    /// Each table has a folder there, and in it one for each day, hour and host: requests/date=2026-11-23/hour=06/host=NAME. A folder
    /// of other exports may be named again: a file is replaced only by the export of the same trace.
    #[arg(long, value_name = "DIR", required = true, help_heading = "Output")]
    parquet: PathBuf,

    /// Write only these tables
    ///
    /// Default: all that can be made of the input.
    #[arg(
        long,
        value_name = "TABLE,...",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(TABLES.map(|table| table.name)).map(|name| name),
        help_heading = "Output"
    )]
    tables: Vec<String>,

    /// The name of the host that the trace is of
    ///
    /// Default: the one that a capture has noted; of a trace file, this machine's.
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    host: Option<String>,

    /// When the last record of a trace file was written: 2026-11-23T06:32:00Z
    ///
    /// A trace file counts ticks, and does not say when that was. Default: when the file was last changed. Captures know it.
    #[arg(long, value_name = "TIME", value_parser = text::utc::read, help_heading = "Output")]
    at: Option<i64>,
}

const EXAMPLES: &str = "\
The tables and their columns: docs/export.md. Questions as SQL files for
DuckDB, ClickHouse and Spark: queries/, docs/fleet.md.

Examples:
  dptrace export FILE --parquet DIR
  dptrace export CAPTURE --parquet DIR --tables requests,request_stages
  dptrace export CAPTURE FILE --parquet DIR --host node7
  duckdb -c \"FROM 'DIR/requests/*/*/*/*.parquet' ORDER BY whole_ns DESC\"";

/// Runs the command.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let mut written: Vec<(&'static str, u64, u64)> = TABLES.map(|table| (table.name, 0, 0)).to_vec();
    let (mut stems, mut batch) = (HashSet::new(), Batch::default());
    for path in &args.files {
        let exported =
            one(args, path, &mut stems, &mut batch).with_context(|| format!("exporting {}", printable(path)))?;
        for ((_, rows, bytes), (more_rows, more_bytes)) in written.iter_mut().zip(exported) {
            *rows += more_rows;
            *bytes += more_bytes;
        }
    }
    batch.commit().context("the tables of an export appear together, or none of them")?;
    let mut output = Output::open(None)?;
    for (name, rows, bytes) in written.into_iter().filter(|(_, rows, _)| *rows > 0) {
        let line = format!("{name:<17} {:>16}  {:>12}\n", counted(rows, "row"), kib(bytes));
        output.buffer.extend_from_slice(line.as_bytes());
    }
    output.flush()?;
    Ok(())
}

/// Bytes, rounded up to KiB.
fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

/// Exports one trace or capture; returns rows and bytes of each table, and adds the files to `batch`.
fn one(
    args: &ExportArgs,
    path: &Path,
    stems: &mut HashSet<String>,
    batch: &mut Batch,
) -> anyhow::Result<Vec<(u64, u64)>> {
    let path = trace_source::named(path, &terminal::observer());
    let inputs = Inputs::open_for(&path, &args.objects.sources(), &requests::FIELDS, &terminal::observer())?;
    let source = &inputs.source;
    let times = Times::of(source, &path, args.at)?;
    let host = args.host.clone().unwrap_or_else(|| host_of(source.meta.as_ref()));
    let capture = times.name(&path);
    if !stems.insert(format!("{host}/{capture}")) {
        note(&format!("{} was exported already: it is named twice", printable(&path)));
        return Ok(vec![(0, 0); TABLES.len()]);
    }
    let place =
        Place { dir: args.parquet.clone(), host, capture, access: trace_source::Place::File(path.clone()).access() };
    let wanted = |name: &str| args.tables.is_empty() || args.tables.iter().any(|table| table == name);
    left_out(source, wanted);
    let usual = if source.kernel.is_some() && source.trace.is_some() {
        let (mut first, _) = survey(&inputs, 0);
        std::mem::take(&mut first.survey).finish()
    } else {
        scene::Usual::default()
    };
    let setting = Setting { usual, ..source.setting() };
    let mut exporter = Exporter::new(source, &times, &place, wanted);
    // Of a trace in memory, records are written beside all else: that is half of the work.
    let beside = match (&source.trace, &source.ticker) {
        (Some(Trace::Raw(trace)), Ticker::Stated(rate)) => {
            exporter.take_records().map(|records| (records, trace, *rate))
        }
        _ => None,
    };
    let (passed, records) = std::thread::scope(|scope| {
        let times = &times;
        let beside = beside.map(|(records, trace, rate)| scope.spawn(move || records.write_all(trace, rate, times)));
        let passed = inputs.pass("exporting", setting, &mut exporter);
        let failed = |_| Err(anyhow::anyhow!("a thread failed"));
        (passed, beside.map(|thread| thread.join().unwrap_or_else(failed)).transpose())
    });
    if source.kernel.is_none() || source.trace.is_none() {
        warn_problems(&passed.problems, &terminal::observer());
        missing::report(source, &passed, &inputs.observer);
    }
    exporter.finish(records?, batch)
}

/// The host of a capture; of a trace file, this one.
fn host_of(meta: Option<&::capture::Meta>) -> String {
    let noted = meta.map(|meta| meta.machine.hostname.clone()).filter(|name| !name.is_empty());
    noted.or_else(host::machine::hostname).unwrap_or_else(|| "unknown".to_owned())
}

/// Reports tables that can't be made of this, and why.
fn left_out(source: &Source, wanted: impl Fn(&str) -> bool) {
    const OF_KERNEL: [&str; 2] = ["thread_budgets", "kernel_intervals"];
    let why = "they are made of the kernel's events, which dptrace capture records";
    let reasons = [(source.kernel.is_none(), true, why), (source.trace.is_none(), false, "there is no trace")];
    for (_, of_kernel, why) in reasons.into_iter().filter(|(is_missing, ..)| *is_missing) {
        let names = TABLES.map(|table| table.name).into_iter();
        let missing = |name: &&str| OF_KERNEL.contains(name) == of_kernel && wanted(name);
        let names: Vec<&str> = names.filter(missing).collect();
        if !names.is_empty() {
            note(&format!("there is no table {}: {why}", names.join(", ")));
        }
    }
}
