//! `--info` of a capture.

use std::fmt::Write as _;
use std::path::Path;

use capture::Meta;
use observer::Observer;
use screen::{Screen, counted};
use spdk_trace::{CapturedRing, CapturedTrace, Problems, Ticks};
use text::printable::path as printable;

use super::{json, line};
use crate::{MeasuredRate, captures};

/// Describes a captured trace; returns the number of records, and the problems found.
pub(crate) fn info(
    text: &mut String,
    (trace, meta): (&CapturedTrace, Option<&Meta>),
    measured: Option<MeasuredRate>,
    screen: Screen,
) -> (u64, Problems) {
    let summary = trace.summary();
    let records: u64 = summary.rings.iter().map(|ring| ring.records).sum();
    if let Some(meta) = meta {
        write_meta(text, meta, screen);
    }
    match meta.and_then(|meta| meta.requests.as_deref()) {
        Some(source) => {
            let source = ::text::printable::text(source.as_bytes());
            line(text, "requests", &format!("from {source}"), screen);
        }
        None => time_base(text, trace, measured, screen),
    }
    line(
        text,
        "tracepoints",
        &trace.tpoints().all().len().to_string(),
        screen,
    );
    line(text, "records", &records.to_string(), screen);
    rings(text, &summary.rings, trace, screen);
    if summary.problems.is_empty() {
        line(text, "lost", "nothing", screen);
    }
    for finding in summary.problems.iter() {
        line(text, "problem", &finding.to_string(), screen);
    }
    (records, summary.problems)
}

/// Describes the version of an SPDK trace, and its ticks.
fn time_base(
    text: &mut String,
    trace: &CapturedTrace,
    measured: Option<MeasuredRate>,
    screen: Screen,
) {
    line(
        text,
        "era",
        &format!("{:?} (SPDK {})", trace.era(), trace.era().versions()),
        screen,
    );
    let measured = measured.map_or_else(String::new, |measured| {
        let side = if measured.stated_off > 0.0 {
            "high"
        } else {
            "low"
        };
        format!(
            " (in the capture {}: {:.0} ppm too {side})",
            measured.rate.get(),
            measured.stated_off.abs()
        )
    });
    line(
        text,
        "tick rate",
        &format!("{} ticks/s{measured}", trace.tick_rate().get()),
        screen,
    );
}

/// Describes a capture whose trace is missing or can't be read; `None` if it has a readable one.
pub fn without_trace(
    dir: &Path,
    as_json: bool,
    screen: Screen,
    observer: &Observer,
) -> anyhow::Result<Option<String>> {
    let reader = captures::reader_quietly(dir)?;
    let Err(error) = reader.trace() else {
        return Ok(None);
    };
    captures::report(&reader, dir, observer);
    let problems = reader.ends().map(|(file, end)| format!("{file}: {end}"));
    let problems: Vec<String> = std::iter::once(error.to_string()).chain(problems).collect();
    if as_json {
        return Ok(Some(json::without_trace(
            &printable(dir),
            reader.meta(),
            &problems,
        )));
    }
    let mut text = String::new();
    line(&mut text, "capture", &printable(dir), screen);
    write_meta(&mut text, reader.meta(), screen);
    for problem in problems {
        line(&mut text, "problem", &problem, screen);
    }
    Ok(Some(text))
}

fn write_meta(text: &mut String, meta: &Meta, screen: Screen) {
    let Meta {
        process,
        machine,
        begin,
        end,
        ..
    } = meta;
    let until = end.as_ref().map_or_else(
        || "cut short".to_owned(),
        |end| {
            let nanos = end.at.boot_nanos.saturating_sub(begin.boot_nanos);
            format!("{:.3} s, until {}", nanos as f64 / 1e9, end.why)
        },
    );
    let shown = |text: &str| ::text::printable::text(text.as_bytes()).into_owned();
    let mut print = |label, value: &str| line(text, label, value, screen);
    print(
        "captured",
        &format!("{}, {}", shown(&begin.utc), shown(&until)),
    );
    print(
        "process",
        &format!("{}, {}", process.pid, shown(&process.program)),
    );
    print(
        "machine",
        &format!(
            "{}, Linux {}",
            shown(&machine.hostname),
            shown(&machine.kernel)
        ),
    );
    if let Some(end) = end
        && meta.captured.kernel
    {
        let lost = if end.events_lost > 0 {
            format!(", {} lost", end.events_lost)
        } else {
            String::new()
        };
        print("kernel", &format!("{}{lost}", counted(end.events, "event")));
    }
    if let Some(clock) = end.as_ref().and_then(capture::clock) {
        print("clocks", &format!("on one line {clock}"));
    }
    if let Some(join) = end.as_ref().and_then(capture::join) {
        print(
            "probes",
            &format!("the kernel's timestamp is later than their own {join}"),
        );
    }
    for (part, why) in &meta.missing {
        print("missing", &format!("{}: {}", shown(part), shown(why)));
    }
}

fn rings(text: &mut String, rings: &[CapturedRing], trace: &CapturedTrace, screen: Screen) {
    let used = || {
        rings
            .iter()
            .filter(|ring| ring.records > 0 || ring.lost > 0)
    };
    let start = used()
        .filter_map(|ring| ring.span)
        .map(|(first, _)| first)
        .min()
        .unwrap_or_default();
    let at = |tsc: Ticks| {
        trace
            .tick_rate()
            .nanos(Ticks(tsc.0.saturating_sub(start.0)))
            .to_string()
    };
    let [lcore, thread, slots, records, lost] = ["lcore", "thread", "slots", "records", "lost"];
    let head = format!(
        "{lcore:>5}  {thread:<16} {slots:>9} {records:>11} {lost:>9} {:>15} {:>15}",
        "first (us)", "last (us)"
    );
    let _ = writeln!(text, "\n{}", screen.cut(&head));
    for ring in used() {
        let (begin, end) = ring
            .span
            .map_or((String::new(), String::new()), |(a, b)| (at(a), at(b)));
        let CapturedRing {
            lcore,
            thread_name,
            slots,
            records,
            lost,
            ..
        } = ring;
        let row = format!(
            "{lcore:>5}  {thread_name:<16} {slots:>9} {records:>11} {lost:>9} {begin:>15} {end:>15}"
        );
        let _ = writeln!(text, "{}", screen.cut(&row));
    }
    let idle = rings.len() - used().count();
    if idle > 0 {
        let have = if idle == 1 { "has" } else { "have" };
        let _ = writeln!(
            text,
            "{} more {have} a ring and no records",
            counted(idle as u64, "lcore")
        );
    }
    text.push('\n');
}
