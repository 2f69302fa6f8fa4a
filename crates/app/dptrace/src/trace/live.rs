//! Traces that are followed while they are written.

use ::objects::ObjectSpec;
use anyhow::Context as _;
use bpf_session::POLL_INTERVAL;
use console::interrupt::Interrupt;
use console::messages::note;
use console::output::Output;
use console::terminal;
use errors::usage;
use live_objects::Objects;
use requests::KnownObjects;
use spdk_trace::{Follower, RawTrace, Ticks, Trace};
use text::printable::path as printable;
use trace_source::cpus::{self, Placement};
use trace_source::{Application, FileSource, Place, beside};

use crate::args::requests::Recording;

use super::follow::{FollowRequest, Stop, follow};
use super::{Resolved, TraceArgs};

/// Opens a raw trace that is to be followed.
fn open_followed(place: &Place) -> anyhow::Result<FileSource> {
    let path = match place {
        Place::File(path) => path,
        Place::Recorded(source) => return Ok(source.again()?),
        Place::Piped(_) => {
            return Err(usage("--follow needs a trace file, not standard input"));
        }
    };
    if path.is_dir() {
        return Err(usage(format!(
            "--follow needs a trace that is being written, and {} is a capture",
            printable(path)
        )));
    }
    let reading = || format!("reading {}", printable(path));
    let source = FileSource::open(path).with_context(reading)?;
    if source.is_text().with_context(reading)? {
        return Err(usage(format!(
            "--follow needs a raw trace file, and {} is text",
            printable(path)
        )));
    }
    Ok(source)
}

/// Returns what the records of a followed trace can have.
fn known_of<'a>(
    follower: &'a Follower,
    specs: &'a [ObjectSpec],
    has_recording: bool,
) -> KnownObjects<'a> {
    KnownObjects {
        specs,
        tpoints: follower.tpoints(),
        has_recording,
        has_owners: follower.era().has_owners(),
        has_joins: follower.era().has_owners(),
        owners: follower
            .owners()
            .all()
            .map(|(_, owner)| owner.description.as_str())
            .collect(),
        is_complete: false,
    }
}

/// Begins to look for objects in the memory of the process that writes the trace.
fn start_objects(
    args: &TraceArgs,
    pid: u32,
    specs: Vec<ObjectSpec>,
    (source, place): (&FileSource, &Place),
) -> anyhow::Result<Objects> {
    let text = args.objects.sources().text()?;
    let trace = RawTrace::read(source).with_context(|| format!("reading {}", place.name()))?;
    Ok(Objects::start(
        pid,
        specs,
        &text,
        &trace,
        (!args.no_probes).then_some(POLL_INTERVAL),
        &terminal::observer(),
    ))
}

/// Returns the time of the first record to list.
fn common_start(args: &TraceArgs, source: &FileSource) -> anyhow::Result<Ticks> {
    if !args.filter.common {
        return Ok(Ticks(0));
    }
    Ok(RawTrace::read(source)?.common_start())
}

/// Prints the records of a trace while they are written, by the process `live` or a recording.
pub(super) fn follow_trace(
    args: &TraceArgs,
    place: &Place,
    live: Option<u32>,
    recording: Option<Recording>,
) -> anyhow::Result<()> {
    let reading = || format!("reading {}", place.name());
    let source = open_followed(place)?;
    let follower = Follower::new(&source).with_context(reading)?;
    let span = || beside::span(&Trace::Raw(RawTrace::read(&source).ok()?));
    let Resolved {
        annotator,
        mut filter,
        specs,
    } = args.resolve(follower.tpoints(), follower.tick_rate(), span)?;
    let known = known_of(&follower, &specs, live.is_some() || annotator.is_some());
    known.warn_missing(filter.fields(), &terminal::observer());
    let application = match (&recording, place) {
        (Some(recording), _) => recording.application(),
        (None, place) => place.path().map(Application::find).unwrap_or_default(),
    };
    if recording.is_none() && !known.names_connections() {
        application.advice().iter().for_each(|text| note(text));
    }
    // Must precede the start of any thread: threads inherit the affinity.
    let pids = application.pids().chain(live);
    let placed = recording
        .is_none()
        .then(|| cpus::keep_off(pids, &terminal::observer()));
    let cpus = recording.as_ref().map(|it| &it.place).or(placed.as_ref());
    cpus.inspect(|cpus| cpus.give_way_for(args.duration));
    let has_room = cpus.is_some_and(Placement::has_room);
    let without_pointers = annotator
        .as_ref()
        .and_then(|annotator| live_objects::without_pointers(annotator, follower.tpoints()));
    let mut objects = match live {
        None => Objects::Known(annotator.map(Box::new)),
        Some(pid) => start_objects(args, pid, specs, (&source, place))?,
    };
    objects.begin(&source).with_context(reading)?;
    if let Some(annotator) = objects.annotator() {
        live_objects::report_unwitnessed(annotator, follower.tpoints(), &terminal::observer());
    }
    let start = common_start(args, &source).with_context(reading)?;
    let mut output = Output::open(args.output.as_deref())?;
    let stop = Stop {
        interrupt: Interrupt::catch()?,
        after: args.duration,
        recording,
    };
    let what = FollowRequest {
        source,
        application,
        has_room,
        start,
        form: args.format().form(),
        screen: args.screen(),
        options: args.list_options(),
        stop,
    };
    follow(follower, what, &mut objects, &mut filter, &mut output)?;
    output.finish()?;
    objects.report(without_pointers.as_deref(), &terminal::observer());
    Ok(())
}
