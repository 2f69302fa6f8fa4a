//! One JSON object per line, each complete in itself: names instead of ids, and nanoseconds besides
//! ticks.

use spdk_trace::{ArgValue, Object, Record};
use text::json::begin;

use super::json::{annotations, poller_member, related_member};
use super::json_text::{
    foreign_member, member, number_member, string_member, value, written_member,
};
use super::text::object_name;
use super::{Format, View};
use crate::annotation::owner_members;
use crate::digits::hex;

/// Writer of one line per record.
pub(crate) struct Ndjson {
    envelope: String,
}

impl Default for Ndjson {
    fn default() -> Self {
        Self {
            envelope: begin("trace.record").to_string(),
        }
    }
}

impl Format for Ndjson {
    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        out.extend_from_slice(self.envelope.as_bytes());
        member(out, "time_ns");
        view.time_nanos(out, record.tsc);
        if view.show_delta {
            number_member(out, "delta_ns", view.delta(record.tsc).0);
        }
        number_member(out, "tsc", record.tsc.0);
        number_member(out, "lcore", u64::from(record.lcore.0));
        if !record.thread_name.is_empty() {
            string_member(out, "thread", record.thread_name);
        }
        string_member(out, "tpoint", &record.tpoint.name);
        poller_member(out, record);
        owner(out, record);
        if record.size != 0 {
            number_member(out, "size", u64::from(record.size));
        }
        object(out, record, view);
        related_member(out, record);
        args(out, record);
        annotations(out, record, view);
        out.extend_from_slice(b"}\n");
    }
}

fn owner(out: &mut Vec<u8>, record: &Record<'_>) {
    let Some(description) = record.owner else {
        return;
    };
    member(out, "owner");
    out.push(b'{');
    string_member(out, "description", description);
    owner_members(out, description);
    out.push(b'}');
}

/// Appends a pointer as a string: it does not fit the double that most readers of JSON use for a
/// number.
fn pointer(out: &mut Vec<u8>, p: u64) {
    out.extend_from_slice(b"\"0x");
    hex(out, p);
    out.push(b'"');
}

fn object(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    let Some(id) = record.object.id() else { return };
    member(out, "object");
    out.push(b'{');
    if let Object::Known { name, age, .. } = record.object {
        written_member(out, "id", |out| object_name(out, name));
        if let Some(age) = age {
            number_member(out, "time_ns", view.rate.nanos(age).0);
        }
    }
    member(out, "value");
    pointer(out, id);
    out.push(b'}');
}

fn args(out: &mut Vec<u8>, record: &Record<'_>) {
    if record.tpoint.args.is_empty() {
        return;
    }
    member(out, "args");
    arg_object(out, record);
}

/// Appends all arguments as a JSON object.
pub fn arg_object(out: &mut Vec<u8>, record: &Record<'_>) {
    out.push(b'{');
    for (spec, arg) in record.args.iter() {
        foreign_member(out, &spec.name);
        match arg {
            ArgValue::Pointer(p) => pointer(out, p),
            other => value(out, other),
        }
    }
    out.push(b'}');
}
