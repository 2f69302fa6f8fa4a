//! `dptrace latency`: how long each stage of a request takes.

mod report;
mod spread;
mod stages;

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use objects::Annotator;
use spdk_trace::Ticks;

use crate::failure::note;
use crate::input::{InputArgs, Loaded};
use crate::output::Output;
use crate::trace::field::{Context, Field};
use crate::trace::filter::{Filter, FilterArgs};
use crate::trace::objects::ObjectArgs;
use crate::trace::{known_of, nothing_read, refuse_to_overwrite, tell_problems, with_owners};
use report::Names;
use stages::{Latencies, Tracker};

/// `dptrace latency`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    objects: ObjectArgs,

    #[command(flatten)]
    filter: FilterArgs,

    /// Print a table for each value of these fields: lcore, owner, owner.PROPERTY (subnqn, peer, qid, bdev, ...),
    /// OBJECT.PROPERTY (qpair.hostnqn, ...), arg.NAME, ...
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', help_heading = "Output")]
    by: Vec<String>,

    /// Also print the N slowest objects with all their records
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    slowest: usize,

    /// Print one JSON object on each line instead of tables
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
A stage is the time between two successive records of one object; the first stage
starts at the record that creates the object. Filters choose the records: --tpoint
TCP_REQ_NEW,TCP_REQ_COMPLETED measures all that lies between as one stage.
Requests that wait by design (async events of admin queues) can have nearly all of
the time: leave them out with --where 'owner.qid>0'.

Examples:
  dptrace latency                                       newest in /dev/shm
  dptrace latency -i FILE --by owner.subnqn,owner.qid   modern TCP targets
  dptrace latency -i FILE -b qpairs.txt --by qpair.hostnqn
  dptrace latency -i FILE --tpoint 'RDMA_REQ_*' --slowest 5";

/// Runs the command.
pub(crate) fn run(args: &LatencyArgs) -> anyhow::Result<()> {
    let place = args.input.place()?;
    refuse_to_overwrite(&place, &args.objects, args.output.as_deref())?;
    let text = measure(args, &place.load(false)?)?;
    let mut output = Output::open(args.output.as_deref())?;
    output.buffer.extend_from_slice(text.as_bytes());
    output.flush()?;
    Ok(())
}

fn measure(args: &LatencyArgs, loaded: &Loaded) -> anyhow::Result<String> {
    let trace = &loaded.trace;
    let specs = args.objects.specs()?;
    let by = args.by.iter().map(|field| Field::parse(field, &specs)).collect::<anyhow::Result<Vec<_>>>()?;
    let filter = args.filter.resolve(trace.tpoints().all(), &specs, trace.tick_rate())?;
    let annotator = with_owners(args.objects.annotator(specs.clone(), trace.tpoints())?, trace);
    known_of(loaded, &specs, annotator.is_some()).tell_missing(filter.fields().chain(&by));
    let start = if args.filter.common { trace.common_start() } else { Ticks(0) };
    let latencies = follow_objects(loaded, annotator.as_ref(), filter, start, Grouping { by, slowest: args.slowest })?;
    let names = Names { tpoints: trace.tpoints(), rate: trace.tick_rate(), by: &args.by };
    Ok(if args.json { report::json(&latencies, &names) } else { report::tables(&latencies, &names) })
}

/// The tables of a whole trace, for the demo.
pub(crate) fn tables(loaded: &Loaded, annotator: Option<&Annotator>) -> anyhow::Result<String> {
    let trace = &loaded.trace;
    let filter = FilterArgs::default().resolve(trace.tpoints().all(), &[], trace.tick_rate())?;
    let latencies = follow_objects(loaded, annotator, filter, Ticks(0), Grouping { by: Vec::new(), slowest: 0 })?;
    Ok(report::tables(&latencies, &Names { tpoints: trace.tpoints(), rate: trace.tick_rate(), by: &[] }))
}

/// What the times are sorted into.
struct Grouping {
    by: Vec<Field>,
    slowest: usize,
}

fn follow_objects(
    loaded: &Loaded,
    annotator: Option<&Annotator>,
    mut filter: Filter,
    start: Ticks,
    grouping: Grouping,
) -> anyhow::Result<Latencies> {
    let trace = &loaded.trace;
    let context = Context { rate: trace.tick_rate(), annotator };
    let mut tracker = Tracker::new(grouping.by, trace.tick_rate(), grouping.slowest);
    let (mut base, mut read) = (None, 0u64);
    let problems = trace.for_each(|record| {
        read += 1;
        if record.tsc >= start {
            let base = *base.get_or_insert(record.tsc);
            if filter.wants(record, base, &context) {
                tracker.record(record, &context);
            }
        }
        ControlFlow::Continue(())
    });
    tell_problems(&problems);
    if read == 0 {
        nothing_read(loaded, &problems)?;
    }
    if tracker.unseen > 0 {
        note(&format!("{} records of objects created before the trace begins are not counted", tracker.unseen));
    }
    let latencies = tracker.finish_all();
    if read > 0 && latencies.subjects.is_empty() {
        note("the filtered trace creates no object: there is nothing to measure");
    }
    Ok(latencies)
}
