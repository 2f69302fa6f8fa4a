//! `--info` and `--list-tpoints` as JSON.

use capture::Meta;
use records::json_text::{member, number_member, string_member};
use spdk_trace::{
    ArgKind, CapturedTrace, Lcore, Problems, RawTrace, TickRate, Ticks, Tpoint, Trace,
};
use text::json::{begin, string};

use super::{Info, lcores_of};
use crate::{LoadedTrace, MeasuredRate};

/// Formats one object that describes the trace. Times are in nanoseconds from the first record of
/// all lcores.
pub fn info(loaded: &LoadedTrace) -> Info {
    let LoadedTrace {
        trace,
        name,
        measured,
        capture,
    } = loaded;
    let mut out = begin("trace.info").to_string().into_bytes();
    string_member(&mut out, "trace", name);
    let (records, problems) = match trace {
        Trace::Raw(raw) => {
            string_member(&mut out, "form", "raw");
            string_member(&mut out, "era", &format!("{:?}", raw.era()));
            string_member(&mut out, "spdk", raw.era().versions());
            head(&mut out, trace, raw.record_count(), *measured);
            rings(&mut out, raw);
            (raw.record_count(), raw.problems().clone())
        }
        Trace::Captured(captured) => {
            if let Some(meta) = capture.as_deref() {
                write_meta(&mut out, meta);
            }
            write_capture(&mut out, trace, captured, *measured)
        }
        Trace::Json(_) => document(&mut out, trace, *measured),
    };
    member(&mut out, "problems");
    list(&mut out, problems.iter(), |out, finding| {
        string(out, finding.to_string().as_bytes());
    });
    member(&mut out, "owners");
    list(&mut out, trace.owners().iter(), |out, (id, description)| {
        out.push(b'{');
        string_member(out, "id", id);
        string_member(out, "description", description);
        out.push(b'}');
    });
    out.extend_from_slice(b"}\n");
    Info {
        text: String::from_utf8_lossy(&out).into_owned(),
        records,
        problems,
    }
}

/// Appends an array.
fn list<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn head(out: &mut Vec<u8>, trace: &Trace, records: u64, measured: Option<MeasuredRate>) {
    number_member(out, "tick_rate", trace.tick_rate().get());
    if let Some(measured) = measured {
        number_member(out, "measured_tick_rate", measured.rate.get());
    }
    number_member(out, "tracepoints", trace.tpoints().all().len() as u64);
    number_member(out, "records", records);
}

/// Ring of one lcore.
struct Ring<'a> {
    lcore: Lcore,
    /// Name of its thread, if the trace has that.
    thread: Option<&'a str>,
    /// True if its ring wrapped; `None` if the trace does not state it.
    wrapped: Option<bool>,
    numbers: Vec<(&'static str, u64)>,
    /// Times of its first and its last record.
    span: Option<(Ticks, Ticks)>,
}

/// Appends an object for each lcore. Times start with the first record of all.
fn lcores(out: &mut Vec<u8>, rate: TickRate, rings: &[Ring<'_>]) {
    let start = rings
        .iter()
        .filter_map(|ring| ring.span)
        .map(|(first, _)| first)
        .min()
        .unwrap_or_default();
    member(out, "lcores");
    list(out, rings.iter(), |out, ring| {
        out.push(b'{');
        number_member(out, "lcore", u64::from(ring.lcore.0));
        if let Some(thread) = ring.thread {
            string_member(out, "thread", thread);
        }
        for (name, number) in &ring.numbers {
            number_member(out, name, *number);
        }
        if let Some(wrapped) = ring.wrapped {
            member(out, "wrapped");
            out.extend_from_slice(if wrapped { b"true" } else { b"false" });
        }
        if let Some((first, last)) = ring.span {
            let nanos = |tsc: Ticks| rate.nanos(Ticks(tsc.0.saturating_sub(start.0))).0;
            number_member(out, "first_ns", nanos(first));
            number_member(out, "last_ns", nanos(last));
        }
        out.push(b'}');
    });
}

fn rings(out: &mut Vec<u8>, raw: &RawTrace) {
    let all: Vec<_> = raw.rings().collect();
    let (used, idle): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|ring| ring.records > 0 || ring.written > 0);
    number_member(out, "idle_lcores", idle.len() as u64);
    let used = used.into_iter().map(|ring| Ring {
        lcore: ring.lcore,
        thread: Some(&ring.thread_name),
        wrapped: Some(ring.wrapped),
        numbers: vec![
            ("slots", ring.slots),
            ("written", ring.written),
            ("records", ring.records),
            ("late", ring.late),
            ("cleared", ring.cleared),
        ],
        span: ring.span,
    });
    lcores(out, raw.tick_rate(), &used.collect::<Vec<_>>());
}

/// Formats one object that describes a capture without a trace.
pub fn without_trace(name: &str, meta: &Meta, problems: &[String]) -> String {
    let mut out = begin("trace.info").to_string().into_bytes();
    string_member(&mut out, "trace", name);
    string_member(&mut out, "form", "capture");
    write_meta(&mut out, meta);
    number_member(&mut out, "records", 0);
    member(&mut out, "problems");
    list(&mut out, problems.iter(), |out, problem| {
        string(out, problem.as_bytes());
    });
    out.extend_from_slice(b"}\n");
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends the time and place of the capture.
fn write_meta(out: &mut Vec<u8>, meta: &Meta) {
    member(out, "captured");
    out.push(b'{');
    string_member(out, "utc", &meta.begin.utc);
    number_member(out, "pid", u64::from(meta.process.pid));
    string_member(out, "program", &meta.process.program);
    string_member(out, "hostname", &meta.machine.hostname);
    string_member(out, "kernel", &meta.machine.kernel);
    out.push(b'}');
}

fn write_capture(
    out: &mut Vec<u8>,
    trace: &Trace,
    captured: &CapturedTrace,
    measured: Option<MeasuredRate>,
) -> (u64, Problems) {
    let summary = captured.summary();
    let records = summary.rings.iter().map(|ring| ring.records).sum();
    string_member(out, "form", "capture");
    string_member(out, "era", &format!("{:?}", captured.era()));
    string_member(out, "spdk", captured.era().versions());
    head(out, trace, records, measured);
    let (used, idle): (Vec<_>, Vec<_>) = summary
        .rings
        .iter()
        .partition(|ring| ring.records > 0 || ring.lost > 0);
    number_member(out, "idle_lcores", idle.len() as u64);
    let used = used.into_iter().map(|ring| Ring {
        lcore: ring.lcore,
        thread: Some(&ring.thread_name),
        wrapped: None,
        numbers: vec![
            ("slots", ring.slots),
            ("records", ring.records),
            ("lost", ring.lost),
        ],
        span: ring.span,
    });
    lcores(out, trace.tick_rate(), &used.collect::<Vec<_>>());
    (records, summary.problems)
}

/// Appends a description of a JSON document. It has no rings, so it does not state whether they
/// wrapped.
fn document(out: &mut Vec<u8>, trace: &Trace, measured: Option<MeasuredRate>) -> (u64, Problems) {
    string_member(out, "form", "json");
    let (found, problems) = lcores_of(trace);
    let records = found.values().map(|(records, ..)| records).sum();
    head(out, trace, records, measured);
    let rings = found.iter().map(|(lcore, (records, first, last))| Ring {
        lcore: *lcore,
        thread: None,
        wrapped: None,
        numbers: vec![("records", *records)],
        span: Some((*first, *last)),
    });
    lcores(out, trace.tick_rate(), &rings.collect::<Vec<_>>());
    (records, problems)
}

/// Formats an object for each tracepoint.
pub fn tpoints(loaded: &LoadedTrace) -> String {
    let mut out = Vec::new();
    for tpoint in loaded.trace.tpoints().all() {
        one(&mut out, tpoint);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn one(out: &mut Vec<u8>, tpoint: &Tpoint) {
    out.extend_from_slice(begin("trace.tracepoint").to_string().as_bytes());
    number_member(out, "id", u64::from(tpoint.id));
    number_member(out, "group", u64::from(tpoint.group()));
    string_member(out, "name", &tpoint.name);
    for (name, prefix) in [
        ("owner", tpoint.owner_prefix),
        ("object", tpoint.object_prefix),
    ] {
        if let Some(prefix) = prefix {
            string_member(out, name, prefix.encode_utf8(&mut [0; 4]));
        }
    }
    member(out, "creates_object");
    out.extend_from_slice(if tpoint.new_object { b"true" } else { b"false" });
    member(out, "arguments");
    list(out, tpoint.args.iter(), |out, arg| {
        out.push(b'{');
        string_member(out, "name", &arg.name);
        let kind = match arg.kind {
            ArgKind::Int => "integer",
            ArgKind::Pointer => "pointer",
            ArgKind::String => "string",
        };
        string_member(out, "type", kind);
        number_member(out, "bytes", u64::from(arg.size));
        out.push(b'}');
    });
    out.extend_from_slice(b"}\n");
}
