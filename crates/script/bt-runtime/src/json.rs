//! Values as JSON, in bpftrace's format: objects with a space after each colon and comma, arrays without.

use std::fmt::Write as _;

use ::text::json::push_string;

use crate::histogram::Histogram;
use crate::series::Series;
use crate::table::{Cell, Table};
use crate::text;
use crate::value::Value;

/// Appends a value.
pub fn push(out: &mut String, value: &Value) {
    match value {
        Value::Nothing => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Int(_) | Value::Uint(_) | Value::Symbol { .. } => {
            push_number(out, value.number().unwrap_or_default());
        }
        // JSON has no infinity and no NaN (RFC 8259, section 6).
        Value::Float(text) if text.parse::<f64>().is_ok_and(f64::is_finite) => out.push_str(text),
        Value::Float(text) => push_string(out, text.as_bytes()),
        Value::Text(bytes) => push_string(out, bytes),
        Value::Buffer(bytes) => {
            // Signed numbers, like bpftrace's, which are of C's `char`.
            let bytes: Vec<Value> = bytes
                .iter()
                .map(|&byte| Value::Int(i64::from(byte.cast_signed())))
                .collect();
            list(out, &bytes);
        }
        Value::Array(values) | Value::Tuple(values) => list(out, values),
        Value::Record(fields) => {
            object(
                out,
                fields.iter(),
                |(name, _)| name.clone(),
                |out, (_, value)| push(out, value),
            );
        }
    }
}

fn list(out: &mut String, values: &[Value]) {
    out.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push(out, value);
    }
    out.push(']');
}

fn object<T>(
    out: &mut String,
    entries: impl Iterator<Item = T>,
    name: impl Fn(&T) -> String,
    value: impl Fn(&mut String, &T),
) {
    out.push('{');
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        push_string(out, name(&entry).as_bytes());
        out.push_str(": ");
        value(out, &entry);
    }
    out.push('}');
}

/// Appends a number, as a string if a reader with only floating point would change it (RFC 8259,
/// section 6).
pub fn push_number(out: &mut String, number: i128) {
    let exact = (number as f64) as i128 == number;
    // SANITY: writing to a string doesn't fail, here and below.
    let _ = if exact {
        write!(out, "{number}")
    } else {
        write!(out, "\"{number}\"")
    };
}

/// Appends a map's data under its name.
pub fn push_table(out: &mut String, table: &Table) {
    out.push('{');
    push_string(out, table.name.as_bytes());
    out.push_str(": ");
    match table.rows.first() {
        Some((_, cell)) if table.is_scalar => push_cell(out, cell),
        _ => object(
            out,
            table.rows.iter(),
            |(key, _)| self::key(key),
            |out, (_, cell)| push_cell(out, cell),
        ),
    }
    out.push('}');
}

/// Formats a key as a name: the parts of a tuple are separated by commas, without blanks.
fn key(key: &Value) -> String {
    match key {
        Value::Tuple(values) => values.iter().map(self::key).collect::<Vec<_>>().join(","),
        // The string is taken as it is; JSON does the escaping.
        Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => text::value(other),
    }
}

/// Appends the contents of an element.
pub fn push_cell(out: &mut String, cell: &Cell) {
    match cell {
        Cell::Value(value) => push(out, value),
        Cell::Histogram(histogram) => push_histogram(out, histogram),
        Cell::Series(series) => push_series(out, series),
    }
}

fn push_histogram(out: &mut String, histogram: &Histogram) {
    out.push('[');
    for (index, bucket) in histogram.buckets.iter().enumerate() {
        out.push_str(if index > 0 { ",{" } else { "{" });
        if let Some(from) = &bucket.from {
            out.push_str("\"min\": ");
            push_number(out, from.number);
            out.push_str(", ");
        }
        if let Some(to) = &bucket.to {
            // The greatest number in the bucket, not the least above it.
            out.push_str("\"max\": ");
            push_number(out, to.number - 1);
            out.push_str(", ");
        }
        let _ = write!(out, "\"count\": {}}}", bucket.count);
    }
    out.push(']');
}

fn push_series(out: &mut String, series: &Series) {
    out.push('[');
    let points = series
        .points
        .iter()
        .filter_map(|point| Some((&point.full_time, point.value?)));
    for (index, (time, value)) in points.enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(
            out,
            "{comma}{{\"interval_start\":\"{time}\",\"value\":{value}}}"
        );
    }
    out.push(']');
}
