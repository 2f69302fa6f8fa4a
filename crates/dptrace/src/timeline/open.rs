//! Opens what a timeline is made of: the folder of a capture, or a trace alone.

use std::path::Path;

use anyhow::Context as _;
use capture::{Names, Reader};
use spdk_trace::Trace;
use timeline::{BootNanos, KernelEvent, Tid};

use super::source::{Events, Kernel, Source, Ticker};
use crate::capture::open;
use crate::failure::note;
use crate::input::Place;
use crate::target::printable;

/// The events of a capture.
struct Captured {
    reader: Reader,
    names: Names,
}

impl Events for Captured {
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_> {
        match self.reader.events() {
            Ok(events) => Box::new(events.map(|event| event.map_err(|end| end.to_string()))),
            Err(error) => Box::new(std::iter::once(Err(error.to_string()))),
        }
    }

    fn name(&self, tid: Tid, at: BootNanos) -> Option<String> {
        self.names.name(tid, at).map(|name| printable::text(name).into_owned())
    }
}

/// Opens it, and says what is missing.
pub(super) fn source(path: &Path) -> anyhow::Result<Source> {
    if path.is_dir() {
        return captured(path);
    }
    let loaded = Place::File(path.to_owned()).load(true)?;
    note("a trace without the kernel's events: requests and their stages only; dptrace capture records both");
    let rate = loaded.rate();
    Ok(Source::of_trace(loaded.trace, rate))
}

fn captured(dir: &Path) -> anyhow::Result<Source> {
    let reader = open::reader(dir)?;
    let reading = || format!("reading the capture {}", printable(dir));
    let meta = reader.meta();
    let why = |part: &str| meta.missing.get(part).map(|why| format!(": {}", printable::text(why.as_bytes())));
    let has_kernel = reader.events().is_ok();
    let trace = match reader.trace() {
        Ok(trace) => Some(Trace::Captured(Box::new(trace))),
        // Without both there is nothing.
        Err(error) if !has_kernel => return Err(error).with_context(reading),
        Err(_) => {
            note(&format!("the capture has no trace{}: threads only", why("trace").unwrap_or_default()));
            None
        }
    };
    let clock = reader.clock();
    let rate = trace.as_ref().map(Trace::tick_rate);
    let ticker = match (clock, rate) {
        (Ok(clock), _) => Some(Ticker::Measured(clock)),
        (Err(error), Some(_)) if has_kernel => {
            note(&format!("the kernel's events can't be put beside the trace: {error}"));
            None
        }
        _ => None,
    };
    if !has_kernel {
        let why = why("kernel").unwrap_or_default();
        note(&format!("the capture has no events of the kernel{why}: requests and their stages only"));
    }
    // Events that can't be put beside a trace say nothing of its requests.
    let is_joined = has_kernel && (ticker.is_some() || trace.is_none());
    let ticker = ticker.unwrap_or(Ticker::Stated(rate.unwrap_or(spdk_trace::TickRate::ticks_as_micros())));
    let (lcores, arch) = (reader.lcore_threads(), meta.machine.arch.clone());
    if is_joined && trace.is_some() && lcores.is_empty() {
        note("the capture does not say which thread writes which ring: nothing can be said of what delayed requests");
    }
    let meta = meta.clone();
    Ok(Source {
        trace,
        ticker,
        kernel: is_joined.then(|| kernel(reader)),
        lcores,
        calls_have_names: arch.is_empty() || arch == std::env::consts::ARCH,
        meta: Some(meta),
    })
}

fn kernel(reader: Reader) -> Kernel {
    let begin = BootNanos(reader.meta().begin.boot_nanos);
    let start = reader.events_started().unwrap_or(begin);
    let (end, has_last) = (reader.last(), reader.has_last_events());
    let mut threads: Vec<Tid> = reader.threads().iter().map(|thread| thread.tid).collect();
    threads.extend(reader.meta().process.threads.iter().map(|thread| Tid(thread.tid)));
    threads.extend(reader.lcore_threads().into_values());
    threads.sort_unstable();
    threads.dedup();
    let names = reader.names();
    Kernel { events: Box::new(Captured { reader, names }), threads, start, end, has_last }
}
