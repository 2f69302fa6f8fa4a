//! The listing on a terminal: one line per record that fits its width. The name of a connection is
//! too long for a line, so it is printed once, with a number that stands for it from then on.

use std::collections::HashMap;
use std::fmt::Write as _;

use foldhash::fast::RandomState;
use screen::{HEAD, NAME, Screen, columns, pad, pad_left, wrap};
use spdk_trace::{Object, OwnerLabel, Record};
use text::printable;

use super::text::{arg_value, object_name, poller};
use super::{Format, Head, View};
use crate::digits::{fixed3, hex};

/// Width of an owner's number.
const OWNER: usize = 3;
/// Width of a record's size.
const SIZE: usize = 6;
/// Width of an object with its related object.
const OBJECT: usize = 8;
/// Width of an object's age.
const AGE_WIDTH: usize = 9;
/// Width of the time.
const TIME_WIDTH: usize = 12;
/// Width of the raw ticks.
const TICKS: usize = 20;
/// Maximum length of a tracepoint name in SPDK (`struct spdk_trace_tpoint`, include/spdk/trace.h:
/// 24 bytes with a NUL).
const MAX_NAME_BYTES: usize = 24;
/// Limit on remembered names: a trace that is followed for days may have any number of connections.
const MAX_CACHED_NAMES: usize = 10_000;

/// Writer of one line per record.
pub(crate) struct Terminal {
    screen: Screen,
    /// Width of the tracepoint names.
    name: usize,
    numbers: HashMap<String, u32, RandomState>,
    last: u32,
    /// Names with numbers that were not printed yet.
    unprinted: HashMap<u32, String, RandomState>,
    line: Vec<u8>,
}

impl Terminal {
    /// Creates a writer for a trace with these tracepoints.
    pub(crate) fn new(head: &Head<'_>, screen: Screen) -> Self {
        let name = head
            .tpoints
            .all()
            .iter()
            .map(|tpoint| columns(&tpoint.name))
            .max()
            .unwrap_or(0);
        Self {
            screen,
            name: name.clamp("tracepoint".len(), MAX_NAME_BYTES),
            numbers: HashMap::default(),
            last: 0,
            unprinted: HashMap::default(),
            line: Vec::new(),
        }
    }

    /// Prints the name that a number stands for, wrapped over several lines if needed.
    fn definition(&self, out: &mut Vec<u8>, number: u32, name: &str) {
        let head = format!("#{number} = ");
        let width = self
            .screen
            .width()
            .unwrap_or(usize::MAX)
            .saturating_sub(head.len());
        for (index, line) in wrap(name, width).iter().enumerate() {
            let indented = if index == 0 {
                format!("{head}{line}")
            } else {
                format!("{:1$}{line}", "", head.len())
            };
            push_line(
                out,
                &self
                    .screen
                    .cut(&self.screen.paint(NAME, indented).to_string()),
            );
        }
    }

    /// Returns the number of a name, assigning a new one if needed.
    fn number(&mut self, name: String) -> u32 {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        if self.numbers.len() >= MAX_CACHED_NAMES {
            self.numbers.clear();
        }
        self.last += 1;
        self.unprinted.insert(self.last, name.clone());
        self.numbers.insert(name, self.last);
        self.last
    }

    /// Returns the text for the record's owner, and adds its number: that of the owner's
    /// description, or of the object that an argument points to.
    fn owner(&mut self, record: &Record<'_>, objects: &mut Vec<u32>, view: &View<'_>) -> String {
        if let OwnerLabel::Description(description) = record.label {
            let mut name = printable::text(description.as_bytes()).into_owned();
            if let Some(object) = view.owner_object(record) {
                let _ = write!(name, ", {}", object.text);
            }
            objects.push(self.number(name));
        }
        match (objects.last(), record.label) {
            (Some(number), _) => format!("#{number}"),
            (None, OwnerLabel::Poller(of)) => text(|out| poller(out, of)),
            (None, _) => String::new(),
        }
    }

    /// Returns the arguments, without the objects that they point to, and the numbers of these
    /// objects.
    fn args(&mut self, record: &Record<'_>, view: &View<'_>) -> (Vec<String>, Vec<u32>) {
        let is_annotated = view.is_annotated(record);
        let (mut args, mut objects) = (Vec::new(), Vec::new());
        for (index, (spec, value)) in record.args.iter().enumerate() {
            let mut annotation = Vec::new();
            if is_annotated && view.push_annotation(&mut annotation, record, index, spec, value) {
                let number = self.number(String::from_utf8_lossy(&annotation).into_owned());
                // The first one is in the owner's column, if that is free.
                if !objects.is_empty() || matches!(record.label, OwnerLabel::Description(_)) {
                    args.push(format!("{}: #{number}", spec.name));
                }
                objects.push(number);
            } else {
                args.push(format!(
                    "{}: {}",
                    spec.name,
                    text(|out| arg_value(out, value))
                ));
            }
        }
        (args, objects)
    }

    fn row(&mut self, record: &Record<'_>, view: &View<'_>) -> (String, Vec<u32>) {
        let (args, mut objects) = self.args(record, view);
        let first = objects
            .first()
            .copied()
            .filter(|_| !matches!(record.label, OwnerLabel::Description(_)));
        let owner = match first {
            Some(number) => format!("#{number}"),
            None => self.owner(record, &mut objects, view),
        };
        let mut row = format!(
            "{:>3} {}",
            record.lcore.0,
            text(|out| view.time::<TIME_WIDTH>(out, record.tsc))
        );
        if view.show_tsc {
            let _ = write!(row, " {:>TICKS$}", record.tsc.0);
        }
        if view.show_delta {
            let _ = write!(
                row,
                " {:>TIME_WIDTH$}",
                format!("+{}", view.delta(record.tsc))
            );
        }
        let size = if record.size == 0 {
            String::new()
        } else {
            record.size.to_string()
        };
        let (object, age) = object(record, view);
        let owner = self.screen.paint(NAME, pad(&owner, OWNER));
        let name = pad(&record.tpoint.name, self.name);
        let _ = write!(
            row,
            " {owner} {name} {size:>SIZE$} {} {}",
            pad(&object, OBJECT),
            pad_left(&age, AGE_WIDTH)
        );
        let _ = write!(row, " {}", args.join(", "));
        (row, objects)
    }
}

impl Format for Terminal {
    fn begin(&mut self, out: &mut Vec<u8>, _head: &Head<'_>, view: &View<'_>) {
        let mut head = format!("{:>3} {:>TIME_WIDTH$}", "lc", "us");
        if view.show_tsc {
            let _ = write!(head, " {:>TICKS$}", "ticks");
        }
        if view.show_delta {
            let _ = write!(head, " {:>TIME_WIDTH$}", "since");
        }
        let name = self.name;
        let _ = write!(
            head,
            " {:OWNER$} {:name$} {:>SIZE$} {:OBJECT$} {:>AGE_WIDTH$} arguments",
            "own", "tracepoint", "size", "object", "age us"
        );
        push_line(
            out,
            &self.screen.cut(&self.screen.paint(HEAD, head).to_string()),
        );
    }

    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        self.keep(&mut line, record, view);
        self.put(out, &line);
        self.line = line;
    }

    /// Stores the count of the numbers in the line, the numbers, 4 bytes each, and the line.
    fn keep(&mut self, line: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        let (row, numbers) = self.row(record, view);
        line.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
        for number in &numbers {
            line.extend_from_slice(&number.to_le_bytes());
        }
        line.extend_from_slice(row.trim_end().as_bytes());
    }

    fn put(&mut self, out: &mut Vec<u8>, line: &[u8]) {
        let Some((count, mut rest)) = line.split_first_chunk() else {
            return;
        };
        for _ in 0..u32::from_le_bytes(*count) {
            let Some((number, next)) = rest.split_first_chunk() else {
                return;
            };
            rest = next;
            let number = u32::from_le_bytes(*number);
            let Some(name) = self.unprinted.remove(&number) else {
                continue;
            };
            self.definition(out, number, &name);
        }
        push_line(out, &self.screen.cut(&String::from_utf8_lossy(rest)));
    }
}

fn push_line(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Returns the text that a function appends.
fn text(append: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    append(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the name of an object with its related object, and its age.
fn object(record: &Record<'_>, view: &View<'_>) -> (String, String) {
    let (mut name, age) = match record.object {
        Object::None | Object::ValueOnly(_) => return (String::new(), String::new()),
        Object::Untyped(id) => (text(|out| hex(out, id)), None),
        Object::Unseen(_) => ("n/a".to_owned(), None),
        Object::Nameless { age, .. } => (String::new(), age),
        Object::Known { name, age, .. } => (text(|out| object_name(out, name)), age),
    };
    if let Some(related) = record.related {
        let _ = write!(name, " ({})", text(|out| object_name(out, related.name)));
    }
    (
        name,
        age.map_or_else(String::new, |age| {
            text(|out| fixed3(out, view.rate.nanos(age).0))
        }),
    )
}
