//! One document with the fields of `spdk_trace -j` (`app/trace/trace.cpp`, `print_event_json`), in
//! its order, and `annotations`: those of the owners once, those of the objects in each entry.

use objects::{Annotator, ReferencedObject};
use spdk_trace::{Object, Record, TpointTable};

use text::json::string;

use super::json_text::{
    foreign_member, member, number_member, string_member, value, written_member,
};
use super::text::{object_name, poller};
use super::{Format, Head, View};
use crate::annotation::{ReadBack, TYPE_MEMBER, members, owner_members};

/// Writer of the document.
pub(crate) struct Json;

impl Format for Json {
    fn begin(&mut self, out: &mut Vec<u8>, head: &Head<'_>, view: &View<'_>) {
        out.push(b'{');
        number_member(out, "tsc_rate", view.rate.get());
        definitions(out, head.tpoints);
        if head.has_owners {
            owners(out, &head.owners);
        }
        member(out, "entries");
        out.extend_from_slice(b"[\n");
    }

    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        out.push(b'{');
        number_member(out, "lcore", u64::from(record.lcore.0));
        number_member(out, "tpoint", u64::from(record.tpoint.id));
        number_member(out, "tsc", record.tsc.0);
        poller_member(out, record);
        if let Some(owner) = record.owner {
            string_member(out, "owner", owner);
        }
        if record.size != 0 {
            number_member(out, "size", u64::from(record.size));
        }
        object(out, record);
        related_member(out, record);
        args(out, record);
        annotations(out, record, view);
        out.push(b'}');
    }

    fn separator(&self) -> &'static [u8] {
        b",\n"
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }
}

/// Appends the poller, if the record has one.
pub(super) fn poller_member(out: &mut Vec<u8>, record: &Record<'_>) {
    if let Some(id) = record.poller {
        written_member(out, "poller", |out| poller(out, id));
    }
}

/// Appends the related object, if the record has one.
pub(super) fn related_member(out: &mut Vec<u8>, record: &Record<'_>) {
    if let Some(related) = record.related {
        written_member(out, "related", |out| object_name(out, related.name));
    }
}

fn definitions(out: &mut Vec<u8>, tpoints: &TpointTable) {
    member(out, "tpoints");
    out.push(b'[');
    for (i, tpoint) in tpoints.all().iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"{" } else { b",{" });
        string_member(out, "name", &tpoint.name);
        number_member(out, "id", u64::from(tpoint.id));
        member(out, "new_object");
        out.extend_from_slice(if tpoint.new_object { b"true" } else { b"false" });
        member(out, "args");
        out.push(b'[');
        for (j, arg) in tpoint.args.iter().enumerate() {
            out.extend_from_slice(if j == 0 { b"{" } else { b",{" });
            string_member(out, "name", &arg.name);
            number_member(out, "type", u64::from(arg.kind.number()));
            number_member(out, "size", u64::from(arg.size));
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    out.push(b']');
}

fn owners(out: &mut Vec<u8>, owners: &[(String, &str)]) {
    member(out, "owners");
    out.push(b'{');
    for (id, description) in owners {
        foreign_member(out, id);
        string(out, description.as_bytes());
    }
    out.push(b'}');
    member(out, "annotations");
    out.extend_from_slice(b"{\"owners\":{");
    for (id, description) in owners {
        foreign_member(out, id);
        out.push(b'{');
        owner_members(out, description);
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
}

fn object(out: &mut Vec<u8>, record: &Record<'_>) {
    let Some(id) = record.object.id() else { return };
    member(out, "object");
    out.push(b'{');
    if let Object::Known { name, age, .. } = record.object {
        written_member(out, "id", |out| object_name(out, name));
        // SPDK omits the time in the record that creates the object: it is 0.
        if let Some(age) = age.filter(|_| !record.tpoint.new_object) {
            number_member(out, "time", age.0);
        }
    }
    number_member(out, "value", id);
    out.push(b'}');
}

fn args(out: &mut Vec<u8>, record: &Record<'_>) {
    if record.tpoint.args.is_empty() {
        return;
    }
    member(out, "args");
    out.push(b'[');
    for (i, (_, arg)) in record.args.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        value(out, arg);
    }
    out.push(b']');
}

/// Appends the entry's `annotations`, if any argument has one, from the recording or else from the
/// document read.
pub(super) fn annotations(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    if !view.is_annotated(record) {
        return;
    }
    let read = record.annotations.map(ReadBack::parse);
    let mut open = false;
    for (index, (spec, arg)) in record.args.iter().enumerate() {
        let found = view.object(record, index, arg);
        let read = if found.is_none() {
            read.as_ref().and_then(|read| read.json(&spec.name))
        } else {
            None
        };
        if found.is_none() && read.is_none() {
            continue;
        }
        if !open {
            member(out, "annotations");
            out.push(b'{');
            open = true;
        }
        foreign_member(out, &spec.name);
        match (found, view.annotator, read) {
            (Some(found), Some(annotator), _) => object_members(out, annotator, found),
            (_, _, Some(json)) => out.extend_from_slice(json.as_bytes()),
            (_, _, None) => out.extend_from_slice(b"{}"),
        }
    }
    if let (Some(object), Some(annotator)) = (view.owner_object(record), view.annotator) {
        if !open {
            member(out, "annotations");
            out.push(b'{');
            open = true;
        }
        foreign_member(out, &annotator.specs()[object.spec].name);
        object_members(
            out,
            annotator,
            ReferencedObject {
                object,
                same_name: true,
            },
        );
    }
    if open {
        out.push(b'}');
    }
}

fn object_members(out: &mut Vec<u8>, annotator: &Annotator, found: ReferencedObject<'_>) {
    out.push(b'{');
    if !found.same_name {
        string(out, TYPE_MEMBER.as_bytes());
        out.push(b':');
        string(out, annotator.specs()[found.object.spec].name.as_bytes());
        out.push(b',');
    }
    members(out, annotator, found.object);
    out.push(b'}');
}
