//! Writes JSON strings into the output buffer.

use spdk_trace::ArgValue;
use text::json::string;

use crate::digits::number;

/// Appends `"name":` (after a comma, unless it is the first member).
#[inline]
pub fn member(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member's name that comes from a file, and may contain anything.
#[inline]
pub fn foreign_member(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    string(out, name.as_bytes());
    out.push(b':');
}

/// Appends a member with a number.
#[inline]
pub fn number_member(out: &mut Vec<u8>, name: &str, n: u64) {
    member(out, name);
    number(out, n);
}

/// Appends a member with a string.
#[inline]
pub fn string_member(out: &mut Vec<u8>, name: &str, text: &str) {
    member(out, name);
    string(out, text.as_bytes());
}

/// Appends a member with the text that `write` appends, escaped if necessary: a prefix can be any
/// character.
#[inline]
pub(crate) fn written_member(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    member(out, name);
    let start = out.len();
    out.push(b'"');
    write(out);
    if out[start + 1..]
        .iter()
        .any(|&b| b == b'"' || b == b'\\' || !(0x20..0x7f).contains(&b))
    {
        let text = out.split_off(start + 1);
        out.truncate(start);
        string(out, &text);
    } else {
        out.push(b'"');
    }
}

/// Appends an argument: pointers are numbers here, as in `spdk_trace -j`.
#[inline]
pub(crate) fn value(out: &mut Vec<u8>, value: ArgValue<'_>) {
    match value {
        ArgValue::Int(n) | ArgValue::Pointer(n) => number(out, n),
        ArgValue::Str(bytes) => string(out, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_may_be_a_quote() {
        let mut out = b"{".to_vec();
        written_member(&mut out, "id", |out| out.extend_from_slice(b"\"10"));
        written_member(&mut out, "related", |out| out.extend_from_slice(b"r2"));
        assert_eq!(out, br#"{"id":"\"10","related":"r2""#);
    }

    #[test]
    fn escaped_text_is_read_back() {
        let text = "x\"y\\z\u{1b}\u{9b}\n größe";
        let mut out = b"{".to_vec();
        string_member(&mut out, "a", text);
        number_member(&mut out, "b", 1);
        out.push(b'}');
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read, serde_json::json!({ "a": text, "b": 1 }));
        let mut out = Vec::new();
        string(&mut out, b"a\xff");
        assert_eq!(out, br#""a\\xff""#);
    }
}
