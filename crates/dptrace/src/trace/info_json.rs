//! `--info` and `--list-tpoints` as JSON.

use ::capture::Meta;
use spdk_trace::{ArgKind, CapturedTrace, Problems, RawTrace, TickRate, Ticks, Tpoint, Trace};

use super::format::json_text::{member, number_member, string, string_member};
use super::info::{Info, lcores_of};
use crate::input::Loaded;
use crate::measured_rate::Measured;

/// One object that describes the trace. Times are in microseconds from the first record of all lcores.
pub(super) fn info(loaded: &Loaded) -> Info {
    let Loaded { trace, name, measured, capture } = loaded;
    let mut out = vec![b'{'];
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
                of_meta(&mut out, meta);
            }
            of_capture(&mut out, trace, captured, *measured)
        }
        Trace::Json(_) => document(&mut out, trace, *measured),
    };
    member(&mut out, "problems");
    list(&mut out, problems.iter(), |out, finding| string(out, finding.to_string().as_bytes()));
    member(&mut out, "owners");
    list(&mut out, trace.owners().iter(), |out, (id, description)| {
        out.push(b'{');
        string_member(out, "id", id);
        string_member(out, "description", description);
        out.push(b'}');
    });
    out.extend_from_slice(b"}\n");
    Info { text: String::from_utf8_lossy(&out).into_owned(), records, problems }
}

/// Appends an array.
fn list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn head(out: &mut Vec<u8>, trace: &Trace, records: u64, measured: Option<Measured>) {
    number_member(out, "tick_rate", trace.tick_rate().get());
    if let Some(measured) = measured {
        number_member(out, "measured_tick_rate", measured.rate.get());
    }
    number_member(out, "tracepoints", trace.tpoints().all().len() as u64);
    number_member(out, "records", records);
}

/// Microseconds with three decimals.
fn time(out: &mut Vec<u8>, name: &str, rate: TickRate, tsc: Ticks, start: Ticks) {
    member(out, name);
    out.extend_from_slice(rate.nanos(Ticks(tsc.0.saturating_sub(start.0))).to_string().as_bytes());
}

fn rings(out: &mut Vec<u8>, raw: &RawTrace) {
    let all: Vec<_> = raw.rings().collect();
    let start = all.iter().filter_map(|ring| ring.span).map(|(first, _)| first).min().unwrap_or_default();
    let (used, idle): (Vec<_>, Vec<_>) = all.into_iter().partition(|ring| ring.records > 0 || ring.written > 0);
    number_member(out, "idle_lcores", idle.len() as u64);
    member(out, "lcores");
    list(out, used.iter(), |out, ring| {
        out.push(b'{');
        number_member(out, "lcore", u64::from(ring.lcore.0));
        string_member(out, "thread", &ring.thread_name);
        let numbers = [("slots", ring.slots), ("written", ring.written), ("records", ring.records)];
        for (name, number) in numbers.into_iter().chain([("late", ring.late), ("cleared", ring.cleared)]) {
            number_member(out, name, number);
        }
        member(out, "wrapped");
        out.extend_from_slice(if ring.wrapped { b"true" } else { b"false" });
        if let Some((first, last)) = ring.span {
            time(out, "first_us", raw.tick_rate(), first, start);
            time(out, "last_us", raw.tick_rate(), last, start);
        }
        out.push(b'}');
    });
}

/// When and where it was captured.
fn of_meta(out: &mut Vec<u8>, meta: &Meta) {
    member(out, "captured");
    out.push(b'{');
    string_member(out, "utc", &meta.begin.utc);
    number_member(out, "pid", u64::from(meta.process.pid));
    string_member(out, "program", &meta.process.program);
    string_member(out, "hostname", &meta.machine.hostname);
    string_member(out, "kernel", &meta.machine.kernel);
    out.push(b'}');
}

fn of_capture(
    out: &mut Vec<u8>,
    trace: &Trace,
    captured: &CapturedTrace,
    measured: Option<Measured>,
) -> (u64, Problems) {
    let summary = captured.summary();
    let records = summary.rings.iter().map(|ring| ring.records).sum();
    string_member(out, "form", "capture");
    string_member(out, "era", &format!("{:?}", captured.era()));
    string_member(out, "spdk", captured.era().versions());
    head(out, trace, records, measured);
    let (used, idle): (Vec<_>, Vec<_>) = summary.rings.iter().partition(|ring| ring.records > 0 || ring.lost > 0);
    let start = used.iter().filter_map(|ring| ring.span).map(|(first, _)| first).min().unwrap_or_default();
    number_member(out, "idle_lcores", idle.len() as u64);
    member(out, "lcores");
    list(out, used.into_iter(), |out, ring| {
        out.push(b'{');
        number_member(out, "lcore", u64::from(ring.lcore.0));
        string_member(out, "thread", &ring.thread_name);
        for (name, number) in [("slots", ring.slots), ("records", ring.records), ("lost", ring.lost)] {
            number_member(out, name, number);
        }
        if let Some((first, last)) = ring.span {
            time(out, "first_us", trace.tick_rate(), first, start);
            time(out, "last_us", trace.tick_rate(), last, start);
        }
        out.push(b'}');
    });
    (records, summary.problems)
}

/// A document has no rings: it does not say whether these wrapped.
fn document(out: &mut Vec<u8>, trace: &Trace, measured: Option<Measured>) -> (u64, Problems) {
    string_member(out, "form", "json");
    let (lcores, problems) = lcores_of(trace);
    let records = lcores.values().map(|(records, ..)| records).sum();
    head(out, trace, records, measured);
    let start = lcores.values().map(|(_, first, _)| *first).min().unwrap_or_default();
    member(out, "lcores");
    list(out, lcores.iter(), |out, (lcore, (records, first, last))| {
        out.push(b'{');
        number_member(out, "lcore", u64::from(lcore.0));
        number_member(out, "records", *records);
        time(out, "first_us", trace.tick_rate(), *first, start);
        time(out, "last_us", trace.tick_rate(), *last, start);
        out.push(b'}');
    });
    (records, problems)
}

/// An object for each tracepoint.
pub(super) fn tpoints(loaded: &Loaded) -> String {
    let mut out = Vec::new();
    for tpoint in loaded.trace.tpoints().all() {
        one(&mut out, tpoint);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn one(out: &mut Vec<u8>, tpoint: &Tpoint) {
    out.push(b'{');
    number_member(out, "id", u64::from(tpoint.id));
    number_member(out, "group", u64::from(tpoint.group()));
    string_member(out, "name", &tpoint.name);
    for (name, prefix) in [("owner", tpoint.owner_prefix), ("object", tpoint.object_prefix)] {
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
