//! Traces and captures as tables in Parquet files, for SQL.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use console::output::Output;
use console::terminal;
use export::{Options, export_all};
use tables::TABLES;

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
    let options = Options {
        objects: objects.sources(),
        folder: folder.clone(),
        tables: args.tables.clone(),
        host: args.host.clone(),
        at: args.at,
    };
    let listing = export_all(&options, files, &terminal::observer())?;
    let mut output = Output::open(None)?;
    output.buffer.extend_from_slice(listing.as_bytes());
    Ok(output.flush()?)
}
