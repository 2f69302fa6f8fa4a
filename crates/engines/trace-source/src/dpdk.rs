//! The trace folder of a DPDK program: events in the Common Trace Format, selected and described.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ctf::{Event, Metadata, Stream, Value};
use errors::usage;
use glob::Pattern;
use host::user_file;
use records::{Test, parse_number};
use screen::Screen;
use text::printable::{self, path as printable};
use text::{patterns, utc};

use crate::captures;
use crate::info::line;

/// Name of the file that describes the others.
const METADATA: &str = "metadata";
/// Size limit of that file, in bytes; DPDK's have tens of thousands.
const MAX_METADATA_BYTES: u64 = 16 << 20;

/// Returns whether a folder has a DPDK trace. A capture has a description of its own.
pub fn is_trace(path: &Path) -> bool {
    path.is_dir() && path.join(METADATA).is_file() && !path.join(captures::META).exists()
}

/// Opened trace folder.
#[derive(Debug)]
pub struct DpdkTrace {
    metadata: Metadata,
    files: Vec<PathBuf>,
}

impl DpdkTrace {
    /// Reads the description of a trace, and finds its files.
    ///
    /// # Errors
    ///
    /// Fails if the description can't be read or parsed, or there is no file of events.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(METADATA);
        let reading = || format!("reading {}", printable(&path));
        let text = user_file::read_member(&path, MAX_METADATA_BYTES).with_context(reading)?;
        let metadata = Metadata::parse(&text).with_context(reading)?;
        let files = files(folder)?;
        Ok(Self { metadata, files })
    }

    /// Returns the files of events, in the order of their numbers, as [`Self::streams`] has them.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Opens the stream of each file.
    ///
    /// # Errors
    ///
    /// Fails if a file is no stream, so that none is left out silently.
    pub fn streams(&self) -> anyhow::Result<Vec<Stream<'_>>> {
        let stream = |path: &PathBuf| {
            let file = user_file::open_member(path)?;
            user_file::check_holes(&file)?;
            anyhow::Ok(Stream::new(&self.metadata, file)?)
        };
        self.files
            .iter()
            .map(|path| stream(path).with_context(|| format!("reading {}", printable(path))))
            .collect()
    }

    /// Checks the names in a filter.
    ///
    /// # Errors
    ///
    /// Fails for a name that no event has.
    pub fn check(&self, filter: &EventFilter) -> anyhow::Result<()> {
        let kinds = self.metadata.kinds();
        for glob in &filter.tpoints {
            if !kinds.iter().any(|kind| glob.matches(&kind.name)) {
                let near =
                    patterns::hint(glob.as_str(), kinds.iter().map(|kind| kind.name.as_str()));
                bail!(
                    "no tracepoint of this trace matches {:?} (list all with --list-tpoints){near}",
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
                    "in the condition on {name:?}: no event of this trace has such a field \
                     (list all with --list-tpoints; all have thread, lcore and tpoint){near}"
                )));
            }
        }
        Ok(())
    }

    /// Describes the trace: its properties, then each stream with the number of its events and the
    /// times of the first and last one. Reads the streams that [`Self::streams`] opened.
    pub fn info(&self, streams: Vec<Stream<'_>>, screen: Screen) -> String {
        let metadata = &self.metadata;
        let mut text = String::new();
        for (name, value) in &metadata.env {
            let value = printable::text(value.as_bytes());
            line(&mut text, &printable::text(name.as_bytes()), &value, screen);
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
                printable::text(stream.head().thread()).into_owned(),
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
            let at =
                |nanos: Option<i64>| nanos.map_or(String::new(), |nanos| utc::text(nanos.into()));
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

    /// Lists the tracepoints, each on a line with the names of its fields.
    pub fn kinds(&self) -> String {
        let mut text = String::new();
        for kind in self.metadata.kinds() {
            let fields: Vec<&str> = kind.fields.names().collect();
            let row = format!(
                "{} {}",
                printable::text(kind.name.as_bytes()),
                fields.join(" ")
            );
            let _ = writeln!(text, "{}", row.trim_end());
        }
        text
    }
}

/// Filter for DPDK events, which have neither owners nor objects.
#[derive(Debug)]
pub struct EventFilter {
    /// Lcores to select; `None` selects all.
    pub lcores: Option<HashSet<u16>>,
    /// Patterns of tracepoints to select; if empty, all are.
    pub tpoints: Vec<Pattern>,
    /// Least time, in microseconds since the first event.
    pub since: Option<f64>,
    /// Greatest time, in microseconds since the first event.
    pub until: Option<f64>,
    /// Names of fields, each with the test for its value.
    pub conditions: Vec<(String, Test)>,
}

impl EventFilter {
    /// Returns whether the event is selected; `first` is the time of the first event.
    pub fn wants(&self, stream: &Stream<'_>, event: &Event<'_>, first: i64) -> bool {
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
