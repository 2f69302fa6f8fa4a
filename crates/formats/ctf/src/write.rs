//! Events as lines.

use std::io::Write as _;

use text::json::{begin, string};
use text::printable;

use crate::event::{Event, Head, Value};

/// Format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Format of babeltrace2, with times in UTC:
    /// `[HH:MM:SS.NNNNNNNNN] (+DELTA) NAME: { HEAD }, { FIELDS }`.
    Text,
    /// A JSON object: `time_ns`, `event`, `cpu`, `thread`, `fields`. Whole numbers are exact, also beyond 2^53.
    Json,
}

/// Writer of consecutive events.
#[derive(Debug)]
pub struct Writer {
    form: Form,
    /// Time of the previous event.
    last: Option<i64>,
}

const SECOND: i64 = 1_000_000_000;

impl Writer {
    /// Creates a writer for this format.
    pub fn new(form: Form) -> Self {
        Self { form, last: None }
    }

    /// Appends the line of an event.
    pub fn event(&mut self, out: &mut Vec<u8>, head: &Head<'_>, event: &Event<'_>) {
        match self.form {
            Form::Text => self.text(out, head, event),
            Form::Json => json(out, head, event),
        }
        self.last = Some(event.nanos);
    }

    fn text(&self, out: &mut Vec<u8>, head: &Head<'_>, event: &Event<'_>) {
        let (seconds, nanos) = (
            event.nanos.div_euclid(SECOND).rem_euclid(86_400),
            event.nanos.rem_euclid(SECOND),
        );
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        push(
            out,
            format_args!("[{hour:02}:{minute:02}:{second:02}.{nanos:09}] "),
        );
        match self.last {
            None => out.extend_from_slice(b"(+?.?????????) "),
            Some(last) => {
                let delta = event.nanos.saturating_sub(last).max(0);
                push(
                    out,
                    format_args!("(+{}.{:09}) ", delta / SECOND, delta % SECOND),
                );
            }
        }
        out.extend_from_slice(printable::text(event.kind.name.as_bytes()).as_bytes());
        out.extend_from_slice(b": ");
        fields(out, head.values());
        out.extend_from_slice(b", ");
        fields(out, event.values());
        out.push(b'\n');
    }
}

fn fields<'b>(out: &mut Vec<u8>, values: impl Iterator<Item = (&'b str, Value<'b>)>) {
    out.push(b'{');
    for (nth, (name, value)) in values.enumerate() {
        out.extend_from_slice(if nth == 0 { b" " } else { b", " });
        push(out, format_args!("{name} = "));
        self::value(out, &value);
    }
    out.extend_from_slice(b" }");
}

fn value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Unsigned(value, 16) => push(out, format_args!("0x{value:X}")),
        Value::Unsigned(value, 8) => push(out, format_args!("0{value:o}")),
        Value::Unsigned(value, 2) => push(out, format_args!("0b{value:b}")),
        Value::Unsigned(value, _) => push(out, format_args!("{value}")),
        Value::Signed(value, 16) => push(out, format_args!("0x{value:X}")),
        Value::Signed(value, 8) => push(out, format_args!("0{value:o}")),
        Value::Signed(value, 2) => push(out, format_args!("0b{value:b}")),
        Value::Signed(value, _) => push(out, format_args!("{value}")),
        Value::Float(value) => out.extend_from_slice(general(*value).as_bytes()),
        Value::Text(text) => {
            out.push(b'"');
            out.extend_from_slice(printable::text(text).as_bytes());
            out.push(b'"');
        }
        Value::List(items) => {
            out.push(b'[');
            for (nth, item) in items.iter().enumerate() {
                out.extend_from_slice(if nth == 0 { b" " } else { b", " });
                push(out, format_args!("[{nth}] = "));
                self::value(out, item);
            }
            out.extend_from_slice(b" ]");
        }
    }
}

/// Formats a value as in [`Form::Text`]; texts without their quotes.
pub fn shown(value: &Value<'_>) -> String {
    if let Value::Text(text) = value {
        return printable::text(text).into_owned();
    }
    let mut out = Vec::new();
    self::value(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}

/// Formats a number like C's `%g`: six digits, without trailing zeros.
fn general(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}").to_lowercase();
    }
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let short = |text: &str| {
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        text.to_owned()
    };
    if (-4..6).contains(&exponent) {
        short(&format!("{value:.*}", (5 - exponent).max(0) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", short(digits), exponent.abs())
    }
}

fn json(out: &mut Vec<u8>, head: &Head<'_>, event: &Event<'_>) {
    let envelope = begin("trace.event");
    push(
        out,
        format_args!("{envelope},\"time_ns\":{},\"event\":", event.nanos),
    );
    string(out, event.kind.name.as_bytes());
    if let Some(cpu) = head.cpu() {
        push(out, format_args!(",\"cpu\":{cpu}"));
    }
    out.extend_from_slice(b",\"thread\":");
    string(out, head.thread());
    out.extend_from_slice(b",\"fields\":{");
    for (nth, (name, value)) in event.values().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        string(out, name.as_bytes());
        out.push(b':');
        json_value(out, &value);
    }
    out.extend_from_slice(b"}}\n");
}

fn json_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Unsigned(value, _) => push(out, format_args!("{value}")),
        Value::Signed(value, _) => push(out, format_args!("{value}")),
        Value::Float(value) if value.is_finite() => push(out, format_args!("{value:?}")),
        Value::Float(_) => out.extend_from_slice(b"null"),
        Value::Text(text) => string(out, text),
        Value::List(items) => {
            out.push(b'[');
            for (nth, item) in items.iter().enumerate() {
                if nth > 0 {
                    out.push(b',');
                }
                json_value(out, item);
            }
            out.push(b']');
        }
    }
}

/// Appends formatted text; writing to memory does not fail.
fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn floats_are_printed_as_c_does() {
        let expected = [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.0001, "-0.0001"),
            (0.00001, "1e-05"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (3.402_823_466e38, "3.40282e+38"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in expected {
            assert_eq!(general(value), text);
        }
    }
}
