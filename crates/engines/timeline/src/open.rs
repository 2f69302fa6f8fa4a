//! Opens the source of a timeline: the folder of a capture, or a trace alone.

use std::path::Path;

use anyhow::Context as _;
use capture::{CaptureError, Names, Reader};
use observer::Observer;
use ordering::Order as _;
use requests::sockets;
use scene::{BootNanos, KernelEvent, Tid};
use spdk_trace::{TickRate, Trace};
use text::printable::{self, path as printable};
use trace_source::{Place, captures};

use super::source::{Events, Kernel, Source, Ticker};

/// Events of a capture.
struct CapturedEvents {
    reader: Reader,
    names: Names,
}

impl Events for CapturedEvents {
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_> {
        match self.reader.events() {
            Ok(events) => Box::new(events.map(|event| event.map_err(|end| end.to_string()))),
            Err(error) => Box::new(std::iter::once(Err(error.to_string()))),
        }
    }

    fn late(&self) -> u64 {
        self.reader.late_events().unwrap_or_default()
    }

    fn name(&self, tid: Tid, at: BootNanos) -> Option<String> {
        self.names
            .name(tid, at)
            .map(|name| printable::text(name).into_owned())
    }
}

/// Opens a source, and reports what is missing.
pub(crate) fn source(path: &Path, observer: &Observer) -> anyhow::Result<Source> {
    let source = if path.is_dir() {
        captured(captures::reader(path, observer)?).with_context(|| reading(path))?
    } else {
        alone(path, observer)?
    };
    source
        .notes
        .iter()
        .for_each(|missing| observer.note(missing));
    Ok(source)
}

/// Opens a trace file.
fn alone(path: &Path, observer: &Observer) -> anyhow::Result<Source> {
    let loaded = Place::File(path.to_owned()).load(true, observer)?;
    let rate = loaded.rate();
    let mut source = Source::from_trace(loaded.trace, rate);
    let alone = "a trace without the kernel's events: requests and their stages only; dptrace \
                 capture records both";
    source.notes.push(alone.to_owned());
    Ok(source)
}

/// Opens a capture, and reports nothing.
pub(crate) fn captured_quietly(dir: &Path) -> anyhow::Result<Source> {
    captured(captures::reader_quietly(dir)?).with_context(|| reading(dir))
}

fn reading(dir: &Path) -> String {
    format!("reading the capture {}", printable(dir))
}

pub(crate) fn captured(reader: Reader) -> anyhow::Result<Source> {
    let no_events = reader.late_events().err();
    let mut notes = Vec::new();
    let trace = trace(&reader, no_events.is_none(), &mut notes)?;
    if let Some(error) = &no_events {
        notes.push(format!("{}: requests and their stages only", shown(error)));
    }
    let ticker = ticker(&reader, trace.as_ref(), no_events.is_none(), &mut notes);
    // Events that can't be aligned with a trace explain none of its requests.
    let is_joined =
        no_events.is_none() && (matches!(ticker, Ticker::Measured(_)) || trace.is_none());
    let lcores = reader.lcore_threads();
    let states_threads = trace
        .as_ref()
        .is_some_and(|trace| sockets::are_in(trace.tpoints().all()));
    if is_joined && trace.is_some() && lcores.is_empty() && !states_threads {
        let unknown = "the capture does not show which thread writes which ring, so the causes of \
                       delays are unknown";
        notes.push(unknown.to_owned());
    }
    let meta = reader.meta().clone();
    let arch = meta.machine.arch.as_str();
    Ok(Source {
        trace,
        ticker,
        lcores,
        calls_have_names: arch.is_empty() || arch == std::env::consts::ARCH,
        kernel: is_joined.then(|| kernel(reader)),
        meta: Some(meta),
        notes,
    })
}

/// Returns the trace. Without one, adds the reason to `notes`, or returns the error if there are no
/// events either.
fn trace(
    reader: &Reader,
    has_events: bool,
    notes: &mut Vec<String>,
) -> Result<Option<Trace>, CaptureError> {
    match reader.trace() {
        Ok(trace) => Ok(Some(Trace::Captured(Box::new(trace)))),
        Err(error) if !has_events => Err(error),
        Err(error) => {
            notes.push(format!("{}: threads only", shown(&error)));
            Ok(None)
        }
    }
}

/// Returns the clock of the trace's ticks: the kernel's, if both were read together.
fn ticker(
    reader: &Reader,
    trace: Option<&Trace>,
    has_events: bool,
    notes: &mut Vec<String>,
) -> Ticker {
    let stated = || Ticker::Stated(trace.map_or(TickRate::ticks_as_micros(), Trace::tick_rate));
    match reader.clock() {
        Ok(clock) => Ticker::Measured(clock),
        Err(error) => {
            if has_events && trace.is_some() {
                notes.push(format!(
                    "the kernel's events can't be aligned with the trace: {}",
                    shown(&error)
                ));
            }
            stated()
        }
    }
}

/// Formats an error of a capture with its causes.
fn shown(error: &CaptureError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn kernel(reader: Reader) -> Kernel {
    let begin = BootNanos(reader.meta().begin.boot_nanos);
    let start = reader.events_started().unwrap_or(begin);
    let (end, has_last) = (reader.last(), reader.has_last_events());
    let mut threads: Vec<Tid> = reader.threads().iter().map(|thread| thread.tid).collect();
    threads.extend(
        reader
            .meta()
            .process
            .threads
            .iter()
            .map(|thread| Tid(thread.tid)),
    );
    threads.extend(reader.lcore_threads().into_values());
    threads.order();
    threads.dedup();
    let events = CapturedEvents {
        names: reader.names(),
        reader,
    };
    let own_names = threads
        .iter()
        .filter_map(|tid| events.name(*tid, BootNanos(u64::MAX)))
        .collect();
    Kernel {
        events: Box::new(events),
        threads,
        own_names,
        start,
        end,
        has_last,
    }
}
