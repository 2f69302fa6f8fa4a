//! Requests, stages, intervals and records of a trace or capture as rows of tables.
#![forbid(unsafe_code)]

mod activities;
mod consumer;
mod files;
mod histograms;
pub mod part;
mod records;
mod requests;
mod times;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use observer::Observer;
use scene::Setting;
use spdk_trace::Trace;
use tables::TABLES;
use text::printable::path as printable;
use timeline::first::survey;
use timeline::inputs::Inputs;
use timeline::missing;
use timeline::source::{Source, Ticker};
use trace_source::warn_problems;
use whole_file::Batch;

use consumer::Exporter;
use files::Destination;
use times::Times;

/// Options of an export.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files that name objects.
    pub objects: live_objects::ObjectSources,
    /// Folder of all tables.
    pub folder: PathBuf,
    /// Names of the tables to write; all if it is empty.
    pub tables: Vec<String>,
    /// Name of the host, if given.
    pub host: Option<String>,
    /// Time of the last record of a trace file in nanoseconds since 1970, if given.
    pub at: Option<i64>,
}

/// Exports traces and captures: all tables appear together, or none. Returns a list of them.
///
/// # Errors
/// Fails if one cannot be read, or a file cannot be written.
pub fn export_all(
    options: &Options,
    paths: &[PathBuf],
    observer: &Observer,
) -> anyhow::Result<String> {
    let mut written: Vec<(&str, u64, u64)> = TABLES.map(|table| (table.name, 0, 0)).to_vec();
    let (mut stems, mut batch) = (BTreeSet::new(), Batch::default());
    for path in paths {
        let exported = export(options, path, &mut stems, &mut batch, observer)
            .with_context(|| format!("exporting {}", printable(path)))?;
        for ((_, rows, bytes), (more_rows, more_bytes)) in written.iter_mut().zip(exported) {
            *rows += more_rows;
            *bytes += more_bytes;
        }
    }
    batch
        .commit()
        .context("the tables of an export appear together, or none of them")?;
    let line = |(name, rows, bytes)| {
        let (rows, bytes) = (screen::counted(rows, "row"), screen::size(bytes));
        format!("{name:<17} {rows:>16}  {bytes:>12}\n")
    };
    let written = written.into_iter().filter(|(_, rows, _)| *rows > 0);
    Ok(written.map(line).collect())
}

/// Exports one trace or capture; returns rows and bytes of each table, and adds the files to
/// `batch`.
///
/// # Errors
/// Fails if it cannot be read, or a file cannot be written.
fn export(
    options: &Options,
    path: &Path,
    stems: &mut BTreeSet<String>,
    batch: &mut Batch,
    observer: &Observer,
) -> anyhow::Result<Vec<(u64, u64)>> {
    let inputs = Inputs::open_for(path, &options.objects, &requests::FIELDS, observer)?;
    let source = &inputs.source;
    let times = Times::for_source(source, path, options.at, observer)?;
    let host = options
        .host
        .clone()
        .unwrap_or_else(|| host_of(source.meta.as_ref()));
    let capture = times.name(path);
    if !stems.insert(format!("{host}/{capture}")) {
        observer.note(&format!(
            "{} has already been exported: it is named twice",
            printable(path)
        ));
        return Ok(vec![(0, 0); TABLES.len()]);
    }
    let place = Destination {
        dir: options.folder.clone(),
        host,
        capture,
        access: trace_source::Place::File(path.to_owned()).access(),
    };
    let wanted =
        |name: &str| options.tables.is_empty() || options.tables.iter().any(|table| table == name);
    left_out(source, wanted, observer);
    let usual = if source.kernel.is_some() && source.trace.is_some() {
        let (mut first, _) = survey(&inputs, 0);
        std::mem::take(&mut first.survey).finish()
    } else {
        scene::UsualTimes::default()
    };
    let setting = Setting {
        usual,
        ..source.setting()
    };
    let mut exporter = Exporter::new(source, &times, &place, wanted);
    // Records of a trace in memory are written by another thread: that is half of the work.
    let beside = match (&source.trace, &source.ticker) {
        (Some(Trace::Raw(trace)), Ticker::Stated(rate)) => exporter
            .take_records()
            .map(|records| (records, trace, *rate)),
        _ => None,
    };
    let (passed, records) = std::thread::scope(|scope| {
        let times = &times;
        let beside = beside.map(|(records, trace, rate)| {
            scope.spawn(move || records.write_all(trace, rate, times, observer))
        });
        let passed = inputs.pass("exporting", setting, &mut exporter);
        let failed = |_| Err(anyhow::anyhow!("a thread failed"));
        (
            passed,
            beside
                .map(|thread| thread.join().unwrap_or_else(failed))
                .transpose(),
        )
    });
    if source.kernel.is_none() || source.trace.is_none() {
        warn_problems(&passed.problems, observer);
        missing::report(source, &passed, &inputs.observer);
    }
    exporter.finish(records?, batch)
}

/// Returns the host of a capture, or this one for a trace file.
fn host_of(meta: Option<&::capture::Meta>) -> String {
    let noted = meta
        .map(|meta| meta.machine.hostname.clone())
        .filter(|name| !name.is_empty());
    noted
        .or_else(host::machine::hostname)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Reports the tables that can't be made of this source, and why.
fn left_out(source: &Source, wanted: impl Fn(&str) -> bool, observer: &Observer) {
    const OF_KERNEL: [&str; 2] = ["thread_budgets", "kernel_intervals"];
    let why = "they need the kernel's events, which dptrace capture records";
    let reasons = [
        (source.kernel.is_none(), true, why),
        (source.trace.is_none(), false, "there is no trace"),
    ];
    for (_, of_kernel, why) in reasons.into_iter().filter(|(is_missing, ..)| *is_missing) {
        let names = TABLES.map(|table| table.name).into_iter();
        let missing = |name: &&str| OF_KERNEL.contains(name) == of_kernel && wanted(name);
        let names: Vec<&str> = names.filter(missing).collect();
        if !names.is_empty() {
            observer.note(&format!("there is no table {}: {why}", names.join(", ")));
        }
    }
}
