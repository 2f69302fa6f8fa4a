//! Objects found alive as tables and as JSON.

use std::fmt::Write as _;

use alive::Value;
use screen::{HEAD, NAME, Screen, columns, counted, pad, pad_left, shorten};

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
        // SANITY: writing to a string does not fail.
        let title = counted(found.objects.len() as u64, &kind.spec.name);
        let _ = writeln!(text, "{}", screen.paint(NAME, title));
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
    let is_text: Vec<bool> = (0..names.len()).map(|at| kind.compiled.is_text(at)).collect();
    let widths = screen.width().map_or(widths.clone(), |room| fit(&widths, &is_text, room));
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).zip(&is_text).map(|((cell, &width), &is_text)| {
            if is_text { pad(&shorten(cell, width), width) } else { pad_left(cell, width) }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    let head = line(names);
    let _ = writeln!(text, "{}", screen.paint(HEAD, screen.cut(&head)));
    for row in rows {
        text.push_str(&screen.cut(&line(row)));
        text.push('\n');
    }
}

/// The columns that a text is shortened to at most.
const SHORTEST: usize = 16;

/// The widths of the first columns that fit a terminal: texts are made shorter until the last of them fits; what follows it is
/// left out if there is no room.
fn fit(widths: &[usize], is_text: &[bool], room: usize) -> Vec<usize> {
    let last_text = is_text.iter().rposition(|&is_text| is_text);
    let mut fitted: Vec<usize> = widths.to_vec();
    let needed = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    while fitted.len() > 1 && needed(&fitted) > room {
        let at = fitted.len() - 1;
        if last_text.is_none_or(|last| at > last) {
            fitted.pop();
            continue;
        }
        // The longest text gives way first.
        let texts = (0..fitted.len()).filter(|&at| is_text[at] && fitted[at] > SHORTEST);
        match texts.max_by_key(|&at| fitted[at]) {
            Some(longest) => fitted[longest] -= 1,
            None => break,
        }
    }
    fitted
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_a_terminal() {
        let (widths, is_text) = ([14, 3, 30, 60, 5], [false, false, true, true, false]);
        assert_eq!(fit(&widths, &is_text, 200), widths);
        assert_eq!(fit(&widths, &is_text, 115), [14, 3, 30, 60]);
        assert_eq!(fit(&widths, &is_text, 80), [14, 3, 28, 27], "two blanks before each");
        assert_eq!(fit(&widths, &is_text, 20), [14, 3, SHORTEST, SHORTEST], "the rest is cut");
        assert_eq!(fit(&[9, 9], &[false, false], 12), [9]);
    }
}
