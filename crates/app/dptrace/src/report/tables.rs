//! Traces and captures as tables in Parquet files, for SQL.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use console::output::Output;
use console::terminal;
use export::{Options, export};
use screen::counted;
use tables::TABLES;
use text::printable::path as printable;
use whole_file::Batch;

use crate::args::objects::ObjectArgs;

/// Tables to write, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tables for SQL")]
pub(super) struct TableArgs {
    /// Write tables for SQL below this folder
    ///
    /// Each table has a folder there, and in it one for each day, hour and host:
    /// requests/date=2026-11-23/hour=06/host=NAME. A folder of other exports may be named again: a
    /// file is replaced only by the export of the same trace.
    #[arg(long, value_name = "DIR")]
    pub(super) parquet: Option<PathBuf>,

    /// Write only these tables
    ///
    /// Default: all tables that the input allows.
    #[arg(
        long,
        value_name = "TABLE,...",
        value_delimiter = ',',
        requires = "parquet",
        value_parser = PossibleValuesParser::new(TABLES.map(|table| table.name)).map(|name| name),
    )]
    tables: Vec<String>,

    /// The name of the host on which the trace was made
    ///
    /// Default: for a capture, the host name in it; for a trace file, this machine's.
    #[arg(long, value_name = "NAME", requires = "parquet")]
    host: Option<String>,

    /// When the last record of a trace file was written: 2026-11-23T06:32:00Z
    ///
    /// A trace file counts ticks and has no date. Default: when the file was last
    /// changed. Captures have a date.
    #[arg(long, value_name = "TIME", requires = "parquet", value_parser = text::utc::read)]
    at: Option<i64>,
}

/// Writes the tables of these traces and captures, if tables were requested.
pub(super) fn write(
    files: &[PathBuf],
    objects: &ObjectArgs,
    args: &TableArgs,
) -> anyhow::Result<()> {
    let Some(folder) = &args.parquet else {
        return Ok(());
    };
    let mut written: Vec<(&'static str, u64, u64)> =
        TABLES.map(|table| (table.name, 0, 0)).to_vec();
    let options = Options {
        objects: objects.sources(),
        folder: folder.clone(),
        tables: args.tables.clone(),
        host: args.host.clone(),
        at: args.at,
    };
    let observer = terminal::observer();
    let (mut stems, mut batch) = (BTreeSet::new(), Batch::default());
    for path in files {
        let exported = export(&options, path, &mut stems, &mut batch, &observer)
            .with_context(|| format!("exporting {}", printable(path)))?;
        for ((_, rows, bytes), (more_rows, more_bytes)) in written.iter_mut().zip(exported) {
            *rows += more_rows;
            *bytes += more_bytes;
        }
    }
    batch
        .commit()
        .context("the tables of an export appear together, or none of them")?;
    let mut output = Output::open(None)?;
    for (name, rows, bytes) in written.into_iter().filter(|(_, rows, _)| *rows > 0) {
        let line = format!(
            "{name:<17} {:>16}  {:>12}\n",
            counted(rows, "row"),
            screen::size(bytes)
        );
        output.buffer.extend_from_slice(line.as_bytes());
    }
    output.flush()?;
    Ok(())
}
