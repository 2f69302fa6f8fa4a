//! A table with a header: the record's fields, its arguments in one column, and a column for each
//! property that an object or an owner may have.

use objects::OwnerProperties;
use spdk_trace::{Object, Record};
use text::printable;

use super::text::{arg_value, object_name, poller};
use super::{Format, Head, View};
use crate::digits::{fixed3, hex, number};
use crate::field::{Context, object_property};

/// Writer of one row per record.
#[derive(Default)]
pub(crate) struct Csv {
    owners: bool,
    /// Columns for objects' properties: spec and property.
    objects: Vec<(String, String)>,
    scratch: Vec<u8>,
}

/// Columns before those of objects and owners.
const COLUMNS: &str =
    "lcore,time_us,tsc,tpoint,poller,owner,size,object,object_value,object_time_us,related,args";

impl Format for Csv {
    fn begin(&mut self, out: &mut Vec<u8>, head: &Head<'_>, view: &View<'_>) {
        self.owners = head.has_owners;
        out.extend_from_slice(COLUMNS.as_bytes());
        if view.show_delta {
            out.extend_from_slice(b",delta_us");
        }
        if self.owners {
            for name in owner_columns() {
                out.extend_from_slice(b",owner.");
                out.extend_from_slice(name.as_bytes());
            }
        }
        let specs = view.annotator.map_or(head.annotated, |a| a.specs());
        let columns = specs.iter().flat_map(|s| {
            s.properties
                .iter()
                .map(|p| (s.name.clone(), p.name.clone()))
        });
        self.objects = columns.collect();
        for (spec, property) in &self.objects {
            out.push(b',');
            field(out, format!("{spec}.{property}").as_bytes());
        }
        out.push(b'\n');
    }

    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        number(out, u64::from(record.lcore.0));
        out.push(b',');
        view.time::<0>(out, record.tsc);
        out.push(b',');
        number(out, record.tsc.0);
        out.push(b',');
        field(out, record.tpoint.name.as_bytes());
        out.push(b',');
        if let Some(id) = record.poller {
            poller(out, id);
        }
        out.push(b',');
        field(out, record.owner.unwrap_or_default().as_bytes());
        out.push(b',');
        number(out, u64::from(record.size));
        out.push(b',');
        object(out, record, view);
        self.args(out, record);
        if view.show_delta {
            out.push(b',');
            fixed3(out, view.delta(record.tsc).0);
        }
        if self.owners {
            let properties = record.owner.map(OwnerProperties::parse).unwrap_or_default();
            for name in owner_columns() {
                out.push(b',');
                field(out, properties.get(name).unwrap_or_default().as_bytes());
            }
        }
        self.objects(out, record, view);
        out.push(b'\n');
    }
}

/// Returns the columns for owners' properties; the whole description has a column already.
fn owner_columns() -> impl Iterator<Item = &'static str> {
    OwnerProperties::NAMES.into_iter().skip(1)
}

fn object(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    if let Some(name) = record.object.name() {
        object_name(out, name);
    }
    out.push(b',');
    if let Some(id) = record.object.id() {
        out.extend_from_slice(b"0x");
        hex(out, id);
    }
    out.push(b',');
    if let Object::Known { age: Some(age), .. } = record.object {
        fixed3(out, view.rate.nanos(age).0);
    }
    out.push(b',');
    if let Some(related) = record.related {
        object_name(out, related.name);
    }
    out.push(b',');
}

impl Csv {
    fn objects(&self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        let context = Context {
            rate: view.rate,
            annotator: view.annotator,
        };
        for (spec, property) in &self.objects {
            out.push(b',');
            let value = object_property(record, &context, spec, property);
            field(out, value.unwrap_or_default().as_bytes());
        }
    }

    /// Writes all arguments in one column: `name=value`, separated by blanks.
    fn args(&mut self, out: &mut Vec<u8>, record: &Record<'_>) {
        self.scratch.clear();
        for (i, (spec, value)) in record.args.iter().enumerate() {
            if i > 0 {
                self.scratch.push(b' ');
            }
            self.scratch.extend_from_slice(spec.name.as_bytes());
            self.scratch.push(b'=');
            arg_value(&mut self.scratch, value);
        }
        field(out, &self.scratch);
    }
}

/// Appends a field, safe for a terminal, and quoted if necessary (RFC 4180, section 2).
fn field(out: &mut Vec<u8>, text: &[u8]) {
    let text = printable::text(text);
    let text = text.as_bytes();
    if !text
        .iter()
        .any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r'))
    {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        super::field(&mut out, b"a=1 b=x,\"y\"");
        assert_eq!(out, b"\"a=1 b=x,\"\"y\"\"\"");
    }
}
