//! JSON strings into the output buffer.

use spdk_trace::{ArgValue, printable};

use crate::digits::number;

/// Appends a string with its quotes. What is not UTF-8 is escaped as `\xNN` first, as everywhere.
#[inline]
pub(crate) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.extend_from_slice(bytes);
    } else {
        escaped(out, bytes);
    }
    out.push(b'"');
}

#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let text = printable(bytes);
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends `"name":` (behind a comma, unless it is the first member).
#[inline]
pub(crate) fn member(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member with a number.
#[inline]
pub(crate) fn number_member(out: &mut Vec<u8>, name: &str, n: u64) {
    member(out, name);
    number(out, n);
}

/// Appends a member with a string.
#[inline]
pub(crate) fn string_member(out: &mut Vec<u8>, name: &str, text: &str) {
    member(out, name);
    string(out, text.as_bytes());
}

/// Appends an argument: pointers are numbers here, as in `spdk_trace -j`.
#[inline]
pub(crate) fn value(out: &mut Vec<u8>, value: ArgValue<'_>) {
    match value {
        ArgValue::Int(n) | ArgValue::Pointer(n) => number(out, n),
        ArgValue::Str(bytes) => string(out, bytes),
    }
}
