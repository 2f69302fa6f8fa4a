//! `--info` and `--list-tpoints`: what a trace file is, before one looks at its records.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use screen::counted;
use spdk_trace::{ArgKind, Lcore, Problems, RawTrace, Ticks, Trace};

use crate::input::Loaded;
use crate::measured_rate::Measured;

/// The output of `--info`.
pub(crate) struct Info {
    pub(crate) text: String,
    pub(crate) records: u64,
    pub(crate) problems: Problems,
}

/// Looks at a trace for `--info`.
pub(crate) fn info(loaded: &Loaded) -> Info {
    let mut text = String::new();
    let Loaded { trace, name, measured } = loaded;
    line(&mut text, "trace", name);
    let rate = trace.tick_rate().get();
    let (records, problems) = match trace {
        Trace::Raw(raw) => {
            raw_info(&mut text, raw, *measured);
            (raw.record_count(), raw.problems().clone())
        }
        Trace::Json(_) => json_info(&mut text, trace, rate),
    };
    let owners = trace.owners();
    if !owners.is_empty() {
        line(&mut text, "owners", &owners.len().to_string());
        for (id, description) in owners {
            let _ = writeln!(text, "  {id:>5}  {description}");
        }
    }
    Info { text, records, problems }
}

fn line(text: &mut String, what: &str, value: &str) {
    let _ = writeln!(text, "{:<12} {value}", format!("{what}:"));
}

fn raw_info(text: &mut String, raw: &RawTrace, measured: Option<Measured>) {
    line(text, "era", &format!("{:?} (SPDK {})", raw.era(), raw.era().versions()));
    let measured = measured.map_or_else(String::new, |measured| format!(" ({measured})"));
    line(text, "tick rate", &format!("{} ticks/s{measured}", raw.tick_rate().get()));
    line(text, "tracepoints", &raw.tpoints().all().len().to_string());
    line(text, "records", &raw.record_count().to_string());
    let _ = writeln!(
        text,
        "\n{:>5}  {:<16} {:>10} {:>12} {:>10} {:>10} {:>7} {:>16} {:>16}",
        "lcore", "thread", "slots", "written", "records", "wrapped", "late", "first (us)", "last (us)"
    );
    let rings: Vec<_> = raw.rings().collect();
    let first = rings.iter().filter_map(|ring| ring.span).map(|(first, _)| first).min().unwrap_or_default();
    let used = rings.iter().filter(|ring| ring.records > 0 || ring.written > 0);
    for ring in used {
        let at = |tsc: Ticks| raw.tick_rate().nanos(Ticks(tsc.0 - first.0)).to_string();
        let (begin, end) = ring.span.map_or((String::new(), String::new()), |(a, b)| (at(a), at(b)));
        let wrapped = if ring.wrapped { "yes" } else { "no" };
        let _ = writeln!(
            text,
            "{:>5}  {:<16} {:>10} {:>12} {:>10} {:>10} {:>7} {:>16} {:>16}",
            ring.lcore, ring.thread_name, ring.slots, ring.written, ring.records, wrapped, ring.late, begin, end
        );
    }
    let idle = rings.iter().filter(|ring| ring.records == 0 && ring.written == 0).count();
    if idle > 0 {
        let (s, have) = if idle == 1 { ("", "has") } else { ("s", "have") };
        let _ = writeln!(text, "{idle} more lcore{s} {have} a ring and no records");
    }
    let cleared: u64 = rings.iter().map(|ring| ring.cleared).sum();
    if cleared > 0 {
        let _ = writeln!(text, "{} cleared by the user: not shown", counted(cleared, "record"));
    }
    text.push('\n');
    if raw.problems().is_empty() {
        let wrapped = rings.iter().any(|ring| ring.wrapped);
        line(text, "lost", if wrapped { "only what the wrapped rings overwrote" } else { "nothing" });
    }
    for finding in raw.problems().iter() {
        line(text, "problem", &finding.to_string());
    }
}

fn json_info(text: &mut String, trace: &Trace, rate: u64) -> (u64, Problems) {
    // By lcore: how many records, and the times of the first and the last.
    let mut lcores: BTreeMap<Lcore, (u64, Ticks, Ticks)> = BTreeMap::new();
    let problems = trace.for_each(|record| {
        let lcore = lcores.entry(record.lcore).or_insert((0, record.tsc, record.tsc));
        *lcore = (lcore.0 + 1, lcore.1.min(record.tsc), lcore.2.max(record.tsc));
        ControlFlow::Continue(())
    });
    let records: u64 = lcores.values().map(|(records, ..)| records).sum();
    line(text, "form", "JSON of spdk_trace, which does not show whether rings wrapped");
    line(text, "tick rate", &format!("{rate} ticks/s"));
    line(text, "tracepoints", &trace.tpoints().all().len().to_string());
    line(text, "records", &records.to_string());
    let _ = writeln!(text, "\n{:>5}  {:>10} {:>16} {:>16}", "lcore", "records", "first (us)", "last (us)");
    let start = lcores.values().map(|(_, first, _)| *first).min().unwrap_or_default();
    for (lcore, (records, first, last)) in &lcores {
        let at = |tsc: &Ticks| trace.tick_rate().nanos(Ticks(tsc.0 - start.0)).to_string();
        let _ = writeln!(text, "{lcore:>5}  {records:>10} {:>16} {:>16}", at(first), at(last));
    }
    text.push('\n');
    if problems.is_empty() {
        line(text, "lost", "nothing of the document");
    }
    for finding in problems.iter() {
        line(text, "problem", &finding.to_string());
    }
    (records, problems)
}

/// The text of `--list-tpoints`.
pub(crate) fn tpoints(loaded: &Loaded) -> String {
    let mut text = format!("{:>5} {:>5}  {:<24} {:<5} {:<6} arguments\n", "id", "group", "name", "owner", "object");
    for tpoint in loaded.trace.tpoints().all() {
        let prefix = |prefix: Option<char>| prefix.map_or_else(|| "-".to_owned(), String::from);
        let new = if tpoint.new_object { " new" } else { "" };
        let args: Vec<_> = tpoint
            .args
            .iter()
            .map(|arg| match arg.kind {
                ArgKind::Int => format!("{}: u{}", arg.name, u32::from(arg.size) * 8),
                ArgKind::Pointer => format!("{}: pointer", arg.name),
                ArgKind::String => format!("{}: string[{}]", arg.name, arg.size),
            })
            .collect();
        let object = prefix(tpoint.object_prefix) + new;
        let _ = writeln!(
            text,
            "{:>5} {:>5}  {:<24} {:<5} {object:<6} {}",
            tpoint.id,
            tpoint.group(),
            tpoint.name,
            prefix(tpoint.owner_prefix),
            args.join(", ")
        );
    }
    text
}
