//! `dptrace trace` of the trace folder of a DPDK program: events in the Common Trace Format.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use console::messages::note;
use console::output::Output;
use ctf::{Event, Form, MergedStreams, Metadata, Stream, Value, Writer};
use errors::usage;
use host::user_file;
use records::{Test, parse_number};
use screen::{Screen, counted};
use text::printable::path as printable;
use text::{patterns, utc};
use trace_source::captures;
use trace_source::info::line;
use whole_file::Access;

use super::TraceArgs;
use super::format::FormatName;
use crate::args::filter::EventFilter;

/// Name of the file that describes the others.
const METADATA: &str = "metadata";
/// Size limit of that file, in bytes; DPDK's have tens of thousands.
const MOST_OF_METADATA: u64 = 16 << 20;

/// Returns whether it is such a folder. A capture has a description of its own.
pub(super) fn is_trace(path: &Path) -> bool {
    path.is_dir() && path.join(METADATA).is_file() && !path.join(captures::META).exists()
}

/// Prints its events, or describes it.
pub(super) fn run(args: &TraceArgs, folder: &Path) -> anyhow::Result<()> {
    refuse(args)?;
    let filter = args.filter.of_events()?;
    let path = folder.join(METADATA);
    let reading = || format!("reading {}", printable(&path));
    let text = user_file::read_member(&path, MOST_OF_METADATA).with_context(reading)?;
    let metadata = Metadata::parse(&text).with_context(reading)?;
    let files = files(folder)?;
    let streams = streams(&metadata, &files)?;
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    if args.list_tpoints || args.info {
        let text = if args.info {
            info(&metadata, streams, args.screen())
        } else {
            kinds(&metadata)
        };
        output.buffer.extend_from_slice(text.as_bytes());
        return Ok(output.finish()?);
    }
    check(&filter, &metadata)?;
    let form = if args.format() == FormatName::Ndjson {
        Form::Json
    } else {
        Form::Text
    };
    list(
        args,
        &filter,
        (MergedStreams::new(streams), &files),
        form,
        &mut output,
    )?;
    Ok(output.finish()?)
}

/// Refuses options that mean nothing here.
fn refuse(args: &TraceArgs) -> anyhow::Result<()> {
    let is_known = matches!(args.format(), FormatName::Text | FormatName::Ndjson);
    let given = [
        ("--follow", args.follow),
        ("--for", args.duration.is_some()),
        (
            "--recording",
            args.objects.sources().recordings().next().is_some(),
        ),
        ("--tsc", args.tsc),
        ("--format spdk, json and csv", !is_known),
        (
            "--json with --info or --list-tpoints",
            args.json && (args.info || args.list_tpoints),
        ),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(usage(format!(
            "{option} does not work for DPDK traces: they are printed as text, like babeltrace2's, \
             or with --format ndjson"
        ))),
        None => Ok(()),
    }
}

/// Returns the files of events, in the order of their numbers.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", printable(folder));
    let mut paths = Vec::new();
    for entry in folder.read_dir().with_context(reading)? {
        let entry = entry.with_context(reading)?;
        let is_stream =
            entry.file_name() != METADATA && entry.file_type().is_ok_and(|kind| kind.is_file());
        // As in babeltrace2: files that begin with a dot are not part of the trace.
        if is_stream && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    if paths.is_empty() {
        bail!(
            "{} has a {METADATA}, but no file of events",
            printable(folder)
        );
    }
    paths.sort_by_cached_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(paths)
}

/// Opens the streams of these files. A file that is no stream is an error, so that none is left out
/// silently.
fn streams<'b>(metadata: &'b Metadata, files: &[PathBuf]) -> anyhow::Result<Vec<Stream<'b>>> {
    let stream = |path: &PathBuf| {
        let file = user_file::open_member(path)?;
        user_file::check_holes(&file)?;
        anyhow::Ok(Stream::new(metadata, file)?)
    };
    files
        .iter()
        .map(|path| stream(path).with_context(|| format!("reading {}", printable(path))))
        .collect()
}

/// Returns an error for names that no event has.
fn check(filter: &EventFilter, metadata: &Metadata) -> anyhow::Result<()> {
    let kinds = metadata.kinds();
    for glob in &filter.tpoints {
        if !kinds.iter().any(|kind| glob.matches(&kind.name)) {
            let near = patterns::hint(glob.as_str(), kinds.iter().map(|kind| kind.name.as_str()));
            bail!(
                "no tracepoint of this trace matches {:?}{near} (list all with --list-tpoints)",
                glob.as_str()
            );
        }
    }
    for (name, _) in &filter.conditions {
        let is_known = |name: &str| {
            kinds
                .iter()
                .any(|kind| kind.fields.names().any(|it| it == name))
        };
        if !matches!(name.as_str(), "thread" | "lcore" | "tpoint") && !is_known(name) {
            let near = patterns::hint(name, kinds.iter().flat_map(|kind| kind.fields.names()));
            return Err(usage(format!(
                "in the condition on {name:?}: no event of this trace has such a field{near} (list \
                 all with --list-tpoints; all have thread, lcore and tpoint)"
            )));
        }
    }
    Ok(())
}

impl EventFilter {
    /// Returns whether the event is selected; `first` is the time of the first event.
    fn wants(&self, stream: &Stream<'_>, event: &Event<'_>, first: i64) -> bool {
        let micros = event.nanos.saturating_sub(first) as f64 / 1e3;
        let head = stream.head();
        self.since.is_none_or(|since| micros >= since)
            && self.until.is_none_or(|until| micros <= until)
            && self.lcores.as_ref().is_none_or(|lcores| {
                head.cpu()
                    .and_then(|cpu| u16::try_from(cpu).ok())
                    .is_some_and(|cpu| lcores.contains(&cpu))
            })
            && (self.tpoints.is_empty()
                || self
                    .tpoints
                    .iter()
                    .any(|glob| glob.matches(&event.kind.name)))
            && self.conditions.iter().all(|(name, test)| {
                let value = match name.as_str() {
                    "thread" => Some(Value::Text(head.thread())),
                    "lcore" => head.cpu().map(|cpu| Value::Unsigned(cpu, 10)),
                    "tpoint" => Some(Value::Text(event.kind.name.as_bytes())),
                    name => event
                        .values()
                        .find(|(it, _)| *it == name)
                        .map(|(_, value)| value),
                };
                holds(test, value.as_ref())
            })
    }
}

/// Returns whether a value passes the test. An event without the field passes only `!=`.
fn holds(test: &Test, value: Option<&Value<'_>>) -> bool {
    let is = |glob: &glob::Pattern, value: &Value<'_>| {
        let number = value.number();
        glob.matches(&ctf::shown(value))
            || number.is_some() && parse_number(glob.as_str()) == number
    };
    match (test, value) {
        (Test::Matches(glob), Some(value)) => is(glob, value),
        (Test::MatchesNot(glob), Some(value)) => !is(glob, value),
        (Test::Number(compare, to), Some(value)) => {
            value.number().is_some_and(|number| compare(&number, to))
        }
        (test, None) => matches!(test, Test::MatchesNot(_)),
    }
}

/// Size of buffered output, in bytes, at which it is written.
const FLUSH_BYTES: usize = 128 << 10;

fn list(
    args: &TraceArgs,
    filter: &EventFilter,
    (mut events, files): (MergedStreams<'_>, &[PathBuf]),
    form: Form,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut writer = Writer::new(form);
    let (mut first, mut read, mut shown) = (None, 0_u64, 0_u64);
    let mut last = VecDeque::new();
    while let Some((nth, event)) = events.next() {
        let stream = &events.streams()[nth];
        read += 1;
        let first = *first.get_or_insert(event.nanos);
        if !filter.wants(stream, &event, first) {
            continue;
        }
        if let Some(most) = args.tail {
            last.push_back((nth, event));
            if last.len() > most {
                last.pop_front();
            }
            continue;
        }
        if args.head.is_some_and(|most| shown >= most) {
            break;
        }
        shown += 1;
        writer.event(&mut output.buffer, stream.head(), &event);
        if output.buffer.len() >= FLUSH_BYTES {
            output.drain()?;
        }
    }
    for (nth, event) in last.iter().take(args.head.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })) {
        shown += 1;
        writer.event(&mut output.buffer, events.streams()[*nth].head(), event);
    }
    output.flush()?;
    for (stream, file) in events.streams().iter().zip(files) {
        if let Some(problem) = stream.problem() {
            note(&format!(
                "{}: {problem}; everything before that is printed",
                printable(file)
            ));
        }
    }
    if read == 0 {
        note("the trace has no events");
    } else if shown == 0 && args.head != Some(0) && args.tail != Some(0) {
        note(&format!(
            "none of the {} pass the filters",
            counted(read, "event")
        ));
    }
    Ok(())
}

/// Returns the text of `--info`.
fn info(metadata: &Metadata, streams: Vec<Stream<'_>>, screen: Screen) -> String {
    let mut text = String::new();
    for (name, value) in &metadata.env {
        let value = ::text::printable::text(value.as_bytes());
        line(
            &mut text,
            &::text::printable::text(name.as_bytes()),
            &value,
            screen,
        );
    }
    line(&mut text, "format", "Common Trace Format 1.8", screen);
    line(
        &mut text,
        "tick rate",
        &format!("{} ticks/s", metadata.clock.rate),
        screen,
    );
    line(
        &mut text,
        "tracepoints",
        &metadata.kinds().len().to_string(),
        screen,
    );
    let head = format!(
        "\n{:>5}  {:<16} {:>11}  {:<28} {}",
        "lcore", "thread", "events", "first", "last"
    );
    let _ = writeln!(text, "{}", head.trim_end());
    for mut stream in streams {
        let (lcore, thread) = (
            stream.head().cpu(),
            ::text::printable::text(stream.head().thread()).into_owned(),
        );
        // DPDK sets all bits for a thread that is no lcore.
        let lcore = lcore
            .filter(|lcore| *lcore != u64::from(u32::MAX))
            .map_or("-".to_owned(), |it| it.to_string());
        let (mut events, mut first, mut last) = (0_u64, None, None);
        for event in stream.by_ref() {
            events += 1;
            first = first.or(Some(event.nanos));
            last = Some(event.nanos);
        }
        let at = |nanos: Option<i64>| nanos.map_or(String::new(), |nanos| utc::text(nanos.into()));
        let row = format!(
            "{lcore:>5}  {thread:<16} {events:>11}  {:<28} {}",
            at(first),
            at(last)
        );
        let _ = writeln!(text, "{}", screen.cut(row.trim_end()));
        if let Some(problem) = stream.problem() {
            let _ = writeln!(text, "       problem: {problem}");
        }
    }
    text
}

/// Returns the text of `--list-tpoints`: each tracepoint with the names of its fields.
fn kinds(metadata: &Metadata) -> String {
    let mut text = String::new();
    for kind in metadata.kinds() {
        let fields: Vec<&str> = kind.fields.names().collect();
        let row = format!(
            "{} {}",
            ::text::printable::text(kind.name.as_bytes()),
            fields.join(" ")
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}
