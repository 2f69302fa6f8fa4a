//! The envelope of all JSON that dptrace prints (docs/json.md), and its strings.

use std::fmt;

use crate::printable::{json_document, json_string};

/// Version of the members and their meaning. New members do not change it.
pub const VERSION: u32 = 1;

/// Beginning of an object of a type: its envelope, without the closing brace.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a>(&'a str);

impl fmt::Display for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"version\":{VERSION},\"type\":\"{}\"", self.0)
    }
}

/// Returns the beginning of an object of that type.
pub fn begin(ty: &str) -> Envelope<'_> {
    Envelope(ty)
}

/// Returns a string with its quotes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text.as_bytes());
    out
}

/// Appends a string with its quotes. A byte that is not UTF-8 has no JSON form: it becomes the text
/// `\xNN`, as in a listing.
pub fn push_string(out: &mut String, bytes: &[u8]) {
    out.push('"');
    json_string(bytes, |piece| out.push_str(piece));
    out.push('"');
}

/// Appends a string with its quotes to a buffer of bytes, as [`push_string`] does.
#[inline]
pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if bytes
        .iter()
        .all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\')
    {
        out.extend_from_slice(bytes);
    } else {
        push_escaped(out, bytes);
    }
    out.push(b'"');
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    json_string(bytes, |piece| out.extend_from_slice(piece.as_bytes()));
}

/// Puts an object that another writer of JSON has written into the envelope, and escapes what a
/// terminal would obey in it.
pub fn document(ty: &str, object: &impl ToString) -> String {
    let object = object.to_string();
    let members = object.strip_prefix('{').unwrap_or(&object);
    let comma = if members.starts_with('}') { "" } else { "," };
    json_document(format!("{}{comma}{members}", begin(ty)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gets_its_envelope() {
        assert_eq!(document("a.b", &"{}"), "{\"version\":1,\"type\":\"a.b\"}");
        let text = document("a.b", &"{\"c\": \"\u{9b}\"}");
        assert_eq!(text, "{\"version\":1,\"type\":\"a.b\",\"c\": \"\\u009b\"}");
    }
}
