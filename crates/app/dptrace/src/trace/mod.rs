//! `dptrace trace`: prints a trace with the names of its objects.

mod dpdk;
mod follow;
mod format;
mod live;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::objects::{Annotator, ObjectSpec};
use clap::Args;
use console::messages::note;
use console::output::{self, Output};
use console::terminal;
use errors::usage;
use live_objects::with_owners;
use records::{Filter, Head};
use screen::Screen;
use spdk_trace::{TickRate, Ticks, TpointTable};
use trace_source::{Application, LoadedTrace, Place, beside, info, nothing_read, warn_problems};
use whole_file::Access;

use crate::args::filter::FilterArgs;
use crate::args::input::{self, Input, InputArgs, refuse_to_overwrite};
use crate::args::mistaken;
use crate::args::objects::ObjectArgs;
use crate::listing::{self, ListOptions};
use format::FormatName;
use live::follow_trace;

/// `dptrace trace`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    objects: ObjectArgs,

    #[command(flatten)]
    filter: FilterArgs,

    /// Output format: text, spdk, json, ndjson or csv
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORM",
        help_heading = "Output"
    )]
    format: FormatName,

    /// The same as --format ndjson: one JSON object on each line
    ///
    /// With --info one object for the trace, with --list-tpoints one for each tracepoint.
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    json: bool,

    /// Print whole lines, even on a terminal
    ///
    /// By default, lines on a terminal are cut to its width, and a connection's name is printed
    /// once, with a number that stands for it from then on.
    #[arg(long, help_heading = "Output")]
    full: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Also print the raw ticks of each record
    #[arg(long, help_heading = "Output")]
    tsc: bool,

    /// Also print the time since the previous record
    ///
    /// The previous record is the last one printed. In the format spdk it replaces the time; the
    /// format json does not have it.
    #[arg(long, help_heading = "Output")]
    delta: bool,

    /// Only the first N records that pass the filters
    #[arg(long, value_name = "N", help_heading = "Output")]
    head: Option<u64>,

    /// Only the last N records that pass the filters
    #[arg(long, value_name = "N", help_heading = "Output")]
    tail: Option<usize>,

    /// Follow a live trace, oldest records first, until interrupted or until the application ends
    #[arg(short = 'F', long, conflicts_with_all = ["tail", "common", "list_tpoints", "info"], help_heading = "Output")]
    follow: bool,

    /// With -F, --requests, or -p without -s: stop after this time: 5 or 5s (seconds), 500ms, 1m30s
    #[arg(long = "for", value_name = "DURATION", value_parser = ::text::duration::parse, help_heading = "Output")]
    duration: Option<Duration>,

    /// With -p: attach to no probes; names come from the process's memory only
    #[arg(long, requires = "ProcessOptions", help_heading = "Objects")]
    no_probes: bool,

    /// List the tracepoints that the trace can contain
    #[arg(long, conflicts_with_all = ["info", "requests"], help_heading = "Instead of records")]
    list_tpoints: bool,

    /// Describe the file
    ///
    /// Era, tick rate, lcores, number of records, overwritten and lost records, owners.
    #[arg(long, conflicts_with = "requests", help_heading = "Instead of records")]
    info: bool,

    /// With --info: list all owners
    ///
    /// By default, only the first 20 are listed. JSON always has all.
    #[arg(long, requires = "info", help_heading = "Instead of records")]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  dptrace trace                                         newest in /dev/shm
  dptrace trace -i FILE -b RECORDING                    connections named
  spdk_trace -f FILE -j | dptrace trace -b qpairs.txt   the same from JSON
  dptrace trace -s nvmf -p PID --tpoint 'TCP_REQ_*' --tail 20
  dptrace trace -p PID --for 10s                        live, connections named
  dptrace trace -p postgres --requests sockets          requests of any server
  dptrace trace -i FILE --where 'owner.subnqn=*cnode1' --where 'time>1000'
  dptrace trace -i FILE --format ndjson | jq 'select(.size > 65536)'
  dptrace trace -i DIR --tpoint 'lib.ethdev.*'          a DPDK program's folder";

/// Runs the command.
pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<()> {
    let Input {
        place,
        process,
        recording,
    } = args.input.resolve("trace", "followed")?;
    refuse_to_overwrite(&place, &args.objects, args.output.as_deref())?;
    if let Place::File(path) = &place
        && trace_source::dpdk::is_trace(path)
    {
        return dpdk::run(args, path);
    }
    mistaken::refuse(&place, args.objects.sources().recordings())?;
    let (access, path) = (place.access(), place.path().map(Path::to_owned));
    let live = process.filter(|_| !args.info && !args.list_tpoints);
    let args = &TraceArgs {
        objects: args.objects.for_place(&place),
        ..args.clone()
    };
    if args.follow || live.is_some() || recording.is_some() {
        return follow_trace(args, &place, live, recording);
    }
    if args.duration.is_some() {
        return Err(usage(
            "--for needs a live trace: --follow, or -p PID without -s",
        ));
    }
    if args.info
        && let Place::File(path) = &place
        && path.is_dir()
        && let Some(text) =
            info::without_trace(path, args.json, args.screen(), &terminal::observer())?
    {
        let mut output = Output::whole(args.output.as_deref(), access)?;
        output.buffer.extend_from_slice(text.as_bytes());
        return Ok(output.finish()?);
    }
    // The table's header names the columns before the first record is read.
    let loaded = if args.info {
        input::load_measured(place)?
    } else {
        input::load(place, args.format() == FormatName::Csv)?
    };
    if args.info || args.list_tpoints {
        return describe(args, &loaded, access);
    }
    list_records(args, &loaded, access, path)
}

/// Prints the output of `--info` or `--list-tpoints`.
fn describe(args: &TraceArgs, loaded: &LoadedTrace, access: Access) -> anyhow::Result<()> {
    let mut output = Output::whole(args.output.as_deref(), access)?;
    let screen = args.screen();
    let known = match (args.info, args.json) {
        (false, _) => None,
        (true, false) => Some(info::info(loaded, screen, args.all)),
        (true, true) => Some(info::json::info(loaded)),
    };
    let tpoints = || {
        if args.json {
            info::json::tpoints(loaded)
        } else {
            info::tpoints(loaded, screen)
        }
    };
    let text = known
        .as_ref()
        .map_or_else(tpoints, |known| known.text.clone());
    output.buffer.extend_from_slice(text.as_bytes());
    output.flush()?;
    if let Some(known) = known.filter(|known| known.records == 0) {
        nothing_read(loaded, &known.problems, &terminal::observer())?;
    }
    Ok(output.finish()?)
}

impl TraceArgs {
    /// Resolves objects and filters for a trace with these tracepoints.
    fn resolve(
        &self,
        tpoints: &TpointTable,
        rate: TickRate,
        span: impl FnOnce() -> Option<(Ticks, Ticks)>,
    ) -> anyhow::Result<Resolved> {
        let specs = self.objects.sources().specs()?;
        let filter = self.filter.resolve(tpoints.all(), &specs, rate)?;
        Ok(Resolved {
            annotator: self.objects.sources().annotator(
                specs.clone(),
                tpoints,
                "",
                span,
                &terminal::observer(),
            )?,
            specs,
            filter,
        })
    }

    fn format(&self) -> FormatName {
        if self.json {
            FormatName::Ndjson
        } else {
            self.format
        }
    }

    /// Returns the screen that the listing is laid out for.
    fn screen(&self) -> Screen {
        if self.full {
            Screen::default()
        } else {
            output::screen(self.output.as_deref())
        }
    }

    fn list_options(&self) -> ListOptions {
        ListOptions {
            tsc: self.tsc,
            delta: self.delta,
            head: self.head,
            tail: self.tail,
            common: self.filter.common,
            from_common_start: self.format() == FormatName::Spdk,
            expected: None,
        }
    }
}

/// Objects and filters, resolved for a trace.
struct Resolved {
    specs: Vec<ObjectSpec>,
    annotator: Option<Annotator>,
    filter: Filter,
}

fn list_records(
    args: &TraceArgs,
    loaded: &LoadedTrace,
    access: Access,
    path: Option<PathBuf>,
) -> anyhow::Result<()> {
    let trace = &loaded.trace;
    let Resolved {
        specs,
        annotator,
        mut filter,
    } = args.resolve(trace.tpoints(), trace.tick_rate(), || beside::span(trace))?;
    let annotator = with_owners(annotator, trace, false, &terminal::observer());
    let known = requests::known_of(&loaded.trace, &specs, annotator.is_some());
    known.warn_missing(filter.fields(), &terminal::observer());
    let mut output = Output::whole(args.output.as_deref(), access)?;
    let head = Head::from_trace(trace, args.format().form(), &specs)?;
    let mut format = records::writer(args.format().form(), &head, args.screen());
    let shown = (trace, &head, annotator.as_ref());
    let options = ListOptions {
        expected: ::capture::expected_records(trace, loaded.capture.as_deref()),
        ..args.list_options()
    };
    let listed = output.in_background(|output| {
        listing::list(shown, &mut filter, options, format.as_mut(), output)
    })?;
    warn_problems(&listed.problems, &terminal::observer());
    let unnamed =
        path.filter(|path| !known.names_connections() && trace_source::is_of_application(path));
    if args.head == Some(0) || args.tail == Some(0) {
        return Ok(output.finish()?);
    }
    if listed.read == 0 {
        nothing_read(loaded, &listed.problems, &terminal::observer())?;
    } else if listed.shown == 0 {
        let why = filter.empty_reason();
        note(&match listed.read {
            1 => format!("the only record does not pass the filters{why}"),
            read => format!("none of the {read} records pass the filters{why}"),
        });
    } else if let Some(advice) = unnamed.and_then(|path| Application::find(&path).advice()) {
        note(&advice);
    }
    Ok(output.finish()?)
}
