//! Values as text.

use std::fmt::Write as _;

use ::text::printable;

use crate::histogram::Histogram;
use crate::series::Series;
use crate::value::Value;

/// Width of a histogram's bars in characters.
const BAR: usize = 52;

/// Formats a value.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    push(&mut out, value);
    out
}

/// Appends a value.
pub fn push(out: &mut String, value: &Value) {
    // SANITY: writing to a string doesn't fail, here and below.
    let _ = match value {
        Value::Nothing => write!(out, "null"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Uint(number) => write!(out, "{number}"),
        // The name comes from the traced program, as field names below do.
        Value::Symbol { text, .. } => {
            push_bytes(out, text.as_bytes());
            Ok(())
        }
        Value::Float(text) => write!(out, "{text}"),
        Value::Text(bytes) => {
            push_bytes(out, bytes);
            Ok(())
        }
        Value::Buffer(bytes) => write!(out, "{}", escaped(bytes)),
        Value::Array(values) => {
            list(out, values, ("[", ",", "]"));
            Ok(())
        }
        Value::Tuple(values) => {
            list(out, values, ("(", ", ", ")"));
            Ok(())
        }
        Value::Record(fields) => {
            record(out, fields);
            Ok(())
        }
    };
}

fn list(out: &mut String, values: &[Value], (open, comma, close): (&str, &str, &str)) {
    out.push_str(open);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push_str(comma);
        }
        push(out, value);
    }
    out.push_str(close);
}

fn record(out: &mut String, fields: &[(String, Value)]) {
    if fields.is_empty() {
        out.push_str("{}");
        return;
    }
    for (index, (name, value)) in fields.iter().enumerate() {
        out.push_str(if index > 0 { ", ." } else { "{ ." });
        push_bytes(out, name.as_bytes());
        out.push_str(" = ");
        push(out, value);
    }
    out.push_str(" }");
}

/// Appends a traced program's string. Control characters (except tabs and newlines) and bytes that
/// are not UTF-8 become `\xNN`, so that they can't control the terminal.
pub fn push_bytes(out: &mut String, bytes: &[u8]) {
    out.push_str(&printable::lines(bytes));
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// Formats a buffer: printable ASCII as it is, everything else as `\xNN`.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if (b' '..=b'~').contains(&byte) {
            out.push(char::from(byte));
        } else {
            hex(&mut out, &[byte]);
        }
    }
    out
}

/// Formats a map's key for its brackets; a tuple loses its parentheses.
pub fn key(key: &Value) -> String {
    match key {
        Value::Tuple(values) => values.iter().map(value).collect::<Vec<_>>().join(", "),
        other => value(other),
    }
}

/// Formats a histogram's lines.
pub fn histogram(histogram: &Histogram) -> String {
    let mut out = String::new();
    let most = histogram
        .buckets
        .iter()
        .map(|bucket| bucket.count)
        .max()
        .unwrap_or(0);
    for bucket in &histogram.buckets {
        // bpftrace divides this way; any other would change some bars by one.
        let width = (bucket.count as f32 / most as f32 * BAR as f32) as usize;
        let bar = "@".repeat(width.min(BAR));
        let _ = writeln!(
            out,
            "{:<16}{:>8} |{bar:<BAR$}|",
            bucket.label(),
            bucket.count
        );
    }
    out
}

/// Width of a time series' graph in characters, its borders included.
const GRAPH: usize = 53;
/// Width of the lower bound in the line of bounds, in characters.
const LOWER: usize = 21;

/// Formats a time series' lines.
pub fn series(series: &Series) -> String {
    let Some((least, most)) = series.bounds() else {
        return "<no data>".into();
    };
    let (unit, digits) = series.unit();
    let head = if unit == "s" {
        "hh:mm:ss".to_owned()
    } else {
        format!("hh:mm:ss.{unit}")
    };
    let margin = if digits == 0 { 8 } else { 9 + digits };
    let upper = GRAPH - LOWER;
    let bounds = format!(
        "{:width$}{least:<LOWER$}{most:>upper$}\n",
        "",
        width = margin + 1
    );
    let mut out = bounds.clone();
    let _ = writeln!(
        out,
        "{head:<width$}|{}|",
        "_".repeat(GRAPH - 2),
        width = margin + 1
    );
    let zero = if least < 0 && most > 0 {
        (GRAPH as f32 * -least as f32 / (most - least) as f32) as usize
    } else {
        0
    };
    for point in &series.points {
        let mut line = vec![b' '; GRAPH];
        (line[0], line[GRAPH - 1]) = (b'|', b'|');
        if zero > 0 {
            line[zero.min(GRAPH - 1)] = b'.';
        }
        let shown = point
            .value
            .map_or_else(|| "-".to_owned(), |value| value.to_string());
        if let Some(value) = point.value {
            let at = ((GRAPH - 1) as f32 * (value - least) as f32 / (most - least) as f32) as usize;
            line[at.min(GRAPH - 1)] = b'*';
        }
        let _ = writeln!(
            out,
            "{} {} {shown}",
            point.time,
            String::from_utf8_lossy(&line)
        );
    }
    let _ = writeln!(out, "{:margin$} v{}v", "", "_".repeat(GRAPH - 2));
    out + &bounds
}

#[cfg(test)]
mod tests;
