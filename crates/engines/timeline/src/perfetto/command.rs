//! `dptrace timeline --perfetto FILE`: runs both passes and writes the file.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use errors::usage;
use observer::Observer;
use scene::{BootNanos, Setting, Tid};
use screen::{counted, time};
use text::printable::path as printable;
use whole_file::{Access, WholeFile};

use super::requests::Limits;
use super::{Export, ExportOutcome, Facts, HasConnection, Window};
use crate::first::survey;
use crate::inputs::Inputs;
use crate::pass::{PassStats, RequestLabels};
use crate::source::Source;

/// Time range from the first record or event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: Duration,
    to: Option<Duration>,
}

/// Parses `FROM..TO`, of which one may be left out.
pub fn span(text: &str) -> Result<Span, String> {
    let form = || "expected FROM..TO, such as 1.2s..1.3s; either may be left out".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(form)?;
    let from = if from.is_empty() {
        Duration::ZERO
    } else {
        ::text::duration::parse_or_zero(from)?
    };
    let to = if to.is_empty() {
        None
    } else {
        Some(::text::duration::parse_or_zero(to)?)
    };
    if to.is_some_and(|to| to <= from) {
        return Err(format!("{text} ends before it begins"));
    }
    Ok(Span { from, to })
}

impl HasConnection for RequestLabels {
    fn connection(&self) -> Option<&str> {
        self.owner.as_deref()
    }
}

/// Writes the trace: the first pass finds usual lengths, the second one writes.
pub fn write(
    path: &Path,
    span: Option<Span>,
    inputs: &Inputs,
    access: Access,
) -> anyhow::Result<()> {
    let source = &inputs.source;
    let (first, passed) = survey(inputs, 0);
    let window = span.map_or(Ok(Window::ALL), |span| span.window(&passed))?;
    let failed = || format!("writing {}", printable(path));
    let name = |tid: Tid, at: BootNanos| Some(source.thread(tid, at));
    let ends = passed.events_end.into_iter().chain([window.to]).min();
    let known_until = ends.filter(|end| *end < passed.end);
    let facts = Facts {
        known_until,
        window,
        ..facts(source, &passed, &name)
    };
    let file = WholeFile::create(path, access)?;
    let mut export = Export::begin(&facts, file).with_context(failed)?;
    let setting = Setting {
        usual: first.survey.finish(),
        ..source.setting()
    };
    inputs.pass("writing the trace", setting, &mut export);
    let limits = export.limits();
    let ExportOutcome {
        out: file,
        requests,
        events,
    } = export.finish().with_context(failed)?;
    let size = screen::size(file.file().metadata().with_context(failed)?.len());
    file.commit().with_context(failed)?;
    inputs.observer.note(&format!(
        "{}: {} and {} of the kernel, {size}; open it in https://ui.perfetto.dev",
        printable(path),
        counted(requests, "request"),
        counted(events, "event"),
    ));
    report_limits(&limits, &inputs.observer);
    report_begin(source, &passed, window, &inputs.observer);
    Ok(())
}

/// Reports the data left out to bound memory.
fn report_limits(
    &Limits {
        step,
        arrows_left_out,
    }: &Limits,
    observer: &Observer,
) {
    if step > 1 {
        let step = time(step);
        observer.note(&format!(
            "there are many requests: requests in flight are counted in steps of {step}; choose a \
             shorter time with --window"
        ));
    }
    if arrows_left_out > 0 {
        let arrows = counted(arrows_left_out, "arrow");
        observer.note(&format!(
            "{arrows} may be missing: their source objects do not end in the trace"
        ));
    }
}

/// Reports that the kernel's events begin later than the written range: rings hold records from
/// before a capture begins.
fn report_begin(source: &Source, passed: &PassStats, window: Window, observer: &Observer) {
    let start = source.kernel.as_ref().map(|kernel| kernel.start);
    if let Some(start) = start.filter(|start| passed.begin.max(window.from) < *start) {
        let older = time(start.0.saturating_sub(passed.begin.0));
        observer.note(&format!(
            "the first record is {older} older than the recording: before that began, only requests \
             are shown"
        ));
    }
}

impl Span {
    /// Converts the span to times of the kernel's clock. Returns an error if it begins after the
    /// end of the capture.
    fn window(self, passed: &PassStats) -> anyhow::Result<Window> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let after = |time: Duration| BootNanos(passed.start.0.saturating_add(nanos(time)));
        let window = Window {
            from: after(self.from),
            to: self.to.map_or(Window::ALL.to, after),
        };
        if window.from > passed.end {
            let (from, length) = (time(nanos(self.from)), time(passed.after_start(passed.end)));
            return Err(usage(format!(
                "--window begins at {from}, but the capture ends {length} after its start: \
                 choose a part of 0..{length}"
            )));
        }
        Ok(window)
    }
}

fn facts<'a>(
    source: &'a Source,
    passed: &PassStats,
    name: &'a dyn Fn(Tid, BootNanos) -> Option<String>,
) -> Facts<'a> {
    let meta = source.meta.as_ref();
    let begin = meta.map_or(passed.begin, |meta| BootNanos(meta.begin.boot_nanos));
    let time_of_day = meta.and_then(|meta| {
        let at = jiff::Timestamp::from_str(&meta.begin.utc).ok()?;
        u64::try_from(at.as_nanosecond()).ok()
    });
    let threads = source.kernel.iter().flat_map(|kernel| &kernel.threads);
    Facts {
        pid: meta.map_or(0, |meta| meta.process.pid),
        command_line: meta.map_or(&[], |meta| &meta.process.command_line),
        release: meta.map_or("", |meta| &meta.machine.kernel),
        machine: meta.map_or("", |meta| &meta.machine.arch),
        threads: threads
            .map(|tid| (*tid, source.thread(*tid, begin)))
            .collect(),
        lcores: &source.lcores,
        tpoints: source.tpoints(),
        begin,
        start: source.kernel.as_ref().map_or(begin, |kernel| kernel.start),
        known_until: None,
        time_of_day,
        window: Window::ALL,
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_a_span_may_be_left_out() {
        let millis = Duration::from_millis;
        assert_eq!(
            span("1.2s..1300ms").unwrap(),
            Span {
                from: millis(1200),
                to: Some(millis(1300))
            }
        );
        assert_eq!(
            span("..5ms").unwrap(),
            Span {
                from: Duration::ZERO,
                to: Some(millis(5))
            }
        );
        assert_eq!(
            span("0..5ms").unwrap(),
            Span {
                from: Duration::ZERO,
                to: Some(millis(5))
            }
        );
        assert_eq!(
            span("5ms..").unwrap(),
            Span {
                from: millis(5),
                to: None
            }
        );
        for wrong in ["5ms", "5ms..4ms", "5ms..5ms", "x..5ms"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
