//! The listing of SPDK's annotation script (`scripts/bpf/trace.py`), column for column.

use spdk_trace::{ArgValue, Object, OwnerLabel, Poller, Record};
use text::printable;

use super::{Format, Head, View};
use crate::digits::{fixed3, hex, number, number_right, number_two_digits, pad_to};

/// Width of the tracepoint's name, and the blank after it.
const NAME_WIDTH: usize = 24 + 1;
/// Width of `size: N`.
const SIZE_WIDTH: usize = 12;
/// Width of an object's id with its related object.
const ID_WIDTH: usize = 12;
/// Width of an object's age.
const AGE_WIDTH: usize = 8;

/// Writer of one line per record.
pub(crate) struct Text {
    /// Padded names, by tracepoint id.
    names: Vec<Vec<u8>>,
}

impl Text {
    /// Creates a writer for a trace with these tracepoints.
    pub(crate) fn new(head: &Head<'_>) -> Self {
        let mut names = Vec::new();
        for tpoint in head.tpoints.all() {
            let id = usize::from(tpoint.id);
            if names.len() <= id {
                names.resize(id + 1, Vec::new());
            }
            let mut name = tpoint.name.clone().into_bytes();
            pad_to(&mut name, 0, NAME_WIDTH - 1);
            name.push(b' ');
            names[id] = name;
        }
        Self { names }
    }

    #[inline]
    fn name(&self, out: &mut Vec<u8>, id: u16) {
        let name = self
            .names
            .get(usize::from(id))
            .map(Vec::as_slice)
            .unwrap_or_default();
        match <&[u8; NAME_WIDTH]>::try_from(name) {
            Ok(whole) => out.extend_from_slice(whole),
            // A name that is not ASCII has more bytes than columns.
            Err(_) => out.extend_from_slice(name),
        }
    }
}

impl Format for Text {
    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        let line = out.len();
        number_right::<3>(out, u64::from(record.lcore.0));
        out.push(b' ');
        view.time::<16>(out, record.tsc);
        if view.show_tsc {
            out.push(b' ');
            number_right::<20>(out, record.tsc.0);
        }
        if view.show_delta {
            out.push(b' ');
            let start = out.len();
            out.push(b'+');
            fixed3(out, view.delta(record.tsc).0);
            pad_to(out, start, 13);
        }
        out.push(b' ');
        owner_label(out, record.label);
        self.name(out, record.tpoint.id);
        size(out, record.size);
        object(out, record, view);
        args(out, record, view);
        let end = out[line..]
            .iter()
            .rposition(|b| !b.is_ascii_whitespace())
            .map_or(line, |last| line + last + 1);
        out.truncate(end);
        out.push(b'\n');
    }
}

/// Appends untrusted text so that it can't control a terminal.
#[inline]
pub(crate) fn safe(out: &mut Vec<u8>, bytes: &[u8]) {
    if printable::is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        out.extend_from_slice(printable::text(bytes).as_bytes());
    }
}

/// Appends a poller: prefix and at least two digits.
pub(crate) fn poller(out: &mut Vec<u8>, poller: Poller<'_>) {
    match poller {
        Poller::Id(prefix, id) => {
            out.push(prefix as u8);
            number_two_digits(out, u64::from(id));
        }
        Poller::Text(text) => safe(out, text.as_bytes()),
    }
}

/// Appends the owner in at least three columns, and a blank.
#[inline]
fn owner_label(out: &mut Vec<u8>, label: OwnerLabel<'_>) {
    let start = out.len();
    match label {
        OwnerLabel::None => {}
        OwnerLabel::Description(description) => safe(out, description.as_bytes()),
        OwnerLabel::Poller(p) => poller(out, p),
    }
    pad_to(out, start, 3);
    out.push(b' ');
}

#[inline]
fn size(out: &mut Vec<u8>, size: u32) {
    if size == 0 {
        out.extend_from_slice(&[b' '; SIZE_WIDTH]);
        return;
    }
    let start = out.len();
    out.extend_from_slice(b"size: ");
    number(out, u64::from(size));
    pad_to(out, start, SIZE_WIDTH);
}

/// Appends an object's name.
pub(crate) fn object_name(out: &mut Vec<u8>, name: spdk_trace::ObjectName) {
    out.extend_from_slice(name.prefix.encode_utf8(&mut [0; 4]).as_bytes());
    number(out, name.number);
}

#[inline]
fn object(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    let before = out.len();
    out.extend_from_slice(b"id: ");
    let start = out.len();
    let age = match record.object {
        Object::None | Object::ValueOnly(_) => {
            out.truncate(before);
            return;
        }
        Object::Untyped(id) => {
            hex(out, id);
            None
        }
        Object::Unseen(_) => {
            out.extend_from_slice(b"n/a");
            None
        }
        // Like SPDK's script, which prints the empty name.
        Object::Nameless { age, .. } => age,
        Object::Known { name, age, .. } => {
            object_name(out, name);
            age
        }
    };
    if let Some(related) = record.related {
        out.extend_from_slice(b" (");
        object_name(out, related.name);
        out.push(b')');
    }
    pad_to(out, start, ID_WIDTH);
    out.push(b' ');
    if let Some(age) = age {
        out.extend_from_slice(b"time: ");
        let start = out.len();
        fixed3(out, view.rate.nanos(age).0);
        pad_to(out, start, AGE_WIDTH);
        out.push(b' ');
    }
}

#[inline]
fn args(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    let annotated = view.is_annotated(record);
    for (index, (spec, value)) in record.args.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        if annotated && view.push_annotation(out, record, index, spec, value) {
            continue;
        }
        out.extend_from_slice(spec.name.as_bytes());
        out.extend_from_slice(b": ");
        arg_value(out, value);
    }
    if annotated && let Some(owner) = view.owner_object(record) {
        if !record.tpoint.args.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(owner.text.as_bytes());
    }
}

/// Appends a value: pointers in hexadecimal with 0x, numbers in unsigned decimal, strings as they are.
#[inline]
pub(crate) fn arg_value(out: &mut Vec<u8>, value: ArgValue<'_>) {
    match value {
        ArgValue::Int(n) => number(out, n),
        ArgValue::Pointer(p) => {
            out.extend_from_slice(b"0x");
            hex(out, p);
        }
        ArgValue::Str(bytes) => safe(out, bytes),
    }
}
