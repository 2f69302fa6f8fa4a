//! `dptrace latency`: how long each stage of a request takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use console::messages::note;
use console::output::{self, Output};
use console::terminal;
use latency::names::Names;
use latency::next::NextStep;
use latency::slowest::{self, ListCommand};
use latency::stages::{Latencies, Query};
use latency::{PassFindings, follow_objects, json, plot, remarks, summary, tables as table};
use live_objects::{BracketingReadings, with_owners};
use objects::ObjectSpec;
use records::Field;
use requests::{AddressHistory, CONNECTION, Queues, field};
use spdk_trace::{TickRate, Ticks, Tpoint, Trace};
use trace_source::{LoadedTrace, MeasuredRate, Place, beside};

use crate::args::filter::FilterArgs;
use crate::args::input::{self, Input, InputArgs, refuse_to_overwrite};
use crate::args::mistaken;
use crate::args::objects::ObjectArgs;
use crate::args::requests::Recording;

/// `dptrace latency`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    objects: ObjectArgs,

    #[command(flatten)]
    filter: FilterArgs,

    /// Print a table for each value of these fields
    ///
    /// qpair (the connection), lcore, owner, owner.PROPERTY (subnqn, peer, qid, bdev, ...),
    /// OBJECT.PROPERTY (qpair.hostnqn, ...), arg.NAME, ...
    #[arg(
        long,
        value_name = "FIELD,...",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    by: Vec<String>,

    /// Print a row for each connection (or group of --by), the slowest p99 first
    ///
    /// Objects with the same values of the --by fields form a group.
    #[arg(long, help_heading = "Output")]
    summary: bool,

    /// Print all tables of --by, and all rows of --summary
    ///
    /// By default, only the 20 slowest are printed. JSON always has all.
    #[arg(long, help_heading = "Output")]
    all: bool,

    /// Draw histograms of each stage's times, in place of tables
    ///
    /// Columns are times, on a logarithmic axis with marks for p50, p99, p99.9 and max. Heights are
    /// logarithmic, too, so that one in a million is visible. In a file or a pipe the histograms
    /// are ASCII. With --summary, each row has its own histogram below it.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    plot: bool,

    /// With --requests: stop after this time: 5s, 500ms
    ///
    /// Default: until Ctrl-C, or the end of the process.
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = ::text::duration::parse,
        requires = "requests",
        help_heading = "Input"
    )]
    duration: Option<Duration>,

    /// Also print the N slowest objects
    ///
    /// With each one's owner, where and when it took so long, all its records, and the command that
    /// lists them.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    slowest: usize,

    /// Print one JSON object on each line
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
A stage is the time between two successive records of one object; the first stage
starts at the record that creates the object. Filters choose the records: --tpoint
TCP_REQ_NEW,TCP_REQ_COMPLETED measures everything in between as one stage.
Requests that wait by design (async events of admin queues) have tables and rows of
their own, and are not among the slowest.

Examples:
  dptrace latency                         newest in /dev/shm
  dptrace latency FILE --summary          which connection is the slowest
  dptrace latency FILE --slowest 5        which requests, whose, where, when
  dptrace latency FILE --plot             is there a second mode
  dptrace latency FILE --summary --plot   which connections have it
  dptrace latency FILE --by owner.subnqn,owner.qid
  dptrace latency FILE -b qpairs.txt --by qpair.hostnqn --summary
  dptrace latency FILE --tpoint 'RDMA_REQ_*'
  dptrace latency -p postgres --requests sockets --for 3s --by arg.op";

/// Runs the command.
pub(crate) fn run(args: &LatencyArgs) -> anyhow::Result<()> {
    let Input {
        place,
        process,
        recording,
    } = args.input.resolve("latency", "measured")?;
    refuse_to_overwrite(&place, &args.objects, args.output.as_deref())?;
    mistaken::refuse(&place, args.objects.sources().recordings())?;
    let sockets = recording
        .as_ref()
        .map(Recording::pid)
        .map(NextStep::Sockets);
    if let Some(recording) = recording
        && recording.run_for(args.duration)? == 0
    {
        return Ok(());
    }
    let (show, access) = (
        match sockets.as_ref().and_then(NextStep::command) {
            Some(capture) => ListCommand::Recorded(capture),
            None => ListCommand::for_trace(&place, &args.objects.sources(), args.slowest > 0),
        },
        place.access(),
    );
    let path = if let Place::File(path) = &place {
        Some(path.clone())
    } else {
        None
    };
    let args = &LatencyArgs {
        objects: args.objects.for_place(&place),
        ..args.clone()
    };
    let around = match (process, &place) {
        (Some(pid), Place::File(path)) => {
            BracketingReadings::begin(pid, &args.objects.sources().specs()?, path)
        }
        _ => None,
    };
    let is_recorded = matches!(place, Place::Recorded(_));
    let loaded = input::load_measured(place)?;
    let alive = around.map(BracketingReadings::finish).unwrap_or_default();
    let next = match sockets {
        _ if args.json => NextStep::Nothing,
        Some(sockets) => sockets,
        None => NextStep::find(&loaded, path, process),
    };
    let report = measure(args, &alive, &loaded, (show, &next))?;
    let mut output = Output::whole(args.output.as_deref(), access)?;
    output.buffer.extend_from_slice(report.text.as_bytes());
    output.finish()?;
    // Below the report, where it is noticed.
    if is_recorded {
        note_overwritten(&loaded.trace);
    }
    loaded
        .measured
        .iter()
        .for_each(|measured| note_rate(measured, loaded.trace.tick_rate()));
    report.remarks.iter().for_each(|remark| note(remark));
    Ok(())
}

/// Least deviation of the measured rate, in millionths, at which a listing by the stated rate shows
/// visibly different times.
const VISIBLE: f64 = 500.0;

fn note_rate(measured: &MeasuredRate, stated: TickRate) {
    if measured.stated_off.abs() >= VISIBLE {
        let (measured, stated) = (measured.rate.get(), stated.get());
        note(&format!(
            "these times use the measured rate of {measured} ticks/s; the trace states {stated}, \
             which dptrace trace uses"
        ));
    }
}

/// Reports that old requests were overwritten in a trace that was recorded in memory.
fn note_overwritten(trace: &Trace) {
    if let Trace::Raw(raw) = trace
        && raw.rings().any(|ring| ring.wrapped)
    {
        note(
            "there is room for some 200,000 requests, and there were more: these are the last ones; \
             a shorter --for has all",
        );
    }
}

/// Text and notes to print.
struct Report {
    text: String,
    /// Notes to print after the text.
    remarks: Vec<String>,
}

impl LatencyArgs {
    /// Returns the fields to group by.
    fn by(&self) -> Vec<String> {
        if self.summary && self.by.is_empty() {
            vec![CONNECTION.to_owned()]
        } else {
            self.by.clone()
        }
    }

    fn question(
        &self,
        by: &[String],
        specs: &[ObjectSpec],
        tpoints: &[Tpoint],
    ) -> anyhow::Result<Query> {
        let by = by
            .iter()
            .map(|field| field::parse(field, specs))
            .collect::<anyhow::Result<Vec<_>>>()?;
        // SPDK's older traces have only an owner's prefix and number.
        let owner = if self.slowest > 0 {
            vec![field::parse(CONNECTION, specs)?, Field::Owner]
        } else {
            Vec::new()
        };
        let reused = AddressHistory::new(specs, tpoints);
        Ok(Query {
            by,
            owner,
            slowest: self.slowest,
            tails: self.summary,
            only_whole: self.summary,
            reused,
        })
    }
}

/// Formats the groups, and the slowest requests below them.
fn tables(args: &LatencyArgs, latencies: &Latencies, names: &Names<'_>) -> String {
    let groups = match (args.json, args.summary) {
        (true, true) => summary::json(latencies, names),
        (true, false) => json::stages(latencies, names),
        (false, true) => summary::text(latencies, names, args.plot),
        (false, false) if args.plot => plot::plots(latencies, names),
        (false, false) => table::tables(latencies, names),
    };
    if args.json {
        groups + &slowest::json(latencies, names)
    } else {
        groups + &slowest::text(latencies, names)
    }
}

fn measure(
    args: &LatencyArgs,
    alive: &str,
    loaded: &LoadedTrace,
    (show, next): (ListCommand, &NextStep),
) -> anyhow::Result<Report> {
    let trace = &loaded.trace;
    let specs = args.objects.sources().specs()?;
    let by = args.by();
    let (question, queues) = (
        args.question(&by, &specs, trace.tpoints().all())?,
        Queues::new(&specs)?,
    );
    let filter = args
        .filter
        .resolve(trace.tpoints().all(), &specs, trace.tick_rate())?;
    let annotator = args.objects.sources().annotator(
        specs.clone(),
        trace.tpoints(),
        alive,
        || beside::span(trace),
        &terminal::observer(),
    )?;
    let annotator = with_owners(annotator, trace, !alive.is_empty(), &terminal::observer());
    let known = requests::known_of(&loaded.trace, &specs, annotator.is_some());
    known.warn_missing(filter.fields().chain(&question.by), &terminal::observer());
    let start = if args.filter.common {
        trace.common_start()
    } else {
        Ticks(0)
    };
    let PassFindings {
        latencies,
        base,
        silences,
    } = follow_objects(
        loaded,
        annotator.as_ref(),
        filter,
        start,
        (question, queues),
        &terminal::observer(),
    )?;
    let screen = output::screen(args.output.as_deref());
    let (rate, listed) = (loaded.rate(), trace.tick_rate());
    let names = Names {
        tpoints: trace.tpoints(),
        rate,
        listed,
        by: &by,
        screen,
        base,
        show,
        all: args.all,
    };
    let mut remarks: Vec<String> = silences
        .iter()
        .map(|silence| remarks::silent(silence, next))
        .collect();
    remarks.extend(remarks::remarks(&latencies, &names));
    remarks.extend(next.names(&latencies));
    remarks.extend(next.explains(&latencies));
    Ok(Report {
        text: tables(args, &latencies, &names),
        remarks,
    })
}
