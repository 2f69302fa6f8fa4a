//! Objects found alive as tables and as JSON.

use std::fmt::Write as _;

use records::json_text::{foreign_member, string_member};
use screen::{HEAD, NAME, Screen, columns, counted, pad, pad_left, shorten};
use serde_json::Value as Json;
use text::json::string;
use text::printable;

use crate::alive::{AliveObject, Value};
use crate::rpc::{self, Answers, Rows, RpcOnlyObject};
use crate::{Finder, Kind, Snapshot};

/// Formats a table for each kind with objects. Columns from the RPC come last.
pub fn text(finder: &Finder, snapshot: &Snapshot, answers: &Answers, screen: Screen) -> String {
    let mut text = String::new();
    for (kind, found) in finder.kinds().iter().zip(&snapshot.found) {
        let said = answers.rows(&kind.spec.name);
        let table = Table::new(kind, &found.objects, said);
        if table.rows.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        // SANITY: writing to a string does not fail.
        let title = counted(table.rows.len() as u64, &kind.spec.name);
        let _ = writeln!(text, "{}", screen.paint(NAME, title));
        table.write(&mut text, screen);
    }
    text
}

/// Objects of a kind.
struct Table {
    names: Vec<String>,
    is_text: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(kind: &Kind, objects: &[AliveObject], said: Option<&Rows>) -> Self {
        let mut names = kind.compiled.names().to_vec();
        let mut is_text: Vec<bool> = (0..names.len())
            .map(|at| kind.compiled.is_text(at))
            .collect();
        let mut rows: Vec<_> = objects
            .iter()
            .map(|object| row(kind, &object.values))
            .collect();
        if let Some(said) = said {
            let none = || vec!["-".to_owned(); said.names().count()];
            let cells = |values: &[Json]| values.iter().map(rpc_cell).collect::<Vec<_>>();
            for (row, object) in rows.iter_mut().zip(objects) {
                row.extend(said.values(kind, object).map_or_else(none, cells));
            }
            for RpcOnlyObject { identity, values } in said.others(kind, objects) {
                let of_identity = |name: &String| identity.iter().find(|(known, _)| known == name);
                let cell = |name| {
                    of_identity(name)
                        .map_or("-".into(), |(_, text)| printable::text(text.as_bytes()))
                };
                rows.push(
                    names
                        .iter()
                        .map(|name| cell(name).into_owned())
                        .chain(cells(values))
                        .collect(),
                );
            }
            is_text.extend(said.names().map(|_| true));
            names.extend(said.names().map(|name| format!("rpc.{name}")));
        }
        Self {
            names,
            is_text,
            rows,
        }
    }

    fn write(&self, text: &mut String, screen: Screen) {
        let width = |at: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|row| row.get(at))
                .map(|cell| columns(cell));
            cells
                .max()
                .unwrap_or_default()
                .max(columns(&self.names[at]))
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        let widths = screen
            .width()
            .map_or(widths.clone(), |room| fit(&widths, &self.is_text, room));
        let line =
            |cells: &[String]| {
                let cells = cells.iter().zip(&widths).zip(&self.is_text).map(
                    |((cell, &width), &is_text)| {
                        if is_text {
                            pad(&shorten(cell, width), width)
                        } else {
                            pad_left(cell, width)
                        }
                    },
                );
                format!("  {}", cells.collect::<Vec<_>>().join("  "))
                    .trim_end()
                    .to_owned()
            };
        let head = line(&self.names);
        // SANITY: writing to a string does not fail.
        let _ = writeln!(text, "{}", screen.paint(HEAD, screen.cut(&head)));
        for row in &self.rows {
            text.push_str(&screen.cut(&line(row)));
            text.push('\n');
        }
    }
}

/// Formats a value from the RPC for printing.
fn rpc_cell(value: &Json) -> String {
    printable::text(rpc::shown(value).as_bytes()).into_owned()
}

/// Minimum width of a shortened text, in columns.
const MIN_SHORTENED_WIDTH: usize = 16;

/// Returns the widths of the first columns that fit a terminal. Texts are shortened until the last
/// of them fits; later columns are dropped if there is no room.
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
        // The longest text is shortened first.
        let texts = (0..fitted.len()).filter(|&at| is_text[at] && fitted[at] > MIN_SHORTENED_WIDTH);
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
        Value::Int(number) => kind.compiled.enumerator(at, *number).map_or_else(
            || number.to_string(),
            |name| printable::text(name.as_bytes()).into_owned(),
        ),
    };
    values.iter().enumerate().map(cell).collect()
}

/// Writes a JSON object on a line for each object. Values from the RPC are in its member `rpc`.
pub fn json(finder: &Finder, snapshot: &Snapshot, answers: &Answers, out: &mut Vec<u8>) {
    for (kind, found) in finder.kinds().iter().zip(&snapshot.found) {
        let said = answers.rows(&kind.spec.name);
        for object in &found.objects {
            begin(out, kind);
            for (at, (name, value)) in kind.compiled.names().iter().zip(&object.values).enumerate()
            {
                foreign_member(out, name);
                match value {
                    Value::Text(bytes) => string(out, bytes),
                    Value::Int(number) if kind.compiled.is_pointer(at) => {
                        string(out, format!("{number:#x}").as_bytes());
                    }
                    Value::Int(number) => match kind.compiled.enumerator(at, *number) {
                        Some(name) => string(out, name.as_bytes()),
                        None => out.extend_from_slice(number.to_string().as_bytes()),
                    },
                }
            }
            if let Some((said, values)) =
                said.and_then(|said| Some((said, said.values(kind, object)?)))
            {
                json_said(said, values, out);
            }
            out.extend_from_slice(b"}\n");
        }
        for RpcOnlyObject { identity, values } in said
            .into_iter()
            .flat_map(|said| said.others(kind, &found.objects))
        {
            begin(out, kind);
            for (name, text) in identity {
                foreign_member(out, name);
                string(out, text.as_bytes());
            }
            if let Some(said) = said {
                json_said(said, values, out);
            }
            out.extend_from_slice(b"}\n");
        }
    }
}

fn begin(out: &mut Vec<u8>, kind: &Kind) {
    out.extend_from_slice(text::json::begin("objects.object").to_string().as_bytes());
    string_member(out, "object", &kind.spec.name);
}

fn json_said(said: &Rows, values: &[Json], out: &mut Vec<u8>) {
    foreign_member(out, "rpc");
    out.push(b'{');
    for (name, value) in said.names().zip(values) {
        foreign_member(out, name);
        match value {
            Json::String(text) => string(out, text.as_bytes()),
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_a_terminal() {
        let (widths, is_text) = ([14, 3, 30, 60, 5], [false, false, true, true, false]);
        assert_eq!(fit(&widths, &is_text, 200), widths);
        assert_eq!(fit(&widths, &is_text, 115), [14, 3, 30, 60]);
        assert_eq!(
            fit(&widths, &is_text, 80),
            [14, 3, 28, 27],
            "two blanks before each"
        );
        assert_eq!(
            fit(&widths, &is_text, 20),
            [14, 3, MIN_SHORTENED_WIDTH, MIN_SHORTENED_WIDTH],
            "the rest is cut"
        );
        assert_eq!(fit(&[9, 9], &[false, false], 12), [9]);
    }
}
