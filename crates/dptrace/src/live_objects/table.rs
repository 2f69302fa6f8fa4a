//! Objects found alive as tables and as JSON.

use alive::Value;
use screen::{HEAD, NAME, Screen, columns, counted, pad, pad_left};

use super::finder::{Finder, Kind, Snapshot};
use crate::trace::format::json_text::{foreign_member, string};

/// A table for each kind of which there are objects.
pub(super) fn text(finder: &Finder, snapshot: &Snapshot, screen: Screen) -> String {
    let mut text = String::new();
    for (kind, found) in finder.kinds().iter().zip(&snapshot.found) {
        if found.objects.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let title = counted(found.objects.len() as u64, &kind.spec.name);
        text.push_str(&format!("{}\n", screen.paint(NAME, title)));
        let rows = found.objects.iter().map(|object| row(kind, &object.values)).collect::<Vec<_>>();
        write_rows(&mut text, kind, &rows, screen);
    }
    text
}

fn write_rows(text: &mut String, kind: &Kind, rows: &[Vec<String>], screen: Screen) {
    let names = kind.compiled.names();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell));
        cells.max().unwrap_or_default().max(columns(&names[at]))
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(at, cell)| match kind.compiled.is_text(at) {
            true => pad(cell, widths[at]),
            false => pad_left(cell, widths[at]),
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    let head = line(&names.iter().map(String::clone).collect::<Vec<_>>());
    text.push_str(&format!("{}\n", screen.paint(HEAD, screen.cut(&head))));
    for row in rows {
        text.push_str(&screen.cut(&line(row)));
        text.push('\n');
    }
}

fn row(kind: &Kind, values: &[Value]) -> Vec<String> {
    let cell = |(at, value): (usize, &Value)| match value {
        Value::Text(bytes) => printable::text(bytes).into_owned(),
        Value::Int(number) if kind.compiled.is_pointer(at) => format!("{number:#x}"),
        Value::Int(number) => number.to_string(),
    };
    values.iter().enumerate().map(cell).collect()
}

/// A JSON object on a line for each object.
pub(super) fn json(finder: &Finder, snapshot: &Snapshot, out: &mut Vec<u8>) {
    for (kind, found) in finder.kinds().iter().zip(&snapshot.found) {
        for object in &found.objects {
            out.extend_from_slice(b"{\"object\":");
            string(out, kind.spec.name.as_bytes());
            for (at, (name, value)) in kind.compiled.names().iter().zip(&object.values).enumerate() {
                foreign_member(out, name);
                match value {
                    Value::Text(bytes) => string(out, bytes),
                    Value::Int(number) if kind.compiled.is_pointer(at) => {
                        string(out, format!("{number:#x}").as_bytes());
                    }
                    Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
                }
            }
            out.extend_from_slice(b"}\n");
        }
    }
}
