//! The listing of SPDK's annotation script (`scripts/bpf/trace.py`), column for column.

use spdk_trace::{ArgValue, Object, OwnerLabel, Poller, Record, printable};

use super::{Format, View};
use crate::digits::{blanks, fixed3_left, hex, left, number, number_right, number_two_digits, pad_to};

/// Columns of the tracepoint's name.
const NAME_WIDTH: usize = 24;
/// Columns of `size: N`.
const SIZE_WIDTH: usize = 12;
/// Columns of an object's id with what it is related to.
const ID_WIDTH: usize = 12;

/// Writes a line a record.
pub(crate) struct Text;

impl Format for Text {
    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        let line = out.len();
        number_right(out, u64::from(record.lcore.0), 3);
        out.push(b' ');
        view.time(out, record.tsc, 16);
        if view.show_tsc {
            out.push(b' ');
            number_right(out, record.tsc.0, 20);
        }
        if view.show_delta {
            out.push(b' ');
            let start = out.len();
            out.push(b'+');
            fixed3_left(out, view.delta(record.tsc).0, 0);
            let width = out.len() - start;
            blanks(out, 13usize.saturating_sub(width));
        }
        out.push(b' ');
        let start = out.len();
        owner_label(out, record.label);
        pad_to(out, start, 3);
        out.push(b' ');
        left(out, record.tpoint.name.as_bytes(), NAME_WIDTH);
        out.push(b' ');
        size(out, record.size);
        object(out, record, view);
        args(out, record, view);
        let end = out[line..].iter().rposition(|b| !b.is_ascii_whitespace()).map_or(line, |last| line + last + 1);
        out.truncate(end);
        out.push(b'\n');
    }
}

/// Appends foreign text so that a terminal can't be made to obey it.
#[inline]
pub(crate) fn safe(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().all(|b| (0x20..0x7f).contains(b)) {
        out.extend_from_slice(bytes);
    } else {
        out.extend_from_slice(printable(bytes).as_bytes());
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

#[inline]
fn owner_label(out: &mut Vec<u8>, label: OwnerLabel<'_>) {
    match label {
        OwnerLabel::None => {}
        OwnerLabel::Description(description) => safe(out, description.as_bytes()),
        OwnerLabel::Poller(p) => poller(out, p),
    }
}

#[inline]
fn size(out: &mut Vec<u8>, size: u32) {
    let start = out.len();
    if size != 0 {
        out.extend_from_slice(b"size: ");
        number(out, u64::from(size));
    }
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
        fixed3_left(out, view.rate.nanos(age).0, 8);
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
