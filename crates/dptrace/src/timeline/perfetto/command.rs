//! `dptrace timeline --perfetto FILE`: both passes, and what is written where.

use std::fs::File;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use screen::counted;
use timeline::{BootNanos, Consumer, Interval, KernelEvent, Request, Setting, Tid};

use super::{Export, Facts, Whose, Window};
use crate::failure::note;
use crate::target::printable;
use crate::timeline::first::First;
use crate::timeline::pass::{Fields, Kept, pass};
use crate::timeline::report_missing;
use crate::timeline::source::Source;
use crate::trace::warn_problems;

/// A part of the time, from the first record or event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    from: Duration,
    to: Option<Duration>,
}

/// `FROM..TO`, of which one may be left out.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let form = || "a part of the time is FROM..TO, such as 1.2s..1.3s; one of them may be left out".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(form)?;
    let from = if from.is_empty() { Duration::ZERO } else { ::duration::parse_or_zero(from)? };
    let to = if to.is_empty() { None } else { Some(::duration::parse_or_zero(to)?) };
    if to.is_some_and(|to| to <= from) {
        return Err(format!("{text} ends before it begins"));
    }
    Ok(Span { from, to })
}

impl Whose for Kept {
    fn connection(&self) -> Option<&str> {
        self.owner.as_deref()
    }
}

/// Writes the trace: a first pass finds what is usual, the second one writes.
pub(crate) fn write(
    path: &Path,
    span: Option<Span>,
    source: &Source,
    noted: &[KernelEvent],
    fields: &Fields<'_>,
) -> anyhow::Result<()> {
    let mut first = First::new(source, 0);
    let passed = pass(source, source.setting(), noted, fields, &mut first);
    warn_problems(&passed.problems);
    report_missing(source, &passed);
    // Without records, times count from the first event.
    let start = source.kernel.as_ref().map(|kernel| kernel.start).unwrap_or_default();
    let begin = if passed.records > 0 { passed.begin } else { start };
    let failed = || format!("writing {}", printable(path));
    let name = |tid: Tid, at: BootNanos| Some(source.thread(tid, at));
    let facts = facts(source, begin, span, &name);
    let file = File::create(path).with_context(failed)?;
    let export = Export::begin(&facts, file).with_context(failed)?;
    let mut counting = Counting { export, requests: 0, events: 0 };
    let setting = Setting { usual: first.survey.finish(), ..source.setting() };
    pass(source, setting, noted, fields, &mut counting);
    let Counting { export, requests, events } = counting;
    let file = export.finish().with_context(failed)?;
    let mib = file.metadata().with_context(failed)?.len() as f64 / f64::from(1 << 20);
    note(&format!(
        "{}: {} and {} of the kernel, {mib:.1} MiB; open it in https://ui.perfetto.dev",
        printable(path),
        counted(requests, "request"),
        counted(events, "event"),
    ));
    Ok(())
}

fn facts<'a>(
    source: &'a Source,
    begin: BootNanos,
    span: Option<Span>,
    name: &'a dyn Fn(Tid, BootNanos) -> Option<String>,
) -> Facts<'a> {
    let meta = source.meta.as_ref();
    let after = |time: Duration| BootNanos(begin.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let window =
        span.map_or(Window::ALL, |span| Window { from: after(span.from), to: span.to.map_or(Window::ALL.to, after) });
    let begin = meta.map_or(begin, |meta| BootNanos(meta.begin.boot_nanos));
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
        threads: threads.map(|tid| (*tid, source.thread(*tid, begin))).collect(),
        lcores: &source.lcores,
        tpoints: source.tpoints(),
        begin,
        start: source.kernel.as_ref().map_or(begin, |kernel| kernel.start),
        time_of_day,
        window,
        name,
    }
}

/// Counts what is written.
struct Counting<'a> {
    export: Export<'a, File>,
    requests: u64,
    events: u64,
}

impl Consumer<Kept> for Counting<'_> {
    fn request(&mut self, request: &Request<Kept>) {
        self.requests += u64::from(self.export.takes(request.begin(), request.end()));
        self.export.request(request);
    }

    fn interval(&mut self, tid: Tid, interval: Interval) {
        Consumer::<Kept>::interval(&mut self.export, tid, interval);
    }

    fn event(&mut self, event: &KernelEvent) {
        self.events += u64::from(self.export.takes(event.at, event.at));
        Consumer::<Kept>::event(&mut self.export, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_a_span_may_be_left_out() {
        let millis = Duration::from_millis;
        assert_eq!(span("1.2s..1300ms").unwrap(), Span { from: millis(1200), to: Some(millis(1300)) });
        assert_eq!(span("..5ms").unwrap(), Span { from: Duration::ZERO, to: Some(millis(5)) });
        assert_eq!(span("0..5ms").unwrap(), Span { from: Duration::ZERO, to: Some(millis(5)) });
        assert_eq!(span("5ms..").unwrap(), Span { from: millis(5), to: None });
        for wrong in ["5ms", "5ms..4ms", "5ms..5ms", "x..5ms"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
