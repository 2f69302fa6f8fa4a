//! `dptrace timeline`: every request with what the kernel did to its thread, and who made the slow ones slow.

mod first;
mod json;
mod open;
mod pass;
mod perfetto;
mod report;
mod second;
mod source;
mod text;
mod threads;
mod verdict;
mod words;

use std::path::PathBuf;

use ::timeline::{KernelEvent, Setting};
use clap::Args;
use objects::ObjectSpec;
use screen::counted;

use crate::failure::{note, usage};
use crate::input::Place;
use crate::output::{self, Output};
use crate::trace::field::{Context, Field};
use crate::trace::objects::ObjectArgs;
use crate::trace::{warn_problems, with_owners};
use first::First;
use pass::{Fields, Passed, pass};
use report::{Report, verdicts};
use second::Second;
use source::Source;
use threads::Threads;

/// `dptrace timeline`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TimelineArgs {
    /// The folder of a capture, or a trace file
    ///
    /// A capture has a trace and the kernel's events. Of a trace file alone, requests and their stages are shown, and nothing of the
    /// kernel.
    #[arg(value_name = "CAPTURE")]
    dir: PathBuf,

    #[command(flatten)]
    objects: ObjectArgs,

    /// Show the N slowest requests
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Output")]
    slowest: usize,

    /// Show only requests that took longer than this: 500us, 2ms
    #[arg(long, value_name = "DURATION", value_parser = ::duration::parse, help_heading = "Output")]
    over: Option<std::time::Duration>,

    /// A verdict for each value of these fields
    ///
    /// owner.subnqn, lcore, owner.PROPERTY, OBJECT.PROPERTY, arg.NAME, ...; default: the subsystem, if the trace knows it.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', help_heading = "Output")]
    by: Vec<String>,

    /// Print one JSON object on each line: the slow requests, then the groups
    #[arg(long, conflicts_with = "ndjson", help_heading = "Output")]
    json: bool,

    /// Print what each thread did, one interval on each line, as JSON
    #[arg(long, help_heading = "Output")]
    ndjson: bool,

    /// Write a trace that Perfetto opens
    ///
    /// Requests with their stages under their connections, and what the kernel did, in Perfetto's own views.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "ndjson", "output"], help_heading = "Output")]
    perfetto: Option<PathBuf>,

    /// Of the trace for Perfetto, write only this part: 1.2s..1.3s
    ///
    /// Times from the first record on, as they are printed; one of them may be left out. Browsers give up at traces of about 1 GB.
    #[arg(long, value_name = "FROM..TO", requires = "perfetto", value_parser = perfetto::command::span, help_heading = "Output")]
    window: Option<perfetto::command::Span>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
What delayed a request has two bounds. A stage that ends by the thread's own work
is late by exactly what the kernel took of the thread. One that waits for a device
or the network is late by at most what the kernel took meanwhile, and at least by
what of that lies just before the end and beyond the usual time of that stage.

Examples:
  dptrace timeline CAPTURE
  dptrace timeline CAPTURE --over 500us --slowest 5
  dptrace timeline CAPTURE --by lcore
  dptrace timeline CAPTURE --perfetto slow.pftrace --window 1.2s..1.3s
  dptrace timeline CAPTURE --json | jq 'select(.summary) | .sentence'";

/// What requests are grouped by if nothing was said.
const SUBSYSTEM: &str = "owner.subnqn";

/// Runs the command.
pub(crate) fn run(args: &TimelineArgs) -> anyhow::Result<()> {
    let place = Place::File(args.dir.clone());
    refuse_to_overwrite(args)?;
    let source = open::source(&args.dir)?;
    let objects = args.objects.of(&place);
    let specs = objects.specs()?;
    let annotator = match &source.trace {
        Some(trace) => with_owners(objects.annotator(specs.clone(), trace.tpoints(), "")?, trace, false),
        None => None,
    };
    let rate = source.trace.as_ref().map_or(spdk_trace::TickRate::ticks_as_micros(), spdk_trace::Trace::tick_rate);
    let by = args.by(&source, annotator.is_some());
    let parse = |field: &String| alternatives(field, &specs);
    let by_fields = by.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
    let owner = [Field::parse("qpair", &specs)?, Field::Owner];
    let context = Context { rate, annotator: annotator.as_ref() };
    let fields = Fields { by: &by_fields, owner: &owner, context };
    let mut output = Output::open(args.output.as_deref())?;
    let noted = source.foresee();
    if let Some(path) = &args.perfetto {
        perfetto::command::write(path, args.window, &source, &noted, &fields)?;
    } else if args.ndjson {
        intervals(&source, &noted, &fields, &mut output)?;
    } else if source.trace.is_none() {
        let mut threads = Threads::new(args.slowest);
        let passed = pass(&source, source.setting(), &noted, &fields, &mut threads);
        report_missing(&source, &passed);
        if args.json {
            return Err(usage("the capture has no trace, and so no requests for --json: use --ndjson"));
        }
        output.buffer.extend(threads.text(&source, output::screen(args.output.as_deref())).as_bytes());
    } else {
        let text = requests(args, &source, &noted, &fields, &by);
        output.buffer.extend(text.as_bytes());
    }
    output.flush()?;
    Ok(())
}

impl TimelineArgs {
    /// What is grouped by: if nothing was said, by what the trace knows of a subsystem.
    fn by(&self, source: &Source, has_objects: bool) -> Vec<String> {
        let default = match &source.trace {
            Some(trace) if has_objects || trace.has_owners() => vec![SUBSYSTEM.to_owned()],
            _ => Vec::new(),
        };
        if self.by.is_empty() { default } else { self.by.clone() }
    }
}

/// The field, and what stands for it where it is missing: owners know their subsystems; RDMA's records have none, but a recording
/// may.
fn alternatives(field: &str, specs: &[ObjectSpec]) -> anyhow::Result<Vec<Field>> {
    let other = (field == SUBSYSTEM).then_some("qpair.subnqn");
    std::iter::once(field).chain(other).map(|name| Field::parse(name, specs)).collect()
}

/// The output must not be one of the inputs.
fn refuse_to_overwrite(args: &TimelineArgs) -> anyhow::Result<()> {
    let output = args.output.as_deref().or(args.perfetto.as_deref());
    crate::trace::refuse_to_overwrite(&Place::File(args.dir.clone()), &args.objects, output)
}

/// Both passes over the requests, as text.
fn requests(args: &TimelineArgs, source: &Source, noted: &[KernelEvent], fields: &Fields<'_>, by: &[String]) -> String {
    let mut first = First::new(source, args.slowest);
    let passed = pass(source, source.setting(), noted, fields, &mut first);
    warn_problems(&passed.problems);
    report_missing(source, &passed);
    if first.early > 0 {
        let requests = counted(first.early, "request");
        let are = if first.early == 1 { "is" } else { "are" };
        note(&format!("{requests} from before the kernel's events begin {are} left out"));
    }
    let over = args.over.map_or(0, |over| u64::try_from(over.as_nanos()).unwrap_or(u64::MAX));
    let usual = std::mem::take(&mut first.survey).finish();
    let detail_over = first.slowest_from().max(over);
    let setting = Setting { usual: usual.clone(), detail_over, ..source.setting() };
    let mut second = Second::new(source, &first.times, args.slowest, over);
    pass(source, setting, noted, fields, &mut second);
    let slowest = second.take_slowest();
    if first.times.is_empty() {
        note("the trace has no object from its creation to its end: there is nothing to explain");
    } else if over > 0 && slowest.is_empty() {
        note(&format!("no request took longer than {}", screen::time(over)));
    }
    let screen = output::screen(args.output.as_deref());
    let (verdicts, beyond) = (verdicts(&first, &second, by), second.beyond);
    let begin = passed.begin;
    let report = Report { source, begin, screen, by, verdicts, slowest, beyond, over, usual };
    if args.json { json::json(&report) } else { text::text(&report) }
}

fn intervals(source: &Source, noted: &[KernelEvent], fields: &Fields<'_>, output: &mut Output) -> anyhow::Result<()> {
    if source.kernel.is_none() {
        return Err(usage("there are no events of the kernel, and so no intervals for --ndjson"));
    }
    // Intervals are of threads: records are not needed for them.
    let mut failed = Ok(());
    let write = |line: &str| {
        if failed.is_ok() {
            output.buffer.extend_from_slice(line.as_bytes());
            failed = output.drain();
        }
    };
    let mut consumer = json::Intervals { source, write };
    let passed = pass(source, source.setting(), noted, fields, &mut consumer);
    failed?;
    report_missing(source, &passed);
    Ok(())
}

/// What is missing of the whole.
fn report_missing(source: &Source, passed: &Passed) {
    if passed.unseen > 0 {
        let are = if passed.unseen == 1 { "is" } else { "are" };
        let records = counted(passed.unseen, "record");
        note(&format!("{records} of objects created before the trace begins {are} not counted"));
    }
    if passed.lost > 0 {
        let events = counted(passed.lost, "event");
        note(&format!("{events} of the kernel were lost: these times are unknown, and nobody is blamed for them"));
    }
    if let Some(cut) = &passed.cut {
        note(&format!("the kernel's events end early: {cut}"));
    }
    let Some(kernel) = &source.kernel else { return };
    if passed.events == 0 {
        note("the kernel reported nothing of these threads: whatever they did is unknown");
    } else if !kernel.has_last || passed.cut.is_some() {
        // As times are counted in what is printed.
        let begin = if passed.records > 0 { passed.begin } else { kernel.start };
        let known = screen::time(passed.known.0.saturating_sub(begin.0));
        note(&format!(
            "the kernel's events reach until {known} after the begin: what comes later is unknown, and nobody is blamed for it"
        ));
    }
}
