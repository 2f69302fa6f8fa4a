//! The columns of `spdk_trace`'s own listing (`app/trace/trace.cpp`, `print_event`), but with exact
//! times.

use spdk_trace::{ArgValue, Object, Record};

use super::text::{arg_value, object_name, poller, safe};
use super::{Format, Head, View};
use crate::digits::{blanks, fixed3, fixed3_right, number, number_right, pad_to};

/// Width of a thread's name, from 2024 on.
const THREAD_WIDTH: usize = 16;
/// Width of an owner's description, from v24.05 on.
const OWNER_WIDTH: usize = 64;
const NAME_WIDTH: usize = 24;
/// Width of an argument's name, colon and blank included; longer names are cut.
const LABEL_WIDTH: usize = 7;
const VALUE_WIDTH: usize = 16;
/// Width of an object's name with its related object.
const ID_WIDTH: usize = 17;

/// Writer of one line per record, in the columns of the trace's version.
pub(crate) struct Spdk {
    thread_names: bool,
    owners: bool,
}

impl Spdk {
    /// Uses the columns of the version that wrote the trace.
    pub(crate) fn new(head: &Head<'_>) -> Self {
        Self {
            thread_names: head.has_thread_names,
            owners: head.has_owners,
        }
    }
}

impl Format for Spdk {
    fn begin(&mut self, out: &mut Vec<u8>, head: &Head<'_>, view: &View<'_>) {
        out.extend_from_slice(format!("TSC Rate: {}\n", view.rate.get()).as_bytes());
        for (lcore, slots) in &head.rings {
            out.extend_from_slice(format!("Trace Size of lcore ({lcore}): {slots}\n").as_bytes());
        }
    }

    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        if self.thread_names {
            column(out, THREAD_WIDTH, |out| {
                safe(out, record.thread_name.as_bytes());
            });
        }
        number_right::<2>(out, u64::from(record.lcore.0));
        out.extend_from_slice(b": ");
        if view.show_delta {
            fixed3_right::<10>(out, view.delta(record.tsc).0);
        } else {
            view.time::<10>(out, record.tsc);
        }
        out.push(b' ');
        if view.show_tsc {
            out.push(b'(');
            number_right::<9>(out, record.tsc.0);
            out.extend_from_slice(b") ");
        }
        self.owner(out, record);
        column(out, NAME_WIDTH, |out| {
            out.extend_from_slice(record.tpoint.name.as_bytes());
        });
        if record.size > 0 {
            out.extend_from_slice(b"size: ");
            number_right::<6>(out, u64::from(record.size));
            out.push(b' ');
        } else {
            blanks(out, 13);
        }
        object(out, record, view);
        self.args(out, record);
        out.push(b'\n');
    }
}

impl Spdk {
    fn owner(&self, out: &mut Vec<u8>, record: &Record<'_>) {
        if self.owners {
            column(out, OWNER_WIDTH, |out| {
                safe(out, record.owner.unwrap_or_default().as_bytes());
            });
        } else if let Some(id) = record.poller {
            poller(out, id);
            out.push(b' ');
        } else {
            blanks(out, 4);
        }
    }

    fn args(&self, out: &mut Vec<u8>, record: &Record<'_>) {
        // From v24.05 on, the argument by which the related object was found is not shown again.
        let shown_by_relation = record
            .related
            .filter(|_| self.owners)
            .and_then(|r| r.arg)
            .map(usize::from);
        for (index, (spec, value)) in record.args.iter().enumerate() {
            if Some(index) == shown_by_relation {
                continue;
            }
            label(out, &spec.name);
            column(out, VALUE_WIDTH, |out| argument(out, value));
        }
    }
}

/// Appends a left-aligned column and a blank.
fn column(out: &mut Vec<u8>, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    pad_to(out, start, width);
    out.push(b' ');
}

fn label(out: &mut Vec<u8>, name: &str) {
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    if out.len() - start > LABEL_WIDTH && name.is_ascii() {
        out.truncate(start + LABEL_WIDTH);
    }
    pad_to(out, start, LABEL_WIDTH);
}

/// Appends an argument: numbers are signed here, and strings are cut to their column.
fn argument(out: &mut Vec<u8>, value: ArgValue<'_>) {
    match value {
        ArgValue::Pointer(_) => arg_value(out, value),
        ArgValue::Int(n) => {
            let signed = n.cast_signed();
            if signed < 0 {
                out.push(b'-');
            }
            number(out, signed.unsigned_abs());
        }
        ArgValue::Str(bytes) => safe(out, &bytes[..bytes.len().min(VALUE_WIDTH)]),
    }
}

fn object(out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
    let name = match record.object {
        Object::None => return,
        Object::Untyped(id) => {
            label(out, "object");
            return column(out, VALUE_WIDTH, |out| argument(out, ArgValue::Pointer(id)));
        }
        Object::Unseen(_) | Object::ValueOnly(_) | Object::Nameless { .. } => None,
        Object::Known { name, .. } => Some(name),
    };
    label(out, "id");
    let start = out.len();
    match name {
        Some(name) => object_name(out, name),
        None => out.extend_from_slice(b"N/A"),
    }
    if let (Some(_), Some(related)) = (name, record.related) {
        out.extend_from_slice(b" (");
        object_name(out, related.name);
        out.push(b')');
    }
    pad_to(out, start, ID_WIDTH);
    if let (Object::Known { age: Some(age), .. }, false) = (record.object, record.tpoint.new_object)
    {
        label(out, "time");
        column(out, VALUE_WIDTH, |out| fixed3(out, view.rate.nanos(age).0));
    }
}
